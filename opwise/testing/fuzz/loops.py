"""The steps of growing a random program that add loops: ``scan`` in all its forms.

States are contractions, so that roundings do not grow from step to step; conditions that end a
loop, or choose a branch in one, depend on whole numbers only.
"""

from __future__ import annotations

import contextlib

from opwise.testing.fuzz.grow import Grower, Rejected
from opwise.testing.fuzz.steps import gradient_of, step

#: the next value of a state h, given a row e, of the same shape
_NEXT = (
    "0.5 * h + e", "T.tanh(h + e)", "T.maximum(0.5 * h, e)", "T.nnet.sigmoid(h) * e", "h - 0.5 * e",
    "T.switch(T.gt(i, 1), 0.5 * h, e)", "0.25 * h * T.tanh(e)", "e", "0.5 * h", "T.tanh(h)",
)  # fmt: skip
#: a result of a step, given a row e
_RESULTS = (
    "2 * e", "T.exp(-abs(e))", "e.sum()", "T.sqr(e) - e", "T.outer(e, e)", "T.dot(e, e)", "e[::-1]",
    "T.cast(i, 'float64')", "T.zeros_like(e)", "e * i", "T.tanh(e) / (1 + T.sqr(e))",
)  # fmt: skip


def _rows(g: Grower, least: int = 1) -> str:
    """Return the name of a tensor of finite floats with rows."""
    return g.pick("f", 1, 2, level=0, where=lambda n: g.shape(n)[0] >= least
                  and g.dtype(n) != "float16")  # fmt: skip


def _typed(g: Grower, text: str, x: str) -> str:
    """Return text whose value has the dtype of ``x``, and no length that is known to be 1."""
    text = f"T.cast({text}, {g.dtype(x)!r})"
    return f"T.unbroadcast({text}, *range({g.ndim(x) - 1}))" if g.ndim(x) > 1 else text


def _result(g: Grower, x: str) -> str:
    """Return text of a result of a step that reads a row e of ``x``."""
    scalar = g.ndim(x) == 1
    return g.choice(r for r in _RESULTS if not scalar or ("e[" not in r and "T.dot" not in r
                    and "T.outer" not in r and "e.sum" not in r))  # fmt: skip


def _order(g: Grower) -> str:
    """Return text of arguments that say which steps are run."""
    return g.choice(["", "", ", go_backwards=True", ", truncate_gradient=2"])


@step(4)
def mapped(g: Grower) -> object:
    """Steps that do not depend on each other."""
    x = _rows(g)
    extra = g.choice(["", f" + {g.pick('f', 0, 0, level=0)}"])
    text = (
        f"theano.scan(lambda i, e: {_result(g, x)}{extra}, [T.arange({x}.shape[0]), {x}]"
        f"{_order(g)})[0]"
    )
    return _with_gradient(g, g.add(text))


@step(6)
def recurrent(g: Grower) -> object:
    """A state, from its value one step before, and perhaps a result and a condition."""
    x = _rows(g)
    new = _typed(g, g.choice(_NEXT), x)
    first = _typed(g, g.choice([f"{x}[0]", f"T.zeros_like({x}[0])", f"0.5 * {x}[-1]"]), x)
    count = g.choice(["", "", f", n_steps={g.between(1, g.shape(x)[0])}"])
    if g.chance(30):
        returned = f"({new}, theano.scan_module.until(T.ge(i, {g.between(0, 4)})))"
        outputs, k = f"[{first}]", ""
    elif g.chance(40):
        returned = f"[{new}, {_result(g, x)}]"
        outputs, k = f"[{first}, None]", f"[{g.below(2)}]"
    else:
        returned, outputs, k = new, first, ""
    last = g.choice(["", "", "[-1]", "[-2:]", "[::2]"])
    text = (
        f"theano.scan(lambda i, e, h: {returned}, [T.arange({x}.shape[0]), {x}], {outputs}"
        f"{count}{_order(g)})[0]{k}{last}"
    )
    return _with_gradient(g, g.add(text))


@step(4)
def with_taps(g: Grower) -> object:
    """Rows before and behind, and values several steps before."""
    x = _rows(g, least=3)
    taps = g.choice([[0], [-1, 0], [0, 1], [-1, 1], [-2, 0]])
    earlier = g.choice([[-2, -1], [-3, -1], [-1, -2], [-2]])
    rows = ", ".join(f"e{k}" for k in range(len(taps)))
    values = ", ".join(f"h{k}" for k in range(len(earlier)))
    total = " + ".join([*rows.split(", "), *(f"0.3 * {h}" for h in values.split(", "))])
    new = _typed(g, g.choice([total, f"T.tanh({total})", f"T.sin({values[:2]}) * e0"]), x)
    text = (
        f"theano.scan(lambda {rows}, {values}: {new}, "
        f"{{'input': {x}, 'taps': {taps}}}, {{'initial': {x}[:3], 'taps': {earlier}}}"
        f"{_order(g)})[0]{g.choice(['', '', '[-1]', '[1:]'])}"
    )
    return _with_gradient(g, g.add(text))


