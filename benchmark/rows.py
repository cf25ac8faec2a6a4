"""Results as JSON text: figures of four digits, and a line for each row, which git compares."""

from __future__ import annotations

import json
from typing import Any


def rounded(value: Any) -> Any:
    """Return plain data with each float rounded to four significant digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def text(value: Any, indent: str = "") -> str:
    """Return plain data as JSON. What holds a list of dicts or lists takes a line for each item."""
    if not _has_rows(value):
        return json.dumps(value)
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {text(each, inner)}" for key, each in value.items()]
        first, last = "{}"
    else:
        items = [text(each, inner) for each in value]
        first, last = "[]"
    return f"{first}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{last}"


def _has_rows(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_rows, value.values()))
    return isinstance(value, list) and any(isinstance(each, dict | list) for each in value)
