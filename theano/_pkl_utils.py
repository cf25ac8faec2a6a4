"""``theano.misc.pkl_utils``: pickles in zip files, in which each array is a file of its own.

``numpy.load`` reads the arrays; those of shared variables have the names of the variables. The
object itself is the file ``pkl``.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import Counter

import numpy as np

from opwise.compile.shared import SharedVariable

DEFAULT_PROTOCOL = pickle.DEFAULT_PROTOCOL
_PICKLE = "pkl"


class PersistentNdarrayID:
    """Writes each array that a pickle reaches to a zip file, and returns what stands for it."""

    def __init__(self, zip_file):
        self.zip_file = zip_file
        self.count = 0
        #: id of an array -> (what stands for it, the array, which keeps its id)
        self.seen: dict[int, tuple[str, np.ndarray]] = {}

    def _name(self, array):
        self.count += 1
        return f"array_{self.count - 1}"

    def __call__(self, obj):
        if type(obj) is not np.ndarray:
            return None
        if id(obj) not in self.seen:
            name = self._name(obj)
            with self.zip_file.open(name, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, obj)
            self.seen[id(obj)] = f"ndarray.{name}", obj
        return self.seen[id(obj)][0]


class PersistentSharedVariableID(PersistentNdarrayID):
    """The same; the values of shared variables get the names of the variables: x, x_2, x_3, ...

    allow_unnamed, allow_duplicates: if False, a variable without a name, or a second one of the
    same name, raises ValueError.
    """

    def __init__(self, zip_file, allow_unnamed=True, allow_duplicates=True):
        super().__init__(zip_file)
        self.allow_unnamed = allow_unnamed
        self.allow_duplicates = allow_duplicates
        self.used = Counter()
        self.names: dict[int, str] = {}

    def _name(self, array):
        name = self.names.get(id(array))
        if name is None:
            return super()._name(array)
        self.used[name] += 1
        if self.used[name] == 1:
            return name
        if not self.allow_duplicates:
            raise ValueError(f"Two shared variables have the name {name}: rename one of them")
        return f"{name}_{self.used[name]}"

    def __call__(self, obj):
        if isinstance(obj, SharedVariable):
            if obj.name == _PICKLE:
                raise ValueError(f"A shared variable cannot be kept under the name {_PICKLE}")
            if obj.name:
                self.names[id(obj.container.storage[0])] = obj.name
            elif not self.allow_unnamed:
                raise ValueError(f"The shared variable {obj} has no name: give it one")
        return super().__call__(obj)


class PersistentNdarrayLoad:
    """Reads the arrays of a zip file, each once."""

    def __init__(self, zip_file):
        self.zip_file = zip_file
        self.cache: dict[str, np.ndarray] = {}

    def __call__(self, persid):
        name = persid.partition(".")[2]
        if name not in self.cache:
            with self.zip_file.open(name) as file:
                self.cache[name] = np.lib.format.read_array(file)
        return self.cache[name]


def dump(obj, file_handler, protocol=DEFAULT_PROTOCOL, persistent_id=PersistentSharedVariableID):
    """Pickle an object into a zip file.

    file_handler: an open binary file. persistent_id: makes, of the ZipFile, the function that
    writes some objects to files of their own (default: arrays).
    """
    with zipfile.ZipFile(file_handler, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as zip_file:
        text = io.BytesIO()
        pickler = pickle.Pickler(text, protocol)
        pickler.persistent_id = persistent_id(zip_file)
        pickler.dump(obj)
        zip_file.writestr(_PICKLE, text.getvalue())


def load(f, persistent_load=PersistentNdarrayLoad):
    """Return the object that ``dump`` wrote to an open binary file.

    Like every pickle, the file can run any code: load only files that you trust.
    """
    with zipfile.ZipFile(f) as zip_file:
        unpickler = pickle.Unpickler(zip_file.open(_PICKLE))
        unpickler.persistent_load = persistent_load(zip_file)
        return unpickler.load()


def function_dump(filename, inputs, outputs=None, mode=None, updates=None, **arguments):
    """Pickle the arguments of ``theano.function`` into a file, to compile the function elsewhere.

    ``theano.function(**pickle.load(file))`` compiles it.
    """
    arguments.pop("extra_tag_to_remove", None)  # all tags that can be pickled are kept
    given = {"inputs": inputs, "outputs": outputs, "mode": mode, "updates": updates, **arguments}
    with open(filename, "wb") as file:
        pickle.dump(given, file, DEFAULT_PROTOCOL)