@step(2)
def several_states(g: Grower) -> object:
    """States that depend on each other, and on a constant of the loop."""
    x = _rows(g)
    w = g.pick("f", 0, 0, level=0)
    a, b = _typed(g, "T.tanh(h + e * q)", x), _typed(g, f"0.5 * q + T.sin({w}) * h", x)
    first = _typed(g, f"{x}[0]", x)
    text = (
        f"theano.scan(lambda e, h, q: [{a}, {b}, h * q], {x}, [{first}, {first}, None])[0]"
        f"[{g.below(3)}]"
    )
    return _with_gradient(g, g.add(text))


@step(3)
def products(g: Grower) -> object:
    """A recurrent network: products of rows and of a state with matrices."""
    dtype = g.choice(["float64", "float32"])
    n, k, m = g.between(1, 4), g.between(1, 3), g.between(1, 3)
    x = g.leaf(dtype, (n, k), finite=True, broadcast=(False, False))
    w = g.leaf(dtype, (k, m), finite=True, broadcast=(False, False))
    u = g.leaf(dtype, (m, m), finite=True, broadcast=(False, False))
    batch = g.choice(["e", "T.stack([e, -e])"])
    rows = "" if batch == "e" else "2, "
    first = f"T.zeros(({rows}{w}.shape[1],), {dtype!r})"
    text = (
        f"theano.scan(lambda e, h, w, u: T.tanh(T.dot({batch}, w) + 0.25 * T.dot(h, u)), {x}, "
        f"{first}, [{w}, {u}]{_order(g)})[0]"
    )
    return _with_gradient(g, g.add(text))


@step(2)
def nested(g: Grower) -> object:
    """A loop over the elements of each row."""
    x = g.pick("f", 2, 2, level=0, where=lambda n: min(g.shape(n)) > 0
               and g.dtype(n) != "float16")  # fmt: skip
    zero = f"T.zeros((), {g.dtype(x)!r})"
    inner = f"theano.scan(lambda a, b: T.tanh(a + 0.5 * b), r, {g.choice(['h', zero])})[0]"
    text = (
        f"theano.scan(lambda r, h: {inner}[-1], {x}, {zero})[0]" if g.chance(60)
        else f"theano.scan(lambda r: theano.scan(lambda a, b: a * r.sum() + b, r, {zero})[0], {x})"
        "[0]"
    )  # fmt: skip
    return _with_gradient(g, g.add(text))


@step(2)
def whole_numbers(g: Grower) -> object:
    """States and sequences that are not floats."""
    x = g.pick("iu", 1, 1, exact=True)
    dtype = g.dtype(x)
    new = g.choice(["T.maximum(h, e)", "T.cast(h + e, {d})", "T.cast(T.eq(h, e), {d})"])
    text = f"theano.scan(lambda e, h: {new.format(d=repr(dtype))}, {x}, T.zeros((), {dtype!r}))[0]"
    return g.add(text)


@step(1)
def by_elements(g: Grower) -> object:
    """A Jacobian, which is a loop over gradients."""
    x = g.pick("f", 1, 1, level=0, where=lambda n: n in g.program.leaves and g.shape(n)[0] > 0
               and g.dtype(n) == "float64")  # fmt: skip
    form = g.choice(["T.tanh({x} * {x}.sum())", "{x} ** 2", "T.cumsum({x}) * {x}"])
    return g.add(f"jacobian({form.format(x=x)}, {x})")


# --- choices, updates, and what is built on scan --------------------------------------------------


@step(3)
def choosing(g: Grower) -> object:
    """A step that computes one of two branches."""
    x = _rows(g)
    new, other = (_typed(g, g.choice(_NEXT), x) for _ in range(2))
    first = _typed(g, f"{x}[0]", x)
    condition = g.choice(["T.lt(i, 2)", "T.eq(i % 2, 0)", f"T.gt({x}.shape[0], i + 2)"])
    if g.chance(30):
        new, other, last = f"[{new}, 2 * {first}]", f"[{other}, {first}]", f"[{g.below(2)}]"
        outputs = f"[{first}, None]"
    else:
        outputs, last = first, ""
    text = (
        f"theano.scan(lambda i, e, h: ifelse({condition}, {new}, {other}), "
        f"[T.arange({x}.shape[0]), {x}], {outputs}{_order(g)})[0]{last}"
    )
    return _with_gradient(g, g.add(text))


