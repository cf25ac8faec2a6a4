"""Lists, tuples, dicts and dataclasses of values: their leaves, and their structure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any


class OwnList(list[Any]):
    """A list that a traced function makes; a leaf if its items are elsewhere, in ``memory``."""

    memory: Any = None


class Leaf:
    """The structure of a value that is no container."""

    def __repr__(self) -> str:
        return "*"


LEAF = Leaf()


@dataclasses.dataclass(frozen=True)
class Node:
    """The structure of a container: its class, what tells its parts apart, and their structures."""

    cls: type
    keys: tuple[Any, ...]
    parts: tuple[Any, ...]


#: a structure: LEAF or a Node
Structure = Any


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return (the leaves of a tree in order, its structure, which is hashable).

    Containers are lists, tuples, named tuples, dicts and dataclasses; all else is a leaf. Dicts
    keep their order.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    cls = type(tree)
    if issubclass(cls, OwnList):
        if tree.memory is not None:
            leaves.append(tree)
            return LEAF
        cls = list
    if cls is tuple or cls is list or (isinstance(tree, tuple) and hasattr(cls, "_fields")):
        return Node(cls, (), tuple([_flatten(each, leaves) for each in tree]))
    if isinstance(tree, dict):
        return Node(cls, tuple(tree), tuple([_flatten(each, leaves) for each in tree.values()]))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(f.name for f in dataclasses.fields(tree))
        return Node(cls, names, tuple([_flatten(getattr(tree, n), leaves) for n in names]))
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: Iterable[Any], lists: type[list[Any]] = list) -> Any:
    """Return the tree of a structure with these leaves. lists: the class of its lists."""
    return _unflatten(structure, iter(leaves), lists)


def _unflatten(structure: Structure, leaves: Iterator[Any], lists: type[list[Any]]) -> Any:
    if structure is LEAF:
        return next(leaves)
    parts = [_unflatten(part, leaves, lists) for part in structure.parts]
    cls = structure.cls
    if cls is list:
        return lists(parts)
    if cls is tuple:
        return tuple(parts)
    if hasattr(cls, "_fields"):
        return cls(*parts)
    if issubclass(cls, dict):
        if cls is dict:
            return dict(zip(structure.keys, parts, strict=True))
        made = cls()
        made.update(zip(structure.keys, parts, strict=True))
        return made
    made = object.__new__(cls)
    for name, part in zip(structure.keys, parts, strict=True):
        object.__setattr__(made, name, part)
    return made
