"""theano.function: results, wrong calls, conversions, updates, givens, shared values and In."""

import copy
import pickle
import warnings
from collections import OrderedDict
from functools import partial

from .encoding import attempt, attempt_each
from .register import program


@program("functions.results")
def results(theano, T, np):
    """What calls return for each form of `outputs`."""
    a, b, x = T.dscalar("a"), T.dscalar("b"), T.dvector("x")
    function = theano.function
    ignore = {"on_unused_input": "ignore"}

    def described(value):
        return [type(value).__name__, value]

    return attempt_each(
        {
            "variable": lambda: described(function([a], a + 1)(1)),
            "vector": lambda: described(function([x], x + 1)([1, 2])),
            "list": lambda: described(function([a, b], [a + b, a * b])(1, 2)),
            "list of one": lambda: described(function([a], [a + 1])(1)),
            "tuple": lambda: described(function([a], (a + 1, a))(1)),
            "empty list": lambda: described(function([a], [], **ignore)(1)),
            "None": lambda: described(function([a], None, **ignore)(1)),
            "omitted": lambda: described(function([a], **ignore)(1)),
            "dict": lambda: described(function([a], {"p": a + 1, "q": a * 2})(1)),
            "dict of numbers": lambda: function([a], {1: a + 1}),
            "array": lambda: function([], np.ones(2))(),
            "number": lambda: function([x], 3),
            "nested list": lambda: function([x], [[x]]),
            "no arguments": lambda: described(function([])()),
            "same output twice": lambda: function([a], [a + 1, a + 1])(1),
            "output is input": lambda: function([x], x)([1.0, 2.0]),
            "output is constant": lambda: function([], T.constant(2.5))(),
            "outputs do not share": lambda: _outputs_apart(function, x),
            "output_subset": lambda: function([a], [a + 1, a * 2])(3, output_subset=[1]),
            "positional mode": lambda: function([a], a + 1, "FAST_COMPILE")(1),
            "keywords": lambda: function(inputs=[a], outputs=a + 1)(1),
            "Out": lambda: function([a], theano.Out(a + 1, borrow=True))(1),
            "dtype and shape": lambda: str(function([a], a + 1)(1).dtype),
        }
    )


def _outputs_apart(function, x):
    double = function([x], x * 2)
    first = double([1.0, 2.0])
    second = double([3.0, 4.0])
    return [first, second]


