"""Records: a profile as a flat table, a row for each Apply."""

from __future__ import annotations

import csv
import io

from opwise.profiling.files import write_whole

COLUMNS = (
    "function", "position", "op", "op_class", "apply", "line", "scope", "c", "why", "calls",
    "seconds", "seconds_least", "seconds_median", "seconds_p95", "seconds_most", "bytes_read",
    "bytes_written", "flops", "dtypes", "shapes", "device", "seconds_asked", "seconds_waited",
    "on_host",
)  # fmt: skip


def records(profile):
    """Return a list of dicts, one for each Apply, with the keys ``COLUMNS``.

    seconds: in all calls; seconds_least, _median, _p95, _most: in one. bytes, flops, dtypes and
    shapes are those of the last call: of inputs, then of outputs; None where they are not known.
    device: where it ran, "" for the host; then what the host took to ask for it and to wait for it,
    and why it was not on the device that others were on.
    """
    return [_record(function, apply) for function in profile.functions for apply in function.applys]


def _record(function, a):
    arrays = (*a.input_arrays, *a.output_arrays)
    known = bool(arrays) and None not in arrays
    line = f"{a.lines[0][0]}:{a.lines[0][1]}" if a.lines else None
    scope = a.origins[0].scope if a.origins else ""
    values = (
        function.name, a.position, a.op, a.op_class, a.text, line, scope, a.c, a.why, a.count,
        a.total * 1e-9,
        *(ns * 1e-9 for ns in (a.least, a.quantile(0.5), a.quantile(0.95), a.most)),
        sum(x.bytes for x in a.input_arrays) if known else None,
        sum(x.bytes for x in a.output_arrays) if known else None,
        a.flops,
        " ".join(x.dtype for x in arrays) if known else None,
        " ".join("x".join(map(str, x.shape)) or "()" for x in arrays) if known else None,
        a.device, a.asked * 1e-9, a.waited * 1e-9, a.on_host,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def write_csv(profile, file):
    """Write the records to an open text file, a header first; no text is taken for a formula."""
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    writer.writerows(
        {name: _harmless(value) for name, value in row.items()} for row in records(profile)
    )


#: what spreadsheets begin a formula with, or ignore in front of one
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # fmt: skip


def _harmless(value):
    """Return a cell that no spreadsheet takes for a formula: such texts begin with an apostrophe.

    As OWASP advises on CSV injection; numbers stay as they are.
    """
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def save_csv(profile, path):
    """Write the records to a file, which is replaced as a whole. OSError."""
    text = io.StringIO()
    write_csv(profile, text)
    write_whole(path, text.getvalue())


def to_pandas(profile):
    """Return the records as a pandas DataFrame."""
    import pandas  # not among what opwise needs

    return pandas.DataFrame(records(profile), columns=list(COLUMNS))