@step(2)
def in_branches(g: Grower) -> object:
    """Loops in branches."""
    x = _rows(g)
    first = _typed(g, f"{x}[0]", x)
    loops = [
        f"theano.scan(lambda e, h: {_typed(g, new, x)}, {x}, {first}{_order(g)})[0][-1]"
        for new in ("T.tanh(h + e)", "0.5 * h + e")
    ]
    other = g.choice([first, loops[1]])
    condition = g.choice([f"T.gt({x}.shape[0], {g.between(0, 3)})", f"T.eq({x}.size % 2, 0)"])
    pair = [loops[0], other] if g.chance(50) else [other, loops[0]]
    return _with_gradient(g, g.add(f"ifelse({condition}, {pair[0]}, {pair[1]})"))


@step(3)
def updating(g: Grower) -> object:
    """Shared variables that each step updates; the statement is one's value after the loop."""
    shape = [g.choice(g.sizes) for _ in range(g.between(0, 2))]
    s = g.leaf(g.choice(["float64", "float32"]), shape, finite=True, kind="shared")
    x = g.pick("f", 1, 2, level=0, where=lambda n: n != s and g.shape(n)[0] > 0)
    new = g.choice(["0.5 * {s} + e.sum()", "T.tanh({s} + e.mean())", "-{s}", "0.5 * {s}"])
    new = f"T.unbroadcast(T.cast({new.format(s=s)}, {g.dtype(s)!r}), *range({g.ndim(s)}))"
    new = f"T.patternbroadcast({new}, {s}.broadcastable)"
    updates = g.choice([f"{{{s}: {new}}}", f"[({s}, {new})]"])
    returned = g.choice([updates, f"([{s} * e.sum()], {updates})", f"(e * 2, {updates})"])
    chosen = f"[1][{s}]" if returned == updates or g.chance(70) else "[0]"
    count = g.choice(["", f", n_steps={g.between(2, 4)}"]) if g.shape(x)[0] > 3 else ""
    name = g.add(f"theano.scan(lambda e: {returned}, {x}{count}){chosen}")
    if "[1]" in chosen and g.chance(60):
        g.program.updates[s] = name
    return name


@step(2)
def drawing(g: Grower) -> object:
    """Random numbers in each step."""
    x = _rows(g)
    size = g.choice(["()", repr(g.shape(x)[1:])])
    law = g.choice(["uniform({z}, low=-1., high=1.)", "normal({z})", "binomial({z}, 1, 0.5)"])
    streams = g.choice(["MRG_RandomStreams({s})", "RandomStreams({s})"])
    drawn = f"{streams}.{law}".format(s=g.between(1, 99), z=size)
    drawn = f"T.cast({drawn}, {g.dtype(x)!r})"
    if g.chance(50):
        return _with_gradient(g, g.add(f"theano.scan(lambda e: e * {drawn}, {x})[0]"))
    new = _typed(g, f"0.5 * h + e * {drawn}", x)
    first = _typed(g, f"{x}[0]", x)
    last = g.choice(["", "[-1]"])
    return _with_gradient(
        g, g.add(f"theano.scan(lambda e, h: {new}, {x}, {first}{_order(g)})[0]{last}")
    )


@step(2)
def without_rows(g: Grower) -> object:
    """Loops that may run no step."""
    x = g.pick("f", 1, 2, level=0, where=lambda n: g.dtype(n) != "float16")
    rows = g.choice([f"{x}[:0]", f"{x}[{g.between(0, 5)}:]", x])
    first = f"T.zeros_like({x}.sum(0))"
    new = g.choice(["0.5 * h + e", "T.tanh(h) * e", "e"])
    count = g.choice(["", f", n_steps=T.minimum({rows}.shape[0], {g.between(0, 2)})"])
    text = f"theano.scan(lambda e, h: {_typed(g, new, x)}, {rows}, {_typed(g, first, x)}{count})[0]"
    if g.chance(40):
        text = f"theano.scan(lambda e: {g.choice(['T.exp(-abs(e))', 'e * 2'])}, {rows}{count})[0]"
    return _with_gradient(g, g.add(text))


