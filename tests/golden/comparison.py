"""Compares what a golden program returned with what was recorded, case by case.

Numbers may differ by the program's tolerance, texts not at all; of an exception the class must be
the same or a subclass, and half of what its message tells must be told.
"""

import re
from collections import Counter

import numpy as np
from programs.encoding import ERROR_MARK, decode_array
from programs.register import LOOSE, SINGLE, ULP

# Relative and absolute distance that is allowed, per tolerance and dtype of the recorded result.
RELATIVE = {
    ULP: {"float16": 2e-3, "float32": 1e-6, "float64": 2e-15},
    LOOSE: {"float16": 5e-3, "float32": 2e-5, "float64": 1e-10},
    SINGLE: {"float16": 5e-3, "float32": 2e-5, "float64": 1e-6},
}
ABSOLUTE = {
    ULP: {"float16": 1e-7, "float32": 1e-44, "float64": 5e-323},
    LOOSE: {"float16": 1e-3, "float32": 1e-6, "float64": 1e-13},
    SINGLE: {"float16": 1e-3, "float32": 1e-6, "float64": 1e-7},
}
REAL_PART = {"complex64": "float32", "complex128": "float64"}

_ERROR = re.compile(r"^!! (\w+)(?:\(([\w, ]*)\))?(?:: ?(.*))?$", re.DOTALL)
_CLASS_TEXT = re.compile(r"<class '[\w.]+'>")
# What a message tells: numbers, dtypes, and what stands in quotes.
_TOLD = re.compile(
    r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])|\b(?:u?int|float|complex)\d+\b|['\"]\w+['\"]"
)


def mismatches(recorded, measured, tolerance, path=""):
    """Return a list of lines `case: what differs`, empty where nothing does."""
    if isinstance(recorded, dict) and isinstance(measured, dict):
        return _dict_mismatches(recorded, measured, tolerance, path)
    if isinstance(recorded, list) and isinstance(measured, list):
        if _are_names(recorded) and _are_names(measured):
            return _name_mismatches(recorded, measured, path)
        if len(recorded) != len(measured):
            return [f"{path}: {len(measured)} items for {len(recorded)}: {measured} {recorded}"]
        found = []
        for index, (old, new) in enumerate(zip(recorded, measured, strict=True)):
            found += mismatches(old, new, tolerance, f"{path}/{index}")
        return found
    if isinstance(recorded, str) and isinstance(measured, str):
        reason = _text_mismatch(recorded, measured, tolerance)
        return [f"{path}: {reason}"] if reason else []
    if recorded != measured:
        return [f"{path}: got {measured!r}, recorded {recorded!r}"]
    return []


def _are_names(items):
    plain = [item for item in items if isinstance(item, str) and not item.startswith(ERROR_MARK)]
    return len(plain) == len(items) and not any(decode_array(item) is not None for item in plain)


def _name_mismatches(recorded, measured, path):
    if recorded == measured:
        return []
    missing, extra = Counter(recorded) - Counter(measured), Counter(measured) - Counter(recorded)
    if not missing and not extra:
        return [f"{path}: in another order: {measured}, recorded {recorded}"]
    return [f"{path}: without {sorted(missing.elements())}, but with {sorted(extra.elements())}"]


def _dict_mismatches(recorded, measured, tolerance, path):
    found = []
    for key in sorted(set(recorded) | set(measured)):
        here = f"{path}/{key}" if path else key
        if key not in measured:
            found.append(f"{here}: missing, recorded {recorded[key]!r}")
        elif key not in recorded:
            found.append(f"{here}: not recorded, got {measured[key]!r}")
        else:
            found += mismatches(recorded[key], measured[key], tolerance, here)
    return found


def _text_mismatch(recorded, measured, tolerance):
    if recorded == measured:
        return None
    if recorded.startswith(ERROR_MARK):
        return _error_mismatch(recorded, measured)
    expected = decode_array(recorded)
    if expected is None:
        return _plain_text_mismatch(recorded, measured)
    value = decode_array(measured)
    if value is None:
        return f"got {measured!r}, recorded {recorded!r}"
    if expected.dtype != value.dtype or expected.shape != value.shape:
        return f"got {value.dtype} {value.shape}, recorded {expected.dtype} {expected.shape}"
    apart = ~_close(expected, value, tolerance)
    if not apart.any():
        return None
    places = np.flatnonzero(apart)
    shown = [f"[{k}] {value.ravel()[k]} for {expected.ravel()[k]}" for k in places[:6]]
    return f"{len(places)} of {value.size} values: " + ", ".join(shown)


def _close(expected, value, tolerance):
    dtype = REAL_PART.get(str(expected.dtype), str(expected.dtype))
    if dtype not in RELATIVE[tolerance]:
        return expected == value
    return np.isclose(
        value,
        expected,
        rtol=RELATIVE[tolerance][dtype],
        atol=ABSOLUTE[tolerance][dtype],
        equal_nan=True,
    )


def _plain_text_mismatch(recorded, measured):
    old, new = recorded.split(), measured.split()
    if "\n" in recorded or len(old) != len(new) or len(old) < 3:
        return f"got\n{measured}\nrecorded\n{recorded}"
    words = [f"word {k}: {new[k]} for {old[k]}" for k in range(len(old)) if old[k] != new[k]]
    return ", ".join(words) or f"got {measured!r}, recorded {recorded!r}"


def _error_mismatch(recorded, measured):
    match = _ERROR.match(measured)
    if match is None:
        return f"got {measured!r}, recorded {recorded!r}"
    name, bases, message = match.groups()
    expected_name, _, expected_message = _ERROR.match(recorded).groups()
    if expected_name != name and expected_name not in (bases or "").split(", "):
        return f"raised {measured!r}, recorded {recorded!r}"
    expected_message = _CLASS_TEXT.sub("", expected_message or "")
    told = {part.strip("'\"") for part in _TOLD.findall(expected_message)}
    missing = [part for part in told if part not in (message or "")]
    if 2 * len(missing) > len(told):
        return f"message without {sorted(missing)}: {message!r}, recorded {expected_message!r}"
    return None
