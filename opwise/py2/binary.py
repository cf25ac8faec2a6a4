"""Pipes, hashes and binary files that take text, as those of Python 2 did.

What pipes give is text if it is text: programs parse the output of other programs.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from opwise.py2.builtin import TextLines, Writable


def _as_bytes(data: Any) -> Any:
    """Return text as bytes, and everything else as it is."""
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data


def _as_text(data: Any) -> Any:
    """Return bytes as text if they are text, and everything else as it is."""
    if not isinstance(data, bytes):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


# --- pipes ----------------------------------------------------------------------------------------


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A process whose pipes take text and give text, without a buffer for what is written."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        for name in ("stdin", "stdout", "stderr"):
            pipe = getattr(self, name)
            if pipe is not None:
                setattr(self, name, _Pipe(pipe))

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        out, error = super().communicate(_as_bytes(input) if self._is_binary else input, timeout)
        return _as_text(out), _as_text(error)

    @property
    def _is_binary(self) -> bool:
        return not self.text_mode  # type: ignore[attr-defined]


class _Pipe:
    """An end of a pipe."""

    def __init__(self, file: Any):
        self._file = file

    def write(self, data: Any) -> None:
        if hasattr(self._file, "encoding"):
            self._file.write(data)
        else:
            self._file.write(_as_bytes(data))
        self._file.flush()

    def writelines(self, lines: Iterable[Any]) -> None:
        for line in lines:
            self.write(line)

    def read(self, *size: int) -> Any:
        return _as_text(self._file.read(*size))

    def readline(self, *size: int) -> Any:
        return _as_text(self._file.readline(*size))

    def readlines(self, *hint: int) -> list[Any]:
        return [_as_text(line) for line in self._file.readlines(*hint)]

    def __iter__(self) -> Iterator[Any]:
        return map(_as_text, self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _Pipe:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def check_output(*args: Any, **options: Any) -> Any:
    """Return what a program prints."""
    return _as_text(subprocess.check_output(*args, **options))


# --- hashes ---------------------------------------------------------------------------------------


class _Hash:
    """A hash of bytes, and of text as UTF-8."""

    def __init__(self, own: Any, data: Any = b""):
        self._own = own
        self.update(data)

    def update(self, data: Any) -> None:
        self._own.update(_as_bytes(data))

    def copy(self) -> _Hash:
        return _Hash(self._own.copy())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def new_hash(name: str, data: Any = b"") -> _Hash:
    return _Hash(hashlib.new(name), data)


def _hash(name: str) -> Callable[..., _Hash]:
    return lambda data=b"": new_hash(name, data)


md5, sha1, sha224 = _hash("md5"), _hash("sha1"), _hash("sha224")
sha256, sha384, sha512 = _hash("sha256"), _hash("sha384"), _hash("sha512")


def crc32(data: Any, *start: int) -> int:
    """Return a checksum; that of Python 2 had a sign."""
    return _signed(zlib.crc32(_as_bytes(data), *start))


def adler32(data: Any, *start: int) -> int:
    """Return a checksum; that of Python 2 had a sign."""
    return _signed(zlib.adler32(_as_bytes(data), *start))


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


# --- files ----------------------------------------------------------------------------------------


class GzipFile(TextLines, gzip.GzipFile):
    """A compressed file; text can be written into it."""

    def write(self, data: Any) -> int:
        return super().write(_as_bytes(data))


class BZ2File(TextLines, bz2.BZ2File):
    """A compressed file; text can be written into it."""

    def write(self, data: Any) -> int:
        return super().write(_as_bytes(data))

    def writelines(self, lines: Iterable[Any]) -> None:
        super().writelines(map(_as_bytes, lines))


def gzip_open(filename: Any, mode: str = "rb", *args: Any, **options: Any) -> Any:
    """Open a compressed file; text can be written into it."""
    if "t" in mode or options or len(args) > 1:
        return gzip.open(filename, mode, *args, **options)
    if isinstance(filename, str | bytes | os.PathLike):
        return GzipFile(filename, mode.replace("U", ""), *args)
    level = args[0] if args else 9
    return GzipFile(None, mode.replace("U", ""), level, fileobj=filename)


def urlopen(*args: Any, **options: Any) -> Any:
    """Open what is behind a URL, whose lines are text."""
    from urllib.request import urlopen  # few programs need it

    return Writable(urlopen(*args, **options))


def temporary_file(mode: str = "w+b", *args: Any, **options: Any) -> Any:
    """Open a file without a name; text can be written into it."""
    file = tempfile.TemporaryFile(mode, *args, **options)  # noqa: SIM115
    return Writable(file) if "b" in mode else file


def named_temporary_file(mode: str = "w+b", *args: Any, **options: Any) -> Any:
    """Open a temporary file; text can be written into it."""
    file = tempfile.NamedTemporaryFile(mode, *args, **options)  # noqa: SIM115
    return Writable(file) if "b" in mode else file
