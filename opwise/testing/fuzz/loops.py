"""The steps of growing a random program that add loops: ``scan`` in all its forms.

States are contractions, so that roundings do not grow from step to step; conditions that end a
loop depend on whole numbers only.
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


def _with_gradient(g: Grower, y: str) -> str:
    """Return the name of a loop's output; half of the time its gradient is added too."""
    if g.kind(y) == "f" and g.chance(50):
        with contextlib.suppress(Rejected):  # it may depend on no leaf
            gradient_of(g, y)
    return y
