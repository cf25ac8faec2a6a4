"""Graphs as data: a list of records, each of which refers to earlier ones by number.

A Writer turns a graph into records that JSON can hold, the same ones for equal graphs in every
process. It writes the graph as written by the user first, which identifies it, then the optimized
graph, which refers to it. A Reader has the same objects under the same numbers, and makes the later
ones again: Applys with their traces and origins.

Records hold numbers, texts, arrays, and Types, Ops, scalar operations and their settings with their
attributes, of the modules of opwise that define such. Anything else is ``Unwritable``, as is an Op
of a user, whose code may change.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType, FunctionType, MappingProxyType
from typing import Any

import numpy as np

from opwise.graph import flat, traversal
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.type import Type
from opwise.graph.variable import Constant, Scratchpad, Variable

#: what a record contains: what JSON does
Data = Any

#: the modules whose classes records may name, by the beginnings of their names; none of them loads
#: or runs files
_MODULES = (
    "opwise.compile.fromgraph", "opwise.gradient", "opwise.graph.null", "opwise.loops.",
    "opwise.scalar.", "opwise.sparse.", "opwise.tensor.",
)  # fmt: skip
#: what makes a copy of an object by its attributes, in the terms of ``__reduce_ex__``
_NEW: Any = object().__reduce_ex__(4)[0]
#: the attributes of tags that opwise reads; their values are written
_TAGS = ("indestructible", "is_rng", "nan_guard_mode_check", "values_eq_approx")


class Unwritable(Exception):
    """A graph contains what records cannot hold."""


class Unreadable(Exception):
    """Records do not have the form that a Writer gives them."""


class ByReference:
    """Base of Ops and Types of a program that records refer to, but do not hold.

    A graph as written may contain them: a Reader has its own. Rewrites may know of them what
    ``record_text`` says, and which of them are equal.
    """

    def record_text(self) -> str:
        """Return what rewrites may depend on, the same text in every process."""
        raise NotImplementedError


class Numbered:
    """The objects, variables and Applys that records refer to by number."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.variables: list[Variable] = []
        self.applys: list[Apply] = []


# --- writing --------------------------------------------------------------------------------------