@step(4)
def folded(g: Grower) -> object:
    """Sums, products and extrema by ``reduce`` and its relatives."""
    x = _rows(g, least=0)
    term = g.choice(["e", "T.tanh(e)", "T.sqr(e) * 0.5", "T.cos(e) + i", "0.5"])
    new = g.choice(["h + {t}", "{t} + h", "h - {t}", "T.maximum(h, {t})", "T.minimum({t}, h)",
                    "h * T.cos({t})", "T.maximum(T.tanh({t}), h)"]).format(t=term)  # fmt: skip
    how = g.choice(["reduce", "foldl", "foldr"])
    first = _typed(g, g.choice(["T.zeros_like({x}.sum(0))", "{x}.sum(0)"]).format(x=x), x)
    text = (
        f"theano.{how}(lambda i, e, h: {_typed(g, new, x)}, [T.arange({x}.shape[0]), {x}], "
        f"{first})[0]"
    )
    if g.chance(30):
        loop = f"theano.scan(lambda i, e, h: {_typed(g, new, x)}, [T.arange({x}.shape[0]), {x}]"
        text = f"{loop}, {first}{_order(g)})[0]{g.choice(['', '[-1]', '[::-1]'])}"
    return _with_gradient(g, g.add(text))


@step(3)
def short(g: Grower) -> object:
    """A fixed number of steps, few enough to be written one after the other."""
    x = g.pick("f", 0, 2, level=0, where=lambda n: g.dtype(n) != "float16")
    n = g.between(2, 5)
    kept = f"T.unbroadcast(T.cast({{}}, {g.dtype(x)!r}), *range({g.ndim(x)}))"
    new = kept.format(g.choice(["T.tanh(h)", "0.5 * h + c", "T.sin(h) * c", "h - 0.1 * T.sqr(h)"]))
    form = g.choice(
        [
            "theano.scan(lambda h, c: {new}, None, {first}, {x}, {n})[0]{last}",
            "theano.scan(lambda h, c: [{new}, T.sqr(h)], None, [{first}, None], {x}, {n})[0][1]",
            "theano.scan(lambda i, h, c: {new} * i, T.arange({n}, dtype='int8'), {first}, {x})[0]",
            "theano.scan(lambda q, h, c: {new} + 0.2 * q, None, "
            "{{'initial': T.stack([{first}] * 2), 'taps': [-2, -1]}}, {x}, {n})[0]{last}",
            "theano.scan(lambda c: 2 * c, None, None, {x}, {n})[0]",
        ]
    )
    text = form.format(new=new, first=kept.format(x), x=x, n=n, last=g.choice(["", "[-1]", "[1:]"]))
    if "* i" in text:
        text = text.replace(f"{new} * i", kept.format(f"{new} * T.cast(i, {g.dtype(x)!r})"))
    return _with_gradient(g, g.add(text))


@step(2)
def in_directions(g: Grower) -> object:
    """Other derivatives of a loop: in a direction, by elements, and of second order."""
    x = g.leaf("float64", (g.between(1, 4),), finite=True, broadcast=(False,))
    new = _typed(g, g.choice(["T.tanh(h + e)", "0.5 * h * e", "e * e"]), x)
    loop = f"theano.scan(lambda e, h: {new}, {x}, T.zeros(()))[0]"
    form = g.choice(
        [
            "T.Rop({y}, {x}, T.ones_like({x}))",
            "T.Lop({y}, {x}, T.ones_like({x}))",
            "jacobian({y}, {x})",
            "T.grad(T.sum(T.sqr(T.grad(T.sum({y}), {x}))), {x}, disconnected_inputs='ignore')",
            "T.Rop(T.grad(T.sum({y}), {x}), {x}, T.ones_like({x}))",
        ]
    )
    return g.add(form.format(y=loop, x=x))


@step(2)
def with_counted_steps(g: Grower) -> object:
    """A number of steps that is an input, and states of whole numbers beside those of floats."""
    x = _rows(g)
    n = g.leaf("int64", (), broadcast=())
    count = f"T.clip({n}, {g.between(0, 1)}, {x}.shape[0])"
    new = _typed(g, "T.switch(T.lt(k, 2), 0.5 * h, e)", x)
    first = _typed(g, f"T.zeros_like({x}[0])", x)
    text = (
        f"theano.scan(lambda e, h, k: [{new}, k + 1], {x}, [{first}, T.zeros((), 'int64')], "
        f"n_steps={count}{_order(g)})[0][{g.choice([0, 0, 1])}]"
    )
    return _with_gradient(g, g.add(text))


@step(1)
def from_checkpoints(g: Grower) -> object:
    """A loop that keeps few of its steps."""
    x = _rows(g)
    new = _typed(g, g.choice(["T.tanh(h + e)", "0.5 * h + e"]), x)
    first = _typed(g, f"T.zeros_like({x}[0])", x)
    every = g.between(1, 3)
    text = f"theano.scan_checkpoints(lambda e, h: {new}, {x}, {first}, save_every_N={every})[0]"
    return _with_gradient(g, g.add(text))


def _with_gradient(g: Grower, y: str) -> str:
    """Return the name of a loop's output; half of the time its gradient is added too."""
    if g.kind(y) == "f" and g.chance(50):
        with contextlib.suppress(Rejected):  # it may depend on no leaf
            gradient_of(g, y)
    return y
