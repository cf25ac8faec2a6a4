"""The names of ``theano.misc.pkl_utils``: pickles without traces, and pickles in zip archives.

In an archive, every array is a file of numpy's format with the name of its shared variable, so that
``numpy.load`` reads it too.
"""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from copy import copy
from pickle import DEFAULT_PROTOCOL, HIGHEST_PROTOCOL, Pickler
from typing import Any, BinaryIO

import numpy as np

from opwise.compile.shared import SharedVariable
from opwise.graph.variable import Scratchpad
from opwise.py2.pickles import Unpickler

__all__ = [
    "DEFAULT_PROTOCOL",
    "HIGHEST_PROTOCOL",
    "CompatUnpickler",
    "PersistentGpuArrayID",
    "PersistentNdarrayID",
    "PersistentNdarrayLoad",
    "PersistentSharedVariableID",
    "Pickler",
    "StripPickler",
    "dump",
    "load",
    "min_recursion",
    "zipadd",
]

#: how deep Theano's pickles of graphs recurse
min_recursion = 3000
if sys.getrecursionlimit() < min_recursion:
    sys.setrecursionlimit(min_recursion)

#: the name of the pickle in an archive
_PICKLE = "pkl"


class CompatUnpickler(Unpickler):
    """Reads pickles that Python 2 or genuine Theano wrote."""


class StripPickler(pickle.Pickler):
    """Writes pickles without attributes of tags: ``trace``, ``test_value`` and those given.

    The objects keep them. extra_tag_to_remove: names of more attributes.
    """

    def __init__(
        self, file: BinaryIO, protocol: int = 0, extra_tag_to_remove: list[str] | None = None
    ):
        super().__init__(file, protocol)
        self.tag_to_remove = ["trace", "test_value", *(extra_tag_to_remove or [])]

    def reducer_override(self, obj: Any) -> Any:
        """Pickle a tag without the attributes to remove."""
        if type(obj) is not Scratchpad or not set(self.tag_to_remove) & set(vars(obj)):
            return NotImplemented
        kept = copy(obj)
        for name in self.tag_to_remove:
            vars(kept).pop(name, None)
        return kept.__reduce_ex__(2)


class PersistentNdarrayID:
    """Writes each array once into an archive; called by a pickler with every object.

    zip_file: the archive. Returns what the pickle holds instead of an array, else None.
    """

    def __init__(self, zip_file: zipfile.ZipFile):
        self.zip_file = zip_file
        self.count = 0
        self.seen: dict[int, str] = {}

    def _resolve_name(self, obj: Any) -> str:
        """Return the name of the file of an array."""
        name = f"array_{self.count}"
        self.count += 1
        return name

    def __call__(self, obj: Any) -> str | None:
        if type(obj) is not np.ndarray:
            return None
        if id(obj) not in self.seen:
            name = self._resolve_name(obj)
            zipadd(lambda file: np.lib.format.write_array(file, obj), self.zip_file, name)
            self.seen[id(obj)] = f"ndarray.{name}"
        return self.seen[id(obj)]


class PersistentGpuArrayID(PersistentNdarrayID):
    """The same: the values of shared variables are arrays of the host when they are pickled."""


class PersistentSharedVariableID(PersistentGpuArrayID):
    """Names the file of an array after its shared variable.

    allow_unnamed: accept shared variables without a name. allow_duplicates: number those of one
    name (x, x_2, x_3). Otherwise they raise ValueError.
    """

    def __init__(
        self, zip_file: zipfile.ZipFile, allow_unnamed: bool = True, allow_duplicates: bool = True
    ):
        super().__init__(zip_file)
        self.name_counter: Counter[str] = Counter()
        self.ndarray_names: dict[int, str] = {}
        self.allow_unnamed = allow_unnamed
        self.allow_duplicates = allow_duplicates

    def _resolve_name(self, obj: Any) -> str:
        name = self.ndarray_names.get(id(obj))
        if name is None:
            return super()._resolve_name(obj)
        self.name_counter[name] += 1
        number = self.name_counter[name]
        if number == 1:
            return name
        if not self.allow_duplicates:
            raise ValueError(
                f"several shared variables have the name {name!r}: give each its own, or allow "
                "duplicates"
            )
        return f"{name}_{number}"

    def __call__(self, obj: Any) -> str | None:
        if isinstance(obj, SharedVariable):
            if obj.name == _PICKLE:
                raise ValueError(
                    f"a shared variable has the name {_PICKLE!r}, which the archive needs for "
                    "itself: rename it"
                )
            if obj.name:
                value = obj.get_value(borrow=True)
                self.ndarray_names[id(value)] = obj.name
            elif not self.allow_unnamed:
                raise ValueError(f"a shared variable has no name: {obj!r}")
        return super().__call__(obj)


class PersistentNdarrayLoad:
    """Reads the arrays of an archive, each once; called by an unpickler.

    Arrays of GPUs become arrays of the host.
    """

    def __init__(self, zip_file: zipfile.ZipFile):
        self.zip_file = zip_file
        self.cache: dict[str, Any] = {}

    def __call__(self, persid: str) -> Any:
        kind, _, name = persid.partition(".")
        if name not in self.cache:
            with self.zip_file.open(name) as member:
                file = io.BytesIO(member.read())
            if kind == "gpuarray":
                pickle.load(file)  # the name of its GPU comes before the array
            self.cache[name] = np.lib.format.read_array(file)
        return self.cache[name]


class _NamingPickler(Pickler):
    """Asks ``named`` what stands for an object; Python 3.13 takes no function as persistent_id."""

    named: Callable[[Any], Any]

    def persistent_id(self, obj: Any) -> Any:
        return self.named(obj)


class _NamingUnpickler(CompatUnpickler):
    """Asks ``named`` for the object that a name stands for."""

    named: Callable[[Any], Any]

    def persistent_load(self, pid: Any) -> Any:
        return self.named(pid)


def dump(
    obj: Any,
    file_handler: Any,
    protocol: int = DEFAULT_PROTOCOL,
    persistent_id: Callable[[zipfile.ZipFile], Any] = PersistentSharedVariableID,
) -> None:
    """Pickle an object into a zip archive, with each array in a file of its own.

    file_handler: a file open for writing bytes, or a path. persistent_id: made with the archive,
    and called with each object; it returns what the pickle holds instead, or None.
    """
    with zipfile.ZipFile(file_handler, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:

        def write(file: Any) -> None:
            pickler = _NamingPickler(file, protocol)
            pickler.named = persistent_id(archive)
            pickler.dump(obj)

        zipadd(write, archive, _PICKLE)


def load(f: Any, persistent_load: Callable[[zipfile.ZipFile], Any] = PersistentNdarrayLoad) -> Any:
    """Return the object in a zip archive that ``dump`` of opwise or Theano wrote.

    persistent_load: made with the archive, and called with what the pickle holds for an array.
    """
    with zipfile.ZipFile(f, "r") as archive:
        unpickler = _NamingUnpickler(io.BytesIO(archive.read(_PICKLE)))
        unpickler.named = persistent_load(archive)
        return unpickler.load()


def zipadd(func: Callable[[Any], Any], zip_file: zipfile.ZipFile, name: str) -> None:
    """Call ``func`` with a file, and add what it writes to an archive under ``name``."""
    file = io.BytesIO()
    func(file)
    zip_file.writestr(name, file.getvalue(), zipfile.ZIP_DEFLATED)