class Writer:
    """Writes graphs; ``take`` returns what it has written.

    most_bytes: graphs with larger arrays, all together, are Unwritable.
    """

    def __init__(self, most_bytes: float = math.inf) -> None:
        self.most_bytes = most_bytes
        self.numbered = Numbered()
        self._records: list[Data] = []
        self._arrays: list[bytes] = []
        #: total size of the arrays, in bytes
        self._nbytes = 0
        self._objects: dict[int, int] = {}
        #: numbers of objects by record: equal objects are one
        self._texts: dict[str, int] = {}
        self._variables: dict[Variable, int] = {}
        #: constants of the graph as written, which may belong to other graphs: later ones copy them
        self._constants: dict[Variable, int] = {}
        self._applys: dict[Apply, int] = {}
        #: numbers of Applys by the ids of their trace and context
        self._traces: dict[tuple[int, int], int] = {}
        #: the origins of each Apply when it was written
        self._own_origins: list[tuple[Apply, ...] | None] = []
        #: (number of an Apply, place among its origins) by the id of an origin
        self._origins: dict[int, tuple[int, int]] = {}
        #: number of the first Apply with some origins by the id of their tuple
        self._same_origins: dict[int, int] = {}
        self._kept: list[Any] = []
        #: numbers of what is not held
        self._by_reference: dict[ByReference, int] = {}
        #: whether what is written now follows a graph as written
        self._follows = False

    def take(self) -> tuple[list[Data], bytes]:
        """Return (records, arrays) since the last call."""
        if not self._follows:
            self._follows = True
            self._constants = {v: n for v, n in self._variables.items() if isinstance(v, Constant)}
            for var in self._constants:
                del self._variables[var]
        taken = self._records, b"".join(self._arrays)
        self._records, self._arrays, self._nbytes = [], [], 0
        return taken

    def inputs(self, variables: Iterable[Variable]) -> None:
        """Write the inputs of a graph: a Reader is given them."""
        for var in variables:
            self._number(var)
            kind = f"{type(var).__module__}.{type(var).__qualname__}"
            self._records.append(["i", kind, self._object(var.type), var.name, self._tag(var)])

    def alias(self, copies: Mapping[Variable, Variable]) -> None:
        """Take variables for their copies, where the copies are written."""
        known = self._variables
        known.update({var: known[new] for var, new in copies.items() if new in known})

    def copied(
        self, copies: Mapping[Variable, Variable], nodes: Iterable[Apply], made: Iterable[Apply]
    ) -> None:
        """Take copies for what was written, after the first ``take``.

        copies: {variable: its copy}. nodes, made: Applys, and their copies.
        """
        constants = self._constants
        constants.update({copies[var]: n for var, n in constants.items() if var in copies})
        for node, new in zip(nodes, made, strict=True):
            number = self._applys[new] = self._applys[node]
            self._own_origins[number] = node.origins

    def graph(self, nodes: Iterable[Apply], outputs: Iterable[Variable]) -> None:
        """Write Applys, each after those that it depends on, and the outputs of a graph.

        Applys that were written before are written again, as they are now.
        """
        for node in nodes:
            self._apply(node)
        self._records.append(["g", [self._variable(var) for var in outputs]])

    def value(self, value: Any) -> Data:
        """Return a value as data; raise Unwritable for one of another kind."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        write = _WRITE.get(kind)
        if write is not None:
            return write(self, value)
        if isinstance(value, Variable):
            return ["v", self._variable(value)]
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value)
        if isinstance(value, np.dtype):
            return ["y", _dtype_text(value)]
        if isinstance(value, type) and issubclass(value, np.generic):
            return ["Y", _dtype_text(np.dtype(value))]
        return ["r", self._object(value)]

    # --- objects ----------------------------------------------------------------------------------

    def _object(self, value: Any) -> int:
        """Return the number of an object, which is written if it is new."""
        number = self._objects.get(id(value))
        if number is not None:
            return number
        if isinstance(value, ByReference):
            return self._reference(value)
        try:
            reduced = value.__reduce_ex__(4)
        except Exception as e:  # any class may refuse
            raise Unwritable(f"{value!r}: {e}") from e
        if not isinstance(reduced, tuple) or any(part is not None for part in reduced[3:]):
            raise Unwritable(f"{value!r} of {type(value)}")
        make, args, state = (*reduced, None)[:3]
        called = make is not _NEW
        cls, args = (make, args) if called else (args[0], args[1:])
        if cls is not type(value) or (called and not issubclass(cls, Type)):
            raise Unwritable(f"{value!r} of {type(value)} is made by {make}")
        record = [
            "c" if called else "o", _class_name(cls), [self.value(one) for one in args],
            self.value(state),
        ]  # fmt: skip
        text = repr(record) if not isinstance(value, Op) or hasattr(cls, "__props__") else ""
        number = self._texts.get(text) if text else None
        if number is None:
            number = len(self.numbered.objects)
            self.numbered.objects.append(value)
            self._records.append(record)
            if text:
                self._texts[text] = number
        self._objects[id(value)] = number
        self._kept.append(value)
        return number

    def _reference(self, value: ByReference) -> int:
        """Return the number of an object that is not held: one of the graph as written."""
        number = self._by_reference.get(value)
        if number is None:
            if self._follows:
                raise Unwritable(f"{value!r} is not in the graph as written")
            number = self._by_reference[value] = len(self.numbered.objects)
            self.numbered.objects.append(value)
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            self._records.append(["x", kind, value.record_text()])
        self._objects[id(value)] = number
        self._kept.append(value)
        return number

    def _array(self, value: Any) -> Data:
        """Write an array with its layout, on which the last bits of what is computed depend."""
        dtype = value.dtype
        if type(value) is not np.ndarray and isinstance(value, np.ndarray):
            raise Unwritable(f"an array of {type(value)}")
        text = _dtype_text(dtype)
        if isinstance(value, np.generic):
            return ["g", text, value.tobytes().hex()]
        strides = _strides(value)
        own = value[_once(strides)]
        low, high = _extent(value.shape, strides, dtype.itemsize)
        if self._nbytes + max(own.nbytes, high - low) > self.most_bytes:
            raise Unwritable(f"arrays of more than {self.most_bytes} bytes")
        content = own.tobytes()
        start = self._nbytes
        self._arrays.append(content)
        self._nbytes += len(content)
        layout = [list(value.shape), strides, value.flags.aligned]
        return ["n", text, *layout, start, len(content)]

    # --- variables and Applys ---------------------------------------------------------------------

    def _number(self, var: Variable) -> int:
        number = self._variables[var] = len(self.numbered.variables)
        self.numbered.variables.append(var)
        return number

    def _variable(self, var: Variable) -> int:
        """Return the number of a variable, which is written with what it depends on."""
        number = self._variables.get(var)
        if number is None and var.owner is None:
            return self._leaf(var)
        if number is None:
            for node in traversal.io_toposort([], [var]):
                if node not in self._applys:
                    self._apply(node)
            number = self._variables[var]
        return number

    def _leaf(self, var: Variable) -> int:
        if type(var) not in (var.type.Constant, var.type.Variable):
            raise Unwritable(f"{var} of {type(var)}")
        copied = self._constants.get(var)
        if copied is not None:
            self._records.append(["k", copied, var.name, self._tag(var)])
            return self._number(var)
        value = [self.value(var.data)] if isinstance(var, Constant) else []
        record = ["l", self._object(var.type), var.name, self._tag(var), *value]
        self._records.append(record)
        return self._number(var)

    def _apply(self, node: Apply) -> None:
        for needed in flat.inner(node, self._applys.__contains__):
            self._apply(needed)
        variables, objects = self._variables, self._objects
        inputs = [
            self._variable(var) if (number := variables.get(var)) is None else number
            for var in node.inputs
        ]
        outputs: list[Data] = []
        for var in node.outputs:
            type_ = var.type
            if type(var) is not type_.Variable:
                raise Unwritable(f"{var} of {type(var)}")
            known = objects.get(id(type_))
            kind = self._object(type_) if known is None else known
            outputs.append([kind, var.name, None if var._tag is None else self._tag(var)])
        known = objects.get(id(node.op))
        op = self._object(node.op) if known is None else known
        traced, origins = self._provenance(node)
        self._records.append(["a", op, inputs, outputs, traced, origins])
        count = self._applys[node] = len(self.numbered.applys)
        self.numbered.applys.append(node)
        self._own_origins.append(node._origins)
        if node.trace is not None:
            self._traces.setdefault((id(node.trace), id(node.context)), count)
        if node._origins is None or id(node._origins) not in self._same_origins:
            self._same_origins[id(node._origins)] = count
            for place, origin in enumerate(node.origins):
                self._origins.setdefault(id(origin), (count, place))
        for var in node.outputs:
            self._number(var)

    def _provenance(self, node: Apply) -> tuple[int | None, Data]:
        """Return (number of the Apply whose trace it has or None, its origins).

        Origins: their numbers; or the number of an Apply that has the same ones; or None: those of
        the Apply with its trace.
        """
        if not self._follows:
            return None, None
        written = self._applys.get(node)
        if written is not None and node._origins == self._own_origins[written]:
            return written, None
        trace = (id(node.trace), id(node.context))
        traced = None if node.trace is None else self._traces.get(trace)
        if node.trace is not None and traced is None:
            raise Unwritable(f"{node} has a trace that the graph as written has not")
        if node._origins and id(node._origins) in self._same_origins:
            return traced, self._same_origins[id(node._origins)]
        return traced, [self._origin(origin) for origin in node._origins or ()]

    def _origin(self, node: Apply) -> tuple[int, int]:
        """Return (number of an Apply, place among its origins) of an origin."""
        found = self._origins.get(id(node))
        if found is None:  # as in a graph inside an Op that was made anew
            self._variable(node.outputs[0])
            found = self._origins[id(node)]
        return found

    def _tag(self, var: Variable) -> Data:
        if var._tag is None:
            return None
        found = {name: vars(var._tag)[name] for name in _TAGS if name in vars(var._tag)}
        return self.value(found) if found else None

    def _function(self, value: FunctionType) -> Data:
        name = f"{value.__module__}:{value.__qualname__}"
        if not _is_comparison(name) or _found(name) is not value:
            raise Unwritable(f"the function {name}")
        return ["f", name]


def _write_sequence(mark: str) -> Callable[[Writer, Any], Data]:
    return lambda writer, values: [mark, *map(writer.value, values)]


def _write_set(mark: str) -> Callable[[Writer, Any], Data]:
    def write(writer: Writer, values: Any) -> Data:
        return [mark, *sorted(map(writer.value, values), key=repr)]

    return write


def _write_dict(mark: str) -> Callable[[Writer, Any], Data]:
    def write(writer: Writer, values: Any) -> Data:
        return [mark, *([writer.value(k), writer.value(v)] for k, v in values.items())]

    return write


_PLAIN = frozenset({type(None), bool, int, float, str})
_WRITE: dict[type, Callable[[Writer, Any], Data]] = {
    tuple: _write_sequence("t"),
    list: _write_sequence("["),
    set: _write_set("{"),
    frozenset: _write_set("F"),
    dict: _write_dict("d"),
    MappingProxyType: _write_dict("m"),
    slice: lambda writer, s: ["s", *map(writer.value, (s.start, s.stop, s.step))],
    EllipsisType: lambda writer, _: ["..."],
    complex: lambda writer, z: ["z", z.real, z.imag],
    FunctionType: Writer._function,
}


# --- reading --------------------------------------------------------------------------------------


class Reader:
    """Makes what records describe, under the numbers after those of ``numbered``.

    numbered: of the Writer of a graph that is the same as the one whose records came first.
    """

    def __init__(self, numbered: Numbered) -> None:
        self.numbered = numbered
        self._arrays = b""

    def graph(self, records: Iterable[Data], arrays: bytes) -> list[Variable]:
        """Return the outputs of the graph in records. arrays: what they say is in arrays.

        Raises Unreadable for what no Writer has made; nothing of it has a number then.
        """
        self._arrays = arrays
        outputs: list[Variable] = []
        known = self.numbered
        before = [(them, len(them)) for them in (known.objects, known.variables, known.applys)]
        try:
            for kind, *record in records:
                if kind == "g":
                    outputs = [known.variables[i] for i in record[0]]
                else:
                    _RECORDS[kind](self, *record)
        except Exception as e:  # classes may raise any for attributes that they do not know
            for them, length in before:  # the numbers of what is read or written next
                del them[length:]
            raise Unreadable(f"{type(e).__name__}: {e}") from e
        return outputs

    def value(self, data: Data) -> Any:
        """Return the value that ``Writer.value`` has written."""
        if type(data) is not list:
            return data
        return _READ[data[0]](self, *data[1:])

    def _object(self, name: str, args: Sequence[Data], state: Data, called: bool = False) -> None:
        cls = _found(name)
        if not isinstance(cls, type) or (called and not issubclass(cls, Type)):
            raise Unreadable(f"{name} is no class of a type or an operation")
        values = [self.value(one) for one in args]
        made = cls(*values) if called else cls.__new__(cls, *values)
        attributes = self.value(state)
        if attributes is not None:
            if hasattr(made, "__setstate__"):
                made.__setstate__(attributes)
            else:
                made.__dict__.update(attributes)
        self.numbered.objects.append(made)

    def _called(self, name: str, args: Sequence[Data], state: Data) -> None:
        self._object(name, args, state, called=True)

    def _array(
        self, dtype: str, shape: Sequence[int], strides: Sequence[int], aligned: bool,
        start: int, length: int,
    ) -> np.ndarray[Any, Any]:  # fmt: skip
        kind = np.dtype(dtype)
        content = self._arrays[start : start + length]
        if len(content) != length:
            raise ValueError("the content of an array is missing")
        flat = np.frombuffer(content, kind)
        low, high = _extent(shape, strides, kind.itemsize)
        # the memory of an array is aligned for every dtype
        memory = np.zeros(high - low + (not aligned), np.uint8)
        found: np.ndarray[Any, Any] = np.ndarray(
            shape, kind, memory, offset=-low + (not aligned), strides=strides
        )
        own = found[_once(strides)]
        own[...] = flat.reshape(own.shape)
        return found

    def _leaf(self, kind: int, name: str | None, tag: Data, *value: Data) -> None:
        type_: Type = self.numbered.objects[kind]
        cls = type_.Constant if value else type_.Variable
        var: Any = cls.__new__(cls)
        Variable.__init__(var, type_, name=name)
        if value:
            var.data = self.value(value[0])
            var._signature = var._unique_value = None
        self._set_tag(var, tag)
        self.numbered.variables.append(var)

    def _copy(self, number: int, name: str | None, tag: Data) -> None:
        new = self.numbered.variables[number].clone()
        new.name = name
        self._set_tag(new, tag)
        self.numbered.variables.append(new)

    def _set_tag(self, var: Variable, tag: Data) -> None:
        if tag is not None:
            var._tag = Scratchpad()
            vars(var._tag).update(self.value(tag))

    def _apply(
        self, op: int, inputs: Sequence[int], outputs: Sequence[Data], traced: int | None,
        origins: Sequence[tuple[int, int]] | int | None,
    ) -> None:  # fmt: skip
        known = self.numbered
        node = Apply.__new__(Apply)
        node.op = known.objects[op]
        node.inputs = [known.variables[i] for i in inputs]
        node.outputs = []
        node.fgraph = node.trace = node.context = node._tag = node._origins = None
        if traced is not None:
            old = known.applys[traced]
            node.trace, node.context = old.trace, old.context
            if origins is None:
                node._origins = old.origins
        if isinstance(origins, int):
            node._origins = known.applys[origins].origins
        elif origins:
            node._origins = tuple(known.applys[k].origins[place] for k, place in origins)
        for i, (kind, name, tag) in enumerate(outputs):
            type_: Type = known.objects[kind]
            var = type_.Variable.__new__(type_.Variable)
            Variable.__init__(var, type_, node, i, name)
            self._set_tag(var, tag)
            node.outputs.append(var)
            known.variables.append(var)
        known.applys.append(node)


_RECORDS: dict[str, Callable[..., None]] = {
    "o": Reader._object,
    "c": Reader._called,
    "l": Reader._leaf,
    "k": Reader._copy,
    "a": Reader._apply,
}


def _read_items(make: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda reader, *items: make(map(reader.value, items))


def _read_pairs(make: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda reader, *items: make({reader.value(k): reader.value(v) for k, v in items})


_READ: dict[str, Callable[..., Any]] = {
    "t": _read_items(tuple),
    "[": _read_items(list),
    "{": _read_items(set),
    "F": _read_items(frozenset),
    "d": _read_pairs(dict),
    "m": _read_pairs(MappingProxyType),
    "s": lambda reader, *parts: slice(*map(reader.value, parts)),
    "...": lambda reader: ...,
    "z": lambda reader, real, imaginary: complex(real, imaginary),
    "v": lambda reader, number: reader.numbered.variables[number],
    "r": lambda reader, number: reader.numbered.objects[number],
    "n": Reader._array,
    "g": lambda reader, dtype, text: np.frombuffer(bytes.fromhex(text), np.dtype(dtype))[0],
    "y": lambda reader, dtype: np.dtype(dtype),
    "Y": lambda reader, dtype: np.dtype(dtype).type,
    "f": lambda reader, name: _comparison(name),
}


# --- names ----------------------------------------------------------------------------------------


def _strides(array: Any) -> list[int]:
    """Return the strides of an array; those of one without elements mean nothing, and are 0.

    Pickles change them.
    """
    return list(array.strides) if array.size else [0] * array.ndim


def _once(strides: Sequence[int]) -> tuple[Any, ...]:
    """Return the index of an array without the repetitions that strides of 0 make."""
    return (*(slice(None) if stride else slice(1) for stride in strides), ...)


def _extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Return where the memory of an array begins and ends, in bytes from its first element."""
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum(min(0, r) for r in reach), sum(max(0, r) for r in reach) + itemsize


def _dtype_text(dtype: np.dtype[Any]) -> str:
    if dtype.hasobject or dtype.fields is not None:
        raise Unwritable(f"the dtype {dtype}")
    return dtype.str


def _class_name(cls: Any) -> str:
    """Return 'module:class' for a class that records may name; raise Unwritable for any other."""
    if not isinstance(cls, type):
        raise Unwritable(f"{cls}")
    name = f"{cls.__module__}:{cls.__qualname__}"
    try:
        found = _found(name)
    except (Unreadable, AttributeError, ImportError):
        found = None
    if found is not cls:
        raise Unwritable(f"the class {name}")
    return name


def _found(name: str) -> Any:
    """Return what a module of ``_MODULES`` has under 'module:name'."""
    module, _, path = name.partition(":")
    if not module.startswith(_MODULES):
        raise Unreadable(f"{name} is no class of a type or an operation")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _is_comparison(name: str) -> bool:
    return name.partition(":")[2].startswith("values_eq_approx")


def _comparison(name: str) -> Any:
    if not _is_comparison(name):
        raise Unreadable(f"{name} is no comparison of values")
    return _found(name)