@program("functions.wrong_calls")
def wrong_calls(theano, T, np):
    """Calls and constructions that are refused."""
    x, y = T.dvector("x"), T.dvector("y")
    a, b = T.dscalar("a"), T.dscalar("b")
    i, i8, m, r = T.ivector("i"), T.bvector("i8"), T.dmatrix("m"), T.drow("r")
    function = theano.function
    add = function([a, b], [a + b, a * b], name="fun")
    same = [T.dscalar("n"), T.dscalar("n")]
    double = function([x], x * 2, name="g")
    ints = function([i], i * 2)
    unnamed = T.dscalar()
    return attempt_each(
        {
            "missing": lambda: add(1),
            "missing all": lambda: add(),
            "missing unnamed": lambda: function([unnamed], unnamed * 2)(),
            "too many": lambda: add(1, 2, 3),
            "keyword": lambda: add(1, b=2),
            "only keywords": lambda: add(b=1, a=2),
            "unknown keyword": lambda: add(1, c=2),
            "unknown keyword of one": lambda: double([1.0], c=2),
            "twice": lambda: add(1, a=2),
            "same names": lambda: function(same, same[0] - same[1])(1, 2),
            "ambiguous keyword": lambda: function(same, same[0] - same[1])(n=1),
            "matrix for vector": lambda: double(np.ones((2, 2))),
            "number for vector": lambda: double(5.0),
            "int for vector": lambda: double(5),
            "text for vector": lambda: double("abc"),
            "None for vector": lambda: double(None),
            "variable for vector": lambda: double(y),
            "shared for vector": lambda: double(theano.shared(np.ones(2))),
            "complex for real": lambda: function([a], a * 2)(1j),
            "list for scalar": lambda: function([a], a * 2)([1.0]),
            "ragged list": lambda: double([[1.0], 2.0]),
            "floats for ints": lambda: ints(np.ones(2)),
            "list of floats for ints": lambda: ints([1.5, 2.0]),
            "large list for int8": lambda: function([i8], i8 + 1)([1, 300]),
            "large int64 for int32": lambda: ints(np.array([1, 2**40])),
            "wide row": lambda: function([r], r * 2)(np.ones((2, 3))),
            "row": lambda: function([r], r * 2)(np.ones((1, 3))),
            "inputs not a list": lambda: function(x, x * 2),
            "input not a variable": lambda: function([3], x * 2),
            "constant as input": lambda: function([T.constant(1.0)], x),
            "shared as input": lambda: function([theano.shared(1.0)], x),
            "input twice": lambda: function([x, x], x * 2),
            "unused": lambda: function([x, y], x * 2, name="unu"),
            "unused ignored": lambda: function([x, y], x * 2, on_unused_input="ignore")([1], [2]),
            "unused warned": lambda: _warned(
                lambda: function([x, y], x * 2, on_unused_input="warn")([1], [2])
            ),
            "on_unused_input otherwise": lambda: function([x, y], x * 2, on_unused_input="zz"),
            "graph input missing": lambda: function([x], x + y),
            "update input missing": lambda: function([], updates=[(theano.shared(1.0), a)]),
            "unknown mode": lambda: function([a], a + 1, mode="NOPE"),
            "mode of another case": lambda: function([a], a + 1, mode="fast_run"),
            "unknown option": lambda: function([a], a + 1, nonsense=1),
            "list as input": lambda: function([[a]], a)(3.0),
            "type as input": lambda: function([T.dscalar], a),
            "outputs of text": lambda: function([a], "a"),
            "matrix input": lambda: function([m], m.sum())(np.ones(3)),
        }
    )


