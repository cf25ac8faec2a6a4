"""What a program is: a function of numpy, and what makes its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """One program: its function and its arguments by size."""

    name: str
    kind: str
    function: Callable[..., Any]
    #: from a generator and a size to the arguments
    arguments: Callable[..., tuple[Any, ...]]
    #: the sizes of tests and of measurements
    small: int
    large: int
    #: from ``value_and_grad`` of a library to a function that gives what ``function`` gives, for
    #: programs whose gradients numpy computes by hand
    derived: Callable[..., Callable[..., Any]] | None = None
    #: whether Numba is a contender
    numba: bool = True


class Programs(list[Program]):
    """A list of programs, with a decorator that adds one."""

    def program(
        self, kind: str, arguments: Callable[..., Any], small: int, large: int, **others: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a function to the programs. others: fields of Program."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.append(
                Program(function.__name__, kind, function, arguments, small, large, **others)
            )
            return function

        return add
