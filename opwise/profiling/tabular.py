"""A profile as a flat table, a row for each Apply: as dicts, CSV or a DataFrame."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, TextIO

from opwise.profiling.files import write_whole
from opwise.profiling.model import ApplyProfile, FunctionProfile, ProfileData

COLUMNS = (
    "function", "position", "op", "op_class", "apply", "line", "scope", "c", "why", "calls",
    "seconds", "seconds_least", "seconds_median", "seconds_p95", "seconds_most", "bytes_read",
    "bytes_written", "flops", "dtypes", "shapes", "device", "seconds_asked", "seconds_waited",
    "on_host", "loop", "seconds_inside", "algorithm", "why_algorithm", "estimated",
)  # fmt: skip


def records(profile: ProfileData) -> list[dict[str, Any]]:
    """Return a list of dicts, one for each Apply, with the keys ``COLUMNS``.

    ``seconds`` is the time of all calls; ``seconds_least``, ``_median``, ``_p95`` and ``_most`` are
    those of one. Bytes, flops, dtypes and shapes are those of the last call, inputs before outputs;
    None if unknown. ``device`` is where it ran ("" for the host), ``seconds_asked`` and
    ``seconds_waited`` what the host took to launch it and to wait for it, ``on_host`` why it ran
    on the host while others ran on a device. ``loop`` names the loops that it is inside ("" for
    none); ``seconds_inside`` is the time of the Applys inside it, which ``seconds`` is without.
    ``algorithm`` and ``why_algorithm`` tell which of several algorithms ran ("" if there is one).
    ``estimated`` is True if the loop around it ran as one C function: ``seconds`` is then its share
    of that function's time by rough cost, and no single run was timed.
    """
    return [_record(function, apply) for function in profile.functions for apply in function.applys]


def _record(function: FunctionProfile, a: ApplyProfile) -> dict[str, Any]:
    arrays = (*a.input_arrays, *a.output_arrays)
    known = [x for x in arrays if x is not None]
    complete = bool(arrays) and len(known) == len(arrays)
    line = f"{a.lines[0][0]}:{a.lines[0][1]}" if a.lines else None
    scope = a.origins[0].scope if a.origins else ""
    values = (
        function.name, a.position, a.op, a.op_class, a.text, line, scope, a.c, a.why, a.count,
        a.total * 1e-9,
        *(ns * 1e-9 for ns in (a.least, a.quantile(0.5), a.quantile(0.95), a.most)),
        sum(x.bytes for x in known[: len(a.input_arrays)]) if complete else None,
        sum(x.bytes for x in known[len(a.input_arrays) :]) if complete else None,
        a.flops,
        " ".join(x.dtype for x in known) if complete else None,
        " ".join("x".join(map(str, x.shape)) or "()" for x in known) if complete else None,
        a.device, a.asked * 1e-9, a.waited * 1e-9, a.on_host, a.loop, a.inner * 1e-9,
        a.algorithm, a.why_algorithm, a.estimated,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def write_csv(profile: ProfileData, file: TextIO) -> None:
    """Write the records to an open text file as CSV, a header first, without formulas."""
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    writer.writerows(
        {name: _harmless(value) for name, value in row.items()} for row in records(profile)
    )


#: letters that begin a formula in spreadsheets, or that they ignore before one
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # fmt: skip


def _harmless(value: Any) -> Any:
    """Return a value with an apostrophe before a text that a spreadsheet takes for a formula.

    As OWASP advises on CSV injection; numbers stay as they are.
    """
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def save_csv(profile: ProfileData, path: str | Path) -> None:
    """Write the records to a file as CSV, replacing the file as a whole. Raises OSError."""
    text = io.StringIO()
    write_csv(profile, text)
    write_whole(path, text.getvalue())


def to_pandas(profile: ProfileData) -> Any:
    """Return the records as a pandas DataFrame."""
    import pandas  # not a dependency of opwise

    return pandas.DataFrame(records(profile), columns=list(COLUMNS))
