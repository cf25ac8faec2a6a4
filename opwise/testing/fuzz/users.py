"""The steps of growing a random program that add Ops of users, and graphs inside Ops."""

from __future__ import annotations

from opwise.testing.fuzz.grow import Grower
from opwise.testing.fuzz.steps import gradient_of, step

#: what a graph inside an Op computes of the floats a, which have rows
_INSIDE = (
    "T.tanh(a)", "a * 2 + 1", "T.tile(a, 2)", "T.repeat(a, 2, axis=0)", "a[::-1]", "a[1:]",
    "T.concatenate([a, a[:1]])", "T.zeros((a.shape[0] + 1,))", "T.arange(a.shape[0] * 2)",
    "T.sum(a, axis=-1)", "a * 0.5 - a.sum(axis=-1, keepdims=True)", "T.zeros_like(a)",
    "userops.graph(lambda b: T.tile(b, 2) + 1, a)[0]", "T.sqr(a) / (1 + T.sqr(a))", "a.shape",
    "theano.scan(lambda r: T.tanh(r), a)[0]", "userops.Several(True)(a)[0]",
    "userops.Source('int64', (), True)() + a", "T.sum(a[0])", "T.nnet.softmax(a.dimshuffle('x', 0))"
    " if a.ndim == 1 else T.nnet.softmax(a)",
)  # fmt: skip


def _shape(g: Grower) -> tuple[int, ...]:
    return tuple(g.choice(g.sizes) for _ in range(g.below(4)))


def _rows(g: Grower) -> str:
    """Return the name of a tensor of finite floats of one or two dimensions."""
    return g.pick("f", 1, 2, level=0, where=lambda n: g.dtype(n) != "float16")


@step(4)
def from_nothing(g: Grower) -> object:
    """An Op without inputs, alone or beside an operand."""
    if g.chance(50):
        x = g.pick("f")
        lengths = tuple(1 if g.chance(20) else n for n in g.shape(x))
        form = g.choice(["{x} + {s}", "{s} * {x}", "T.maximum({x}, {s})"])
    else:
        x, lengths = "", _shape(g)
        form = g.choice(["{s}", "{s}", "T.sum({s}, axis=-1, keepdims=True) + {s}", "{s}.shape"])
    dtype = g.choice(["float64", "float32", "int64", "int8"])
    source = f"userops.Source({dtype!r}, {lengths}, {g.chance(50)})()"
    if g.chance(30):
        source = f"userops.source({dtype!r}, {lengths})"
    return g.add(form.format(x=x, s=source))


@step(1)
def length_from_nothing(g: Grower) -> object:
    """A length that an Op without inputs gives."""
    n = "userops.Source('int64', (1,), True)()[0] + 2"
    x = g.pick("f", 0, 0)
    return g.add(g.choice([f"T.zeros(({n},))", f"T.alloc({x}, {n}, 2)", f"T.arange({n})"]))


@step(3)
def with_several_results(g: Grower) -> object:
    """One or two of the results of an Op."""
    x = g.pick("biuf", 1, 3, level=0)
    made = f"userops.Several({g.chance(50)})({x})"
    form = g.choice(
        ["{m}[0]", "{m}[1]", "{m}[2]", "{m}[0] * {m}[1]", "{m}[0].shape", "{m}[1].sum()"]
    )
    y = g.add(form.format(m=made))
    return gradient_of(g, y) if g.kind(y) == "f" and g.chance(40) else y


@step(2)
def views(g: Grower) -> object:
    """Views of operands, which rewrites must not take for new memory."""
    x = g.pick("iuf", 1, level=0)
    y = g.add(f"userops.Viewing({g.chance(50)})({x})", arithmetic=False)
    return gradient_of(g, y) if g.kind(y) == "f" and g.chance(40) else y


@step(2)
def through_other_types(g: Grower) -> object:
    """A value that is no tensor on its way, and one of which a thunk asks for."""
    x = g.pick("biuf", level=0)
    if g.chance(50):
        return g.add(f"userops.boxed({x})", arithmetic=False)
    c = g.leaf("int8", (), finite=True)
    y = g.like(x, same_dtype=True)
    if g.var(x).type != g.var(y).type:
        y = x
    return g.add(f"userops.Lazy()({c}, {x} + {x}, {y})")


@step(6)
def of_graphs(g: Grower) -> object:
    """The results of a graph inside an Op, and their shapes."""
    x = _rows(g)
    results = ", ".join(g.choice(_INSIDE) for _ in range(g.between(1, 2)))
    inline = ", inline=True" if g.chance(40) else ""
    made = f"userops.graph(lambda a: [{results}], {x}{inline})[0]"
    y = g.add(made + g.choice(["", "", ".shape", ".shape[0] + 1", ".sum()"]))
    return gradient_of(g, y) if g.kind(y) == "f" and g.chance(40) else y
