"""Texts of debugprint, pprint and min_informative_str."""

from functools import partial

from .encoding import attempt_each
from .register import program


def _debugprint(theano, thing, **options):
    return theano.printing.debugprint(thing, file="str", **options)


@program("printing.debugprint")
def debugprint(theano, T, np):
    """Raw graphs under every option."""
    x, y, v = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v")
    layer = T.tanh(T.dot(x, y) + v).sum(axis=0) * 2
    e = T.exp(x)
    e.name = "e"
    largest, place = T.max_and_argmax(x, axis=1)
    show = partial(partial, _debugprint, theano)
    return attempt_each(
        {
            "layer": show(layer),
            "layer with types": show(layer, print_type=True),
            "layer, depth 2, int ids": show(layer, depth=2, ids="int"),
            "layer, depth 1": show(layer, depth=1),
            "layer, no ids": show(layer, ids=""),
            "layer, id": show(x + 1, ids="CHAR"),
            "a shared node": show(e + e * 2),
            "stop_on_name": show(e + 1, stop_on_name=True),
            "list": show([x + 1, y]),
            "second output": show(place),
            "both outputs": show([largest, place]),
            "input": show(x),
            "unnamed input": show(T.dvector() + 1),
            "constant": show(T.constant(1.5)),
            "index": show(x[1:, 0]),
            "advanced index": show(x[T.ivector("i")]),
            "set_subtensor": show(T.set_subtensor(v[0], 1.0)),
            "concatenate": show(T.concatenate([x, y], axis=1)),
            "mean": show(x.mean(axis=0)),
            "grad": show(T.grad(T.sqr(x).sum(), x)),
            "grad of a layer": show(T.grad(T.tanh(T.dot(v, x)).sum(), x)),
            "softmax crossentropy": show(
                T.nnet.categorical_crossentropy(T.nnet.softmax(x), T.ivector("i")).mean()
            ),
            "Apply": show((x + y).owner),
            "many ids": show(sum([x * k for k in range(1, 12)])),
        }
    )


@program("printing.debugprint_of_functions")
def debugprint_of_functions(theano, T, np):
    """Compiled graphs with their order, and the marks of work in place."""
    x, y, v = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v")
    s = theano.shared(np.zeros((3, 3)), name="s")
    layer = T.tanh(T.dot(x, y) + v).sum(axis=0) * 2

    def case(inputs, outputs=None, mode="FAST_RUN", options=None, **function_options):
        function = theano.function(inputs, outputs, mode=mode, **function_options)
        return _debugprint(theano, function, **(options or {}))

    return attempt_each(
        {
            "layer": lambda: case([x, y, v], layer),
            "layer, FAST_COMPILE": lambda: case([x, y, v], layer, mode="FAST_COMPILE"),
            "layer with types": lambda: case([x, y, v], layer, options={"print_type": True}),
            "input": lambda: case([x], x),
            "update": lambda: case([x], updates=[(s, s - 0.1 * x)], name="up"),
            "gemm": lambda: case([x, y], updates=[(s, s - 0.1 * T.dot(x, y))]),
            "two outputs": lambda: case([x], [x + 1, x * 2]),
            "elementwise": lambda: case([x, y], T.exp(x * y) + 1),
            "max": lambda: case([x], x.max(axis=1)),
            "fgraph": lambda: _debugprint(
                theano, theano.function([x], x + 1, mode="FAST_RUN").maker.fgraph
            ),
            "outputs of the fgraph": lambda: _debugprint(
                theano, theano.function([x], x + 1, mode="FAST_RUN").maker.fgraph.outputs[0]
            ),
        }
    )


@program("printing.pprint")
def pprint(theano, T, np):
    """Expressions in infix notation."""
    x, y, v, i = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.ivector("i")
    expressions = {
        "x + y * 2": x + y * 2,
        "(x + y) * 2": (x + y) * 2,
        "x - (y - x)": x - (y - x),
        "exp(-x) / (1 + y)": T.exp(-x) / (1 + y),
        "x[0]": x[0],
        "v[1:3]": v[1:3],
        "v[::-1]": v[::-1],
        "x[:, 0]": x[:, 0],
        "x.sum(axis=0)": x.sum(axis=0),
        "x.sum()": x.sum(),
        "x.max()": x.max(),
        "dot(x, y).T": T.dot(x, y).T,
        "dot(x.T, y)": T.dot(x.T, y),
        "sqrt(x) ** 2": T.sqrt(x) ** 2,
        "x ** y ** 2": x ** (y**2),
        "-x ** 2": -(x**2),
        "log(x)": T.log(x),
        "sigmoid(x)": T.nnet.sigmoid(x),
        "softmax(x)": T.nnet.softmax(x),
        "x > y": x > y,
        "switch": T.switch(x > 0, x, 0.0),
        "-x": -x,
        "dimshuffle": x.dimshuffle(0, "x", 1),
        "mean": T.mean(x),
        "grad": T.grad((x**2).sum(), x),
        "maximum": T.maximum(x, y),
        "shape[0]": x.shape[0],
        "shape": x.shape,
        "zeros_like": T.zeros_like(x),
        "concatenate": T.concatenate([x, y]),
        "cast": T.cast(x, "float32"),
        "abs(x)": abs(x),
        "x % y": x % y,
        "x // y": x // y,
        "eq": T.eq(x, y),
        "x[i]": x[i],
        "inc_subtensor": T.inc_subtensor(v[0], 1),
        "set_subtensor": T.set_subtensor(v[1:], 1),
        "reshape": x.reshape((2, 3)),
        "and": T.and_(x > 0, y > 0),
        "prod": x.prod(axis=1),
        "constant": T.constant(2.0),
        "input": x,
        "unnamed": T.dvector() + 1,
    }
    texts = {label: partial(theano.printing.pp, e) for label, e in expressions.items()}
    results = {"raw": attempt_each(texts)}

    def compiled(expression):
        function = theano.function([x, y, v], expression, on_unused_input="ignore")
        return theano.pp(function.maker.fgraph.outputs[0])

    results["compiled"] = attempt_each(
        {
            "fused": partial(compiled, T.tanh(T.dot(x, y) + v).sum(axis=0) * 2),
            "log(1 + exp(x))": partial(compiled, T.log(1 + T.exp(x))),
            "x * x": partial(compiled, x * x),
        }
    )
    return results


@program("printing.min_informative_str")
def min_informative_str(theano, T, np):
    """The short indented form."""
    x, y, v = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v")
    short = theano.printing.min_informative_str
    return attempt_each(
        {
            "layer": lambda: short(T.tanh(T.dot(x, y) + v).sum(axis=0) * 2),
            "input": lambda: short(x),
            "shared node": lambda: short(T.exp(x) + T.exp(x)),
            "constant": lambda: short(x + 1),
        }
    )