def _warned(call):
    """Return the result of a call and what it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return [result, [type(w.message).__name__ for w in caught]]


CONVERTED = {
    "list of ints": lambda np: [1, 2],
    "list of floats": lambda np: [1.0, 2.0],
    "list of inexact floats": lambda np: [1.1, 2.0],
    "tuple": lambda np: (1, 2),
    "bools": lambda np: [True, False],
    "int8 array": lambda np: np.array([1, 2], "int8"),
    "int32 array": lambda np: np.array([1, 2], "int32"),
    "int64 array": lambda np: np.array([1, 2], "int64"),
    "large int64 array": lambda np: np.array([1, 2**40]),
    "uint8 array": lambda np: np.array([1, 200], "uint8"),
    "bool array": lambda np: np.array([True, False]),
    "float16 array": lambda np: np.array([1.5, 2], "float16"),
    "float32 array": lambda np: np.array([1.5, 2], "float32"),
    "float64 array": lambda np: np.array([1.5, 2.0]),
    "inexact float64 array": lambda np: np.array([1.1, 2.0]),
    "big-endian array": lambda np: np.array([1.5, 2.0], ">f8"),
    "empty list": lambda np: [],
    "memory map class": lambda np: np.matrix([1.0, 2.0]),
    "strided": lambda np: np.arange(4.0)[::2],
}


def _conversions(dtype, downcast, theano, T, np):
    x = T.vector("x", dtype=dtype)
    function = theano.function([x], x, allow_input_downcast=downcast)

    def converted(make):
        return function(make(np))

    return {label: attempt(converted, make) for label, make in CONVERTED.items()}


@program("functions.conversions")
def conversions(theano, T, np):
    """Which arrays and lists each input dtype takes, under each allow_input_downcast."""
    return {
        f"{dtype} {downcast}": attempt(_conversions, dtype, downcast, theano, T, np)
        for dtype in ("float64", "float32", "int32", "int8", "uint8", "bool")
        for downcast in (None, True, False)
    }


def _scalar_conversions(theano, T, np):
    table = {}
    numbers = {
        "1": 1,
        "1.0": 1.0,
        "1.1": 1.1,
        "True": True,
        "300": 300,
        "np.float64(1.1)": np.float64(1.1),
        "np.float64(1.5)": np.float64(1.5),
        "np.float32(1.1)": np.float32(1.1),
        "np.int64(2)": np.int64(2),
        "np.array(1.5)": np.array(1.5),
        "[1]": [1],
    }
    for dtype in ("float64", "float32", "int32", "int8"):
        for downcast in (None, True, False):
            s = T.scalar("s", dtype=dtype)
            function = theano.function([s], s * 2, allow_input_downcast=downcast)
            for label, number in numbers.items():
                table[f"{dtype} {downcast} {label}"] = attempt(function, number)
    return table


@program("functions.scalar_conversions")
def scalar_conversions(theano, T, np):
    """Numbers for scalar inputs."""
    return _scalar_conversions(theano, T, np)


@program("functions.scalar_conversions.float32", floatx="float32")
def scalar_conversions_float32(theano, T, np):
    """Numbers for scalar inputs when floatX is float32."""
    return _scalar_conversions(theano, T, np)


@program("functions.strictness")
def strictness(theano, T, np):
    """strict, allow_downcast and trust_input."""
    f, x = T.fvector("f"), T.dvector("x")
    In, function = theano.In, theano.function

    def trusted(value):
        double = function([x], x * 2, mode="FAST_COMPILE")
        double.trust_input = True
        return double(value)

    return attempt_each(
        {
            "strict list": lambda: function([In(f, strict=True)], f)([1.0, 2.0]),
            "strict float64": lambda: function([In(f, strict=True)], f)(np.ones(2)),
            "strict array": lambda: function([In(f, strict=True)], f)(np.float32([1.0, 2.0])),
            "allow_downcast": lambda: function([In(f, allow_downcast=True)], f)(np.ones(2)),
            "allow_downcast False": lambda: function([In(f, allow_downcast=False)], f)(np.ones(2)),
            "trusted array": lambda: trusted(np.ones(3)),
        }
    )


def _updated(theano, variable, function, *args):
    """Return what a call returns and the shared value after it."""
    result = function(*args)
    return [result, variable.get_value()]


@program("functions.updates")
def updates(theano, T, np):
    """Forms of `updates`, the order of reading and writing, and what is refused."""
    function, shared = theano.function, theano.shared
    a, b, m, q = T.dscalar("a"), T.dscalar("b"), T.dmatrix("m"), T.fscalar("q")

    def scalar():
        return shared(np.float64(0.0), name="s")

    def with_updates(form):
        s = scalar()
        return _updated(theano, s, function([a], s, updates=form(s)), 2)

    def swap():
        p, r = shared(1.0), shared(2.0)
        function([], updates=[(p, r), (r, p)])()
        return [p.get_value(), r.get_value()]

    def many_calls():
        s = scalar()
        step = function([a], s * 10, updates=[(s, s + a)])
        return [[step(1), step(2), step(3)], s.get_value()]

    def only(target, expression, inputs=(), **options):
        function(list(inputs), updates=[(target, expression)], **options)()
        return target.get_value()

    s32, sv = shared(np.float32(0), name="s32"), shared(np.zeros(3), name="sv")
    row = shared(np.zeros((1, 3)), broadcastable=(True, False), name="row")
    return attempt_each(
        {
            "list": lambda: with_updates(lambda s: [(s, s + a)]),
            "tuple": lambda: with_updates(lambda s: ((s, s + a),)),
            "dict": lambda: with_updates(lambda s: {s: s + a}),
            "OrderedDict": lambda: with_updates(lambda s: OrderedDict([(s, s + a)])),
            "OrderedUpdates": lambda: with_updates(lambda s: theano.OrderedUpdates([(s, s + a)])),
            "list of lists": lambda: with_updates(lambda s: [[s, s + a]]),
            "swap": swap,
            "many calls": many_calls,
            "number": lambda: only(scalar(), 3.5),
            "int": lambda: only(scalar(), 1),
            "array": lambda: only(shared(np.zeros(2)), np.ones(2)),
            "float64 number of float32": lambda: only(s32, np.float64(3.5)),
            "longer vector": lambda: only(shared(np.zeros(3)), T.zeros((5,))),
            "float64 into float32": lambda: function([a], updates=[(s32, s32 + a)]),
            "float32 into float64": lambda: function([q], updates=[(scalar(), q * 2)]),
            "float into int": lambda: function(
                [], updates=[(lambda v: (v, v + 1.5))(shared(np.int32(1)))]
            ),
            "matrix into vector": lambda: function([m], updates=[(sv, m)]),
            "matrix into row": lambda: function([m], updates=[(row, m)]),
            "broadcastable into vector": lambda: function([], updates=[(sv, T.zeros((1,)))])(),
            "of a variable": lambda: function([a], a, updates=[(b, a)]),
            "twice": lambda: (lambda s: function([a], s, updates=[(s, s + a), (s, s)]))(scalar()),
            "a number as updates": lambda: function([a], a, updates=3),
            "short tuple": lambda: function([a], a, updates=[(scalar(),)]),
            "text as target": lambda: function([a], a, updates=[("s", a)]),
            "None as value": lambda: function([], updates=[(scalar(), None)]),
        }
    )


@program("functions.default_updates")
def default_updates(theano, T, np):
    """default_update and no_default_updates."""
    function = theano.function

    def counting(**options):
        s = theano.shared(np.float64(1))
        s.default_update = s + 1
        chosen = {key: value(s) for key, value in options.items()}
        count = function([], s, **chosen)
        return [[count(), count(), count()], s.get_value()]

    return attempt_each(
        {
            "default": counting,
            "off": lambda: counting(no_default_updates=lambda s: True),
            "list": lambda: counting(no_default_updates=lambda s: [s]),
            "empty list": lambda: counting(no_default_updates=lambda s: []),
            "text": lambda: counting(no_default_updates=lambda s: "x"),
            "explicit": lambda: counting(updates=lambda s: [(s, s + 10)]),
        }
    )


@program("functions.givens")
def givens(theano, T, np):
    """Replacing parts of the graph."""
    function, shared = theano.function, theano.shared
    a, b, x, m = T.dscalar("a"), T.dscalar("b"), T.dvector("x"), T.dmatrix("m")
    f32, i = T.fvector("f32"), T.ivector("i")
    s = shared(1.0, name="s")
    z = x + 1
    z.name = "z"
    data = shared(np.arange(6.0), name="data")
    index = T.lscalar("index")

    def minibatch():
        call = function([index], x.sum(), givens={x: data[index * 2 : (index + 1) * 2]})
        return [call(0), call(2)]

    def updated():
        t = shared(0.0)
        function([a], updates=[(t, t + b)], givens={b: a * 2})(3.0)
        return t.get_value()

    row = T.drow("row")
    return attempt_each(
        {
            "dict": lambda: function([a], b * 2, givens={b: a + 1})(3),
            "list": lambda: function([a], b * 2, givens=[(b, a + 1)])(3),
            "shared": lambda: function([], s * 2, givens={s: shared(7.0)})(),
            "constant": lambda: function([], b * 2, givens={b: np.float64(3)})(),
            "number": lambda: function([], b * 2, givens={b: 3.0})(),
            "intermediate": lambda: function([x], z * 2, givens={z: x})([1.0, 2.0]),
            "minibatch": minibatch,
            "in updates": updated,
            "more broadcastable": lambda: function([row], m * 2, givens={m: row})([[1.0, 2.0]]),
            "less broadcastable": lambda: function([m], row * 2, givens={row: m}),
            "other dtype": lambda: function([f32], x * 2, givens={x: f32}),
            "int for float": lambda: function([i], x * 2, givens={x: i}),
            "other ndim": lambda: function([m], x * 2, givens={x: m}),
            "not strict": lambda: function([i], x * 2, givens={x: i}, rebuild_strict=False)([1, 2]),
            "twice": lambda: function([a], b, givens=[(b, a), (b, a + 1)]),
            "an input": lambda: function([x], x * 2, givens={x: x + 1}),
            "chain": lambda: function([a], s + b, givens=[(b, s * 2), (s, a)]),
            "not in the graph": lambda: function([a], a, givens={b: a})(1.0),
        }
    )


@program("functions.inputs")
def inputs(theano, T, np):
    """In and Param."""
    function, In = theano.function, theano.In
    a, b, x = T.dscalar("a"), T.dscalar("b"), T.dvector("x")

    def called(function, *arguments):
        return [function(*args) for args in arguments]

    def mutable(flag):
        step = function([In(x, mutable=flag)], T.exp(x) * 2, mode="FAST_RUN")
        value = np.zeros(3)
        return [step(value), value]

    def kept():
        count = function([In(b, value=1.0, update=b + 1)], b)
        return [count(), count(), count()]

    return attempt_each(
        {
            "value": lambda: called(function([a, In(b, value=2.0)], a + b), (1,), (1, 5), (1,)),
            "value keyword": lambda: function([a, In(b, value=2.0)], a + b)(1, b=7),
            "name": lambda: function([In(a, name="foo")], a)(foo=3),
            "variable's name": lambda: function([In(a, name="foo")], a)(a=3),
            "update": kept,
            "implicit": lambda: function([In(a, value=1.0, implicit=True), b], a + b)(b=2.0),
            "implicit positional": lambda: function([In(a, value=1.0, implicit=True), b], a + b)(
                2.0
            ),
            "mutable": lambda: mutable(True),
            "not mutable": lambda: mutable(False),
            "mutable, not borrowed": lambda: In(x, mutable=True, borrow=False),
            "update of another type": lambda: function([In(a, value=1.0, update=x)], a),
            "Param": lambda: function([a, theano.Param(b, default=3.0)], a + b)(1),
            "pair": lambda: function([a, (b, 2.0)], a + b)(1),
            "value array": lambda: function([In(x, value=np.ones(2))], x + 1)(),
            "required after default": lambda: function([In(a, value=1.0), b], a - b)(b=2.0),
        }
    )


@program("functions.objects")
def objects(theano, T, np):
    """Attributes and methods of compiled functions."""
    function, shared = theano.function, theano.shared
    a, x = T.dscalar("a"), T.dvector("x")
    plus = function([a], a + 1, name="plus")

    def copied():
        state, inc, fresh = shared(1.0, name="state"), T.dscalar("inc"), shared(10.0, name="new")
        accumulate = function([inc], state, updates=[(state, state + inc)])
        other = accumulate.copy(swap={state: fresh})
        accumulate(1.0)
        other(5.0)
        accumulate.copy(delete_updates=True)(100.0)
        accumulate.copy(share_memory=True)(1.0)
        return [state.get_value(), fresh.get_value()]

    def swapped(new):
        state = shared(1.0)
        return function([], updates=[(state, state + 1)]).copy(swap={state: new})

    def stored():
        state = shared(1.0, name="state")
        call = function([], state * 2)
        call[state] = 5.0
        return [call(), state.get_value(), call[state]]

    def freed():
        call = function([x], (x * 2).sum(), mode=theano.Mode("cvm_nogc", "fast_run"))
        before = call([1.0])
        call.free()
        return [before, call([2.0])]

    errors = theano.compile
    return attempt_each(
        {
            "name": lambda: plus.name,
            "f['a']": lambda: plus["a"],
            "f['zz']": lambda: plus["zz"],
            "f[shared]": stored,
            "input_storage": lambda: [type(c).__name__ for c in plus.input_storage],
            "maker.inputs": lambda: [type(i).__name__ for i in plus.maker.inputs],
            "maker.fgraph.inputs": lambda: [str(i) for i in plus.maker.fgraph.inputs],
            "maker.fgraph.outputs": lambda: len(plus.maker.fgraph.outputs),
            "apply_nodes": lambda: len(plus.maker.fgraph.apply_nodes),
            "get_shared": lambda: [
                str(v) for v in function([], shared(1.0, name="kept")).get_shared()
            ],
            "unpack_single": lambda: [plus.unpack_single, function([a], [a]).unpack_single],
            "copy": copied,
            "copy, swap of another type": lambda: swapped(shared(np.ones(2))),
            "copy, swap of an unknown": lambda: plus.copy(swap={shared(3.0): shared(4.0)}),
            "copy name": lambda: plus.copy(name="other").name,
            "pickle": lambda: pickle.loads(pickle.dumps(plus))(2.0),
            "deepcopy": lambda: copy.deepcopy(plus)(2.0),
            "deepcopy of shared": lambda: _deep_copied(function, shared),
            "free": freed,
            "UnusedInputError": lambda: [c.__name__ for c in errors.UnusedInputError.__mro__],
            "AliasedMemoryError": lambda: [c.__name__ for c in errors.AliasedMemoryError.__mro__],
            "MissingInputError": lambda: [c.__name__ for c in theano.gof.MissingInputError.__mro__],
            "profile": lambda: plus.profile is None,
            "type": lambda: type(plus).__name__,
            "callable": lambda: callable(plus),
        }
    )


def _deep_copied(function, shared):
    state = shared(1.0)
    count = function([], state, updates=[(state, state + 1)])
    count()
    other = copy.deepcopy(count)
    count()
    return [other(), count(), state.get_value()]


MODE_STRINGS = (
    "FAST_RUN",
    "FAST_COMPILE",
    "DebugMode",
    "DEBUG_MODE",
    "NanGuardMode",
    "Mode",
    "fast_run",
    "",
    "PROFILE",
    "JAX",
    "SANITY_CHECK",
)


@program("functions.modes")
def modes(theano, T, np):
    """Names of modes, linkers and optimizers that function accepts or refuses."""
    x = T.dvector("x")

    def call(mode):
        return theano.function([x], T.exp(x) * 0 + x, mode=mode)([1.0, 2.0])

    def linked(linker, optimizer="fast_run"):
        return call(theano.Mode(linker, optimizer))

    linkers = ("py", "c", "c|py", "c|py_nogc", "vm", "cvm", "vm_nogc", "cvm_nogc", "PY", "zz")
    optimizers = ("fast_run", "fast_compile", "merge", "None", None, "o1", "o4", "unsafe", "zz")
    cases = {"mode " + mode: partial(call, mode) for mode in MODE_STRINGS}
    cases.update({f"linker {linker}": partial(linked, linker) for linker in linkers})
    cases.update({f"optimizer {o}": partial(linked, "py", o) for o in optimizers})
    cases["mode 5"] = partial(call, 5)
    cases["optimizer first"] = lambda: theano.Mode("fast_run", "py")
    cases["str"] = lambda: str(theano.Mode("py", "fast_run"))
    cases["including"] = lambda: call(theano.Mode("py", "merge").including("fast_run"))
    cases["excluding"] = lambda: call(theano.Mode("py", "fast_run").excluding("fusion"))
    cases["register taken"] = lambda: theano.compile.mode.register_mode("FAST_RUN", None)
    cases["get_mode same object"] = lambda: (
        theano.compile.get_mode("FAST_RUN") is theano.compile.get_mode("FAST_RUN")
    )
    return attempt_each(cases)
