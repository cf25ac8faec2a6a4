"""The table of ``run --live``: the Applys of a program while it runs, below what it prints.

The program writes to a terminal of its own, which is read here: so its lines stay above the table.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from opwise.command import tables
from opwise.profiling.files import printable
from opwise.profiling.html.page import duration
from opwise.profiling.live import LiveApply, LiveReader
from opwise.profiling.reports import wording

#: seconds between two tables
_EVERY = 0.5
#: seconds that the shares of "now" are about
_RECENT = 2.0
#: rows of the table, at most; fewer in a low terminal
_ROWS = 12
#: bytes that are read at once from what the program writes, and that are kept until they are shown
_CHUNK, _KEPT = 1 << 16, 1 << 20


def is_possible() -> bool:
    """Return whether stderr is a terminal that can show a table which changes."""
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    return not Console(stderr=True).is_dumb_terminal


# --- what is shown --------------------------------------------------------------------------------


@dataclass
class _Sum:
    """An Apply in all processes that run it."""

    apply: LiveApply
    count: int = 0
    ns: int = 0
    #: nanoseconds in the last seconds
    recent: int = 0


class _Times:
    """The times of a program's Applys, now and some seconds ago."""

    def __init__(self, reader: LiveReader) -> None:
        self.reader = reader
        self.started = time.monotonic()
        self.sums: dict[tuple[str, int, str], _Sum] = {}
        #: (when, calls, {Apply: nanoseconds}) of the last tables
        self.past: deque[tuple[float, int, dict[tuple[str, int, str], int]]] = deque()

    def read(self) -> None:
        """Read all counters."""
        self.reader.find()
        sums: dict[tuple[str, int, str], _Sum] = {}
        places: dict[tuple[int, str], int] = {}
        for apply in self.reader.applys():
            at = places[apply.process, apply.function] = (
                places.get((apply.process, apply.function), -1) + 1
            )
            one = sums.setdefault((apply.function, at, apply.text), _Sum(apply))
            one.count += apply.count
            one.ns += apply.ns
        now = time.monotonic()
        while len(self.past) > 1 and now - self.past[1][0] >= _RECENT:
            self.past.popleft()
        before = self.past[0][2] if self.past else {}
        for key, one in sums.items():
            one.recent = max(0, one.ns - before.get(key, 0))
        self.past.append((now, self.reader.calls, {key: one.ns for key, one in sums.items()}))
        self.sums = sums

    @property
    def rate(self) -> float:
        """The number of calls per second in the last seconds."""
        (start, before, _), (end, after, _) = self.past[0], self.past[-1]
        return (after - before) / (end - start) if end > start else 0.0

    def headline(self) -> str:
        """Return what the program has done up to now, in one line."""
        seconds = time.monotonic() - self.started
        if not self.reader.functions:
            return f"{seconds:.1f} s: no function is compiled yet"
        ns = sum(one.ns for one in self.sums.values())
        processes = f" in {self.reader.processes} processes" if self.reader.processes > 1 else ""
        functions = wording.counted(self.reader.functions, "function")
        calls = wording.counted(self.reader.calls, "call")
        return (
            f"{seconds:.1f} s: {functions}{processes}, {calls} ({self.rate:.0f} per second now), "
            f"{duration(ns)} in Applys"
        )

    def table(self, rows: int) -> tables.Table:
        """Return the table of the Applys that took most time."""
        several = self.reader.functions > 1
        made = tables.Table(
            [
                tables.Column("time ms"),
                tables.Column("share"),
                tables.Column("now", 1),
                tables.Column("runs", 3),
                tables.Column("µs a run", 2),
                tables.name("in", 4),
                *([tables.name("function", 3)] if several else []),
                tables.name("line"),
                tables.text("Apply"),
            ]
        )
        ran = [one for one in self.sums.values() if one.count]
        ran.sort(key=lambda one: -one.ns)
        total = max(1, sum(one.ns for one in ran))
        recent = max(1, sum(one.recent for one in ran))
        for one in ran[:rows]:
            share = one.ns / total
            made.add(
                [
                    f"{one.ns * 1e-6:.1f}",
                    f"{100 * share:.1f}%",
                    f"{100 * one.recent / recent:.0f}%",
                    str(one.count),
                    f"{one.ns * 1e-3 / one.count:.3f}",
                    one.apply.where,
                    *([one.apply.function] if several else []),
                    wording.short(tables.place(one.apply.line), 40),
                    one.apply.text,
                ],
                style=tables.share_style(share),
            )
        if rest := ran[rows:]:
            ns, last = sum(one.ns for one in rest), sum(one.recent for one in rest)
            cells = [f"{ns * 1e-6:.1f}", f"{100 * ns / total:.1f}%", f"{100 * last / recent:.0f}%"]
            empty = [""] * (len(made.columns) - 4)
            made.add([*cells, *empty, f"{len(rest)} more"], style="dim")
        return made


