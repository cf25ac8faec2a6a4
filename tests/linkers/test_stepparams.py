"""Parameters of C steps: what C reads is what stands in the classes beside the lowerings."""

import ctypes
import importlib
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import pytest

import opwise.tensor as T
from opwise import FunctionGraph
from opwise.linkers import cystructs, opwise_c, stepparams
from opwise.linkers.compiled import Bound
from opwise.linkers.lowering import CStep
from opwise.linkers.program import make_program

pytestmark = pytest.mark.null

CLASSES = '''
class Side(IntEnum):
    """Left or right."""

    LEFT = 0
    RIGHT = 1


class Edge(NamedTuple):
    """A bound."""

    at: int
    side: Side = Side.LEFT


class InnerStep(CStep):
    """A step inside."""

    lengths: tuple[int, int]


class OuterStep(CStep):
    """Everything that a step may have."""

    kind: str = "outer"
    #: about how many
    #: nanoseconds
    nanoseconds: float
    flag: bool
    bounds: tuple[Edge, ...]
    inner: InnerStep
    masks: tuple[int, ...]
    side: Side
'''


class Side(IntEnum):
    LEFT = 0
    RIGHT = 1


class Edge(NamedTuple):
    at: int
    side: Side = Side.LEFT


@dataclass(frozen=True, kw_only=True)
class InnerStep(CStep):
    lengths: "tuple[int, int]"


@dataclass(frozen=True, kw_only=True)
class OuterStep(CStep):
    kind: str = "outer"
    nanoseconds: "float"
    flag: "bool"
    bounds: "tuple[Edge, ...]"
    inner: "InnerStep"
    masks: "tuple[int, ...]"
    side: "Side"


class Many(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int64), ("at", ctypes.c_int64)]


class Outer(ctypes.Structure):
    """ow_outer_params, as a C compiler lays it out."""

    _fields_ = [
        ("nanoseconds", ctypes.c_double), ("flag", ctypes.c_int64), ("bounds", Many),
        ("lengths", ctypes.c_int64 * 2), ("masks", Many), ("side", ctypes.c_int64),
    ]  # fmt: skip


def test_a_step_is_packed_as_its_struct():
    step = OuterStep(
        nanoseconds=0.5, flag=True, bounds=(Edge(7), Edge(-8, Side.RIGHT)),
        inner=InnerStep("inner", lengths=(3, 4)), masks=(5,), side=Side.RIGHT,
    )  # fmt: skip
    packed = stepparams.pack(step)
    outer = Outer.from_buffer_copy(packed)
    assert (outer.nanoseconds, outer.flag, outer.side, list(outer.lengths)) == (0.5, 1, 1, [3, 4])
    assert outer.bounds.at == ctypes.sizeof(Outer) and outer.bounds.count == 2

    def words(many, n):
        return list((ctypes.c_int64 * n).from_buffer_copy(packed, many.at))

    assert words(outer.bounds, 4) == [7, 0, -8, 1] and words(outer.masks, 1) == [5]
    assert len(packed) == outer.masks.at + 8


def test_structs_are_those_of_the_classes():
    source = stepparams.Source()
    source.read(CLASSES, "here.py")
    text = re.sub(r"/\*.*?\*/|\s+", " ", source.header())
    text = re.sub(r"\s+", " ", text)
    assert "enum { OW_SIDE_LEFT = 0, OW_SIDE_RIGHT = 1 };" in text
    assert "typedef struct ow_edge { int64_t at; int64_t side; } ow_edge;" in text
    assert "typedef struct ow_inner_params { int64_t lengths[2]; } ow_inner_params;" in text
    assert (
        "typedef struct ow_outer_params { double nanoseconds; int64_t flag; ow_many bounds; "
        "ow_inner_params inner; ow_many masks; int64_t side; } ow_outer_params;"
    ) in text
    assert "const ow_edge *ow_outer_bounds(const ow_outer_params *p)" in text
    assert "/* about how many nanoseconds */" in source.header()


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("x: list[int]", "list.int. is no type"),
        ("x: tuple[int, float]", "the elements of an array have one type"),
        ("x: Unknown", "Unknown is no type"),
        ("x: OuterStep", "OuterStep is no type"),  # it has tuples behind it
        ("kind: str = 'this'", "it has no parameters"),
    ],
)
def test_what_has_no_counterpart_in_c_fails_the_build(field, message):
    source = stepparams.Source()
    source.read(CLASSES, "here.py")
    with pytest.raises(SyntaxError, match=f"class WrongStep: .*{message}") as caught:
        source.read(f'class WrongStep(CStep):\n    """A step."""\n    {field}\n', "there.py")
    assert (caught.value.filename, caught.value.lineno) == ("there.py", 1)


def test_a_class_says_what_it_is():
    with pytest.raises(SyntaxError, match="class WrongStep: it has no docstring"):
        stepparams.Source().read("class WrongStep(CStep):\n    x: int\n", "there.py")


def test_an_array_has_its_length():
    with pytest.raises(TypeError, match="lengths has 2 elements, not 3"):
        stepparams.pack(InnerStep("inner", lengths=(1, 2, 3)))


def step_classes():
    for name in stepparams.MODULES:
        module = importlib.import_module(f"opwise.linkers.{name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, CStep) and value is not CStep:
                yield value


def test_c_takes_the_parameters_of_each_kind():
    kinds = opwise_c.kinds()
    named = {cls: vars(cls)["kind"] for cls in step_classes() if "kind" in vars(cls)}
    assert len(named) > 20
    for cls, kind in named.items():
        fields = stepparams._parameters(cls)
        known = all(field.of in ("bool", "int", "float") for field in fields)
        if known:
            words = sum(2 if field.count is None else field.count for field in fields)
            assert kinds[kind] == 8 * words, cls
        assert kinds[kind] > 0
    assert {kind for kind, size in kinds.items() if size} >= set(named.values())


@pytest.mark.parametrize("params", [b"", bytes(8)])
def test_the_vm_refuses_other_parameters(params):
    """``solve`` has five of them, ``shape`` none."""
    kind, size = ("solve", 40) if not params else ("shape", 0)
    x = T.dvector()
    fgraph = FunctionGraph([x], [x + 1], clone=False)
    program = make_program(fgraph)
    bound, message = [Bound(kind, params)], f"{size} bytes, not of {len(params)}"
    with pytest.raises(TypeError, match=f"{kind} has parameters of {message}"):
        opwise_c.VM(program, [(12, 1, 8, 0)] * len(program.variables), bound, [[None]] * 9, None)


def test_cython_is_told_of_fields_as_their_headers_have_them():
    text = cystructs.generate()["structs_runtime.pxi"]
    assert re.search(
        r"ctypedef struct ow_slot:\n        char \*data\n        int64_t shape\[8\]", text
    )
    assert 'ow_slot **in_ "in"' in text and "finish)" not in text
    with pytest.raises(LookupError, match="no struct ow_missing"):
        list(cystructs._fields("struct ow_other { int x; };", "ow_missing", {"int"}))
