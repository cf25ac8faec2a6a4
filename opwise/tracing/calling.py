"""Calls of functions that are traced: of their converted text where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Converted:
    """A function as it is traced."""

    def __init__(self, call: Callable[..., Any], text: str) -> None:
        #: the function to call
        self.call = call
        #: its text
        self.text = text


def convert_function(function: Callable[..., Any]) -> Converted:
    """Return a function as it is traced."""
    return Converted(function, "")