# --- what the program writes ----------------------------------------------------------------------


class _AsWritten:
    """Lines of the program, with its colours and whatever else it writes."""

    def __init__(self, lines: str) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self.lines)


class LiveTerminal:
    """A terminal for a program, and the table below what the program writes there."""

    def __init__(self, reader: LiveReader) -> None:
        self.reader = reader
        self._times = _Times(reader)
        self._master, self._slave = os.openpty()
        self._like_ours()
        os.set_blocking(self._master, False)
        #: what the program has written of a line that has not ended
        self._line = b""
        self._console = Console(stderr=True, markup=False, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

    @property
    def stdout(self) -> int | None:
        """The file descriptor of the program's stdout; None: that of this process."""
        return self._slave if tables.is_terminal() else None

    @property
    def stderr(self) -> int:
        """The file descriptor of the program's stderr."""
        return self._slave

    def _like_ours(self) -> None:
        """Give the program's terminal the size of this one."""
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(sys.stderr.fileno())
            packed = struct.pack("HHHH", size.lines, size.columns, 0, 0)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, packed)

    def attend(self, process: subprocess.Popen[bytes]) -> None:
        """Show the table, and what the program writes, until it ends."""
        os.close(self._slave)
        try:
            with self._live:
                self._console.show_cursor(True)  # Ctrl-Z would leave the shell without one
                for written in self._written(process):
                    self._show(written)
                self._show(b"\n" if self._line else b"")
        finally:
            os.close(self._master)

    def _written(self, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
        """Yield what the program has written since the last time, every half second and at last."""
        following = last = time.monotonic()
        found: list[bytes] = []
        while True:
            now = time.monotonic()
            if process.poll() is None:
                last = now + _EVERY
            has_more = self._read(found, 0.05 if last > now else 0.0)
            # a process that the program has left behind may go on writing
            if now >= last or (process.returncode is not None and not has_more):
                break
            if now >= following or sum(map(len, found)) > _KEPT:
                following = now + _EVERY
                yield b"".join(found)
                found.clear()
        yield b"".join(found)

    def _read(self, found: list[bytes], seconds: float) -> bool:
        """Wait for what the program writes; return whether there may be more."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # nobody has the program's terminal any more
            time.sleep(seconds)
            return False
        found.append(data)
        return bool(data)

    def _show(self, written: bytes) -> None:
        """Show what the program wrote, and the table as it is now."""
        lines, ended, rest = (self._line + written).rpartition(b"\n")
        self._line = _overwritten(rest)
        if ended:
            shown = b"\n".join(map(_kept, lines.split(b"\n"))) + ended
            text = shown.decode("utf-8", "replace").replace("\r\n", "\n")
            self._console.print(_AsWritten(text), end="", soft_wrap=True)
        self._like_ours()
        self._times.read()
        self._live.update(self._drawn(), refresh=True)

    def _drawn(self) -> Group:
        """Return the line that the program has not ended, the headline and the table."""
        width, height = self._console.size
        rows = max(1, min(_ROWS, height // 2 - 3))
        shown = self._times.table(rows)
        table, _ = shown.laid_out(width)
        begun = _coloured(self._line.decode("utf-8", "replace"))
        parts: list[RenderableType] = [Text.from_ansi(begun)] if begun else []
        parts += [
            Text("─" * min(width, 60), style="dim"),
            _line(self._times.headline(), "bold"),
            table,
        ]
        if left_out := shown.left_out(width):
            parts.append(_line(f"(not shown: {', '.join(left_out)})", "dim"))
        return Group(*parts)


def _line(text: str, style: str) -> Text:
    """Return one line, whose end is cut visibly if it does not fit."""
    return Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")


def _overwritten(line: bytes) -> bytes:
    """Return what a terminal shows of a line that begins again at each carriage return."""
    written = line.rstrip(b"\r")
    return written.rpartition(b"\r")[2] + line[len(written) :][:1]


def _kept(line: bytes) -> bytes:
    """Return a line that has ended without the parts that later ones write over whole."""
    parts: list[bytes] = []
    for part in line.split(b"\r"):
        width = len(part.decode("utf-8", "replace"))
        while parts and b"\x1b" not in part and width >= len(parts[-1].decode("utf-8", "replace")):
            parts.pop()
        parts.append(part)
    return b"\r".join(parts)


def _coloured(line: str) -> str:
    """Return a line without control characters other than the escapes that colour it."""
    return "".join(c for c in line if c.isprintable() or c == "\x1b")
