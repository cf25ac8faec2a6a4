"""Random streams: the numbers that a seed gives, states and their updates, what is refused."""

import hashlib
import pickle

from .encoding import attempt_each
from .register import ULP, program

PROBABILITIES = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.25, 0.25, 0.5]]
SEEDS = {
    "one": 1,
    "negative": -5,
    "largest": 2147462578,
    "six": [1, 2, 3, 4, 5, 6],
    "six in a tuple": (9, 8, 7, 6, 5, 4),
    "of both signs": [-1, 2, -3, 4, 5, 6],
    "0": 0,
    "too large": 2147462579,
    "three": [1, 2, 3],
    "a text": "abc",
    "a fraction": 1.5,
    "None": None,
    "first half 0": [0, 0, 0, 1, 1, 1],
    "last half 0": [1, 1, 1, 0, 0, 0],
    "first half too large": [2147483647, 1, 1, 1, 1, 1],
    "last half too large": [1, 1, 1, 2147462579, 1, 1],
}


def bits(array):
    """Return the bits of an array as text: all of a few, a hash of many."""
    data = array.tobytes()
    text = data.hex() if len(data) <= 64 else "md5 " + hashlib.md5(data).hexdigest()
    return f"bits of {array.dtype} {array.shape}: {text}"


def _drawer(theano, variable, inputs=()):
    return theano.function(list(inputs), variable, on_unused_input="ignore")


def _draws(theano, variable, calls=2):
    draw = _drawer(theano, variable)
    return [bits(draw()) for _ in range(calls)]


def _numbers(theano, variable, calls=2):
    draw = _drawer(theano, variable)
    return [draw() for _ in range(calls)]


@program("random.mrg_uniform")
def mrg_uniform(theano, T, np):
    """Uniform numbers of MRG_RandomStreams, bit for bit."""
    from theano.sandbox.rng_mrg import MRG_RandomStreams

    def drawn(size, seed=234, **options):
        return lambda: _draws(theano, MRG_RandomStreams(seed).uniform(size, **options))

    cases = {}
    for dtype in ("float16", "float32", "float64"):
        for size in ((1,), (3,), (7,), (2, 3), (5, 41), (3, 1, 4)):
            cases[f"{dtype} {size}"] = drawn(size, dtype=dtype)
    for dtype in ("float32", "float64"):
        cases[f"{dtype} many"] = drawn((300, 401), dtype=dtype)
        for streams in (1, 2, 100, 1000):
            cases[f"{dtype} {streams} streams"] = drawn((7, 331), dtype=dtype, nstreams=streams)
    cases["bounds"] = drawn((9,), low=-1, high=np.float32(3))
    cases["no dimension"] = drawn(())
    cases["vector of bounds"] = drawn((3,), low=T.constant([1.0, 2.0, 3.0]))
    cases["length 1"] = lambda: str(MRG_RandomStreams(1).uniform((1, 3)).broadcastable)
    for name, seed in SEEDS.items():
        cases["seed " + name] = drawn((20,), seed=seed)
    return attempt_each(cases)


@program("random.mrg_symbolic_sizes")
def mrg_symbolic_sizes(theano, T, np):
    """Sizes that are known when the function is called."""
    from theano.sandbox.rng_mrg import MRG_RandomStreams

    v, i, x = T.lvector("v"), T.iscalar("i"), T.dmatrix("x")

    def drawn(size, given, variable, **options):
        def case():
            draw = _drawer(theano, MRG_RandomStreams(5).uniform(size, **options), [variable])
            return [bits(draw(given)) for _ in range(2)]

        return case

    return attempt_each(
        {
            "vector": drawn(v, [2, 3], v, ndim=2),
            "more than streams": drawn(v, [200, 201], v, ndim=2),
            "longer vector": drawn(v, [2, 3, 4], v, ndim=2),
            "nothing": drawn(v, [2, 0], v, ndim=2),
            "too many": drawn(v, [2**20, 2**20], v, ndim=2),
            "no ndim": drawn(v, [2, 3], v),
            "number": drawn((i, 2), 3, i),
            "shape": drawn(x.shape, np.ones((2, 3)), x),
            "shape in a tuple": drawn((x.shape[0], 4), np.ones((2, 3)), x),
        }
    )


@program("random.mrg_distributions", tolerance=ULP)
def mrg_distributions(theano, T, np):
    """Normal, truncated, binomial and multinomial numbers of MRG_RandomStreams."""
    from theano.sandbox.rng_mrg import MRG_RandomStreams as Streams

    p, i = np.array(PROBABILITIES), T.iscalar("i")

    def given(variable, value):
        draw = _drawer(theano, variable, [i])
        return [draw(value), draw(value)]

    def numbers(method, *args, **options):
        return lambda: _numbers(theano, getattr(Streams(5), method)(*args, **options))

    mean = T.constant([1.0, 2.0, 3.0])
    return attempt_each(
        {
            "normal": numbers("normal", (4,)),
            "odd": numbers("normal", (3,)),
            "normal of a mean": numbers("normal", (2, 3), avg=mean, std=2.0),
            "normal float32": numbers("normal", (2, 3), dtype="float32"),
            "a number as size": numbers("normal", 3),
            "a list as size": numbers("normal", [2, 2]),
            "symbolic size": lambda: given(Streams(5).normal((i, 2)), 3),
            "truncated": numbers("truncated_normal", (7,), avg=2.0, std=3.0),
            "truncated float32": numbers("truncated_normal", (8,), dtype="float32"),
            "truncate": numbers("normal", (9,), truncate=True),
            "binomial": numbers("binomial", (6,), p=0.3),
            "binomial float32": numbers("binomial", (6,), p=0.3, dtype="float32"),
            "multinomial": numbers("multinomial", pvals=p),
            "multinomial n": numbers("multinomial", pvals=p, n=40),
            "multinomial auto": numbers(
                "multinomial", pvals=p.astype("float32"), n=4, dtype="auto"
            ),
            "multinomial symbolic n": lambda: given(Streams(5).multinomial(pvals=p, n=i), 5),
            "choice": numbers("choice", replace=False, p=p),
            "choice of all": numbers("choice", size=3, replace=False, p=p),
            "choice symbolic": lambda: given(Streams(5).choice(size=i, replace=False, p=p), 2),
            "without replacement": numbers("multinomial_wo_replacement", n=2, pvals=p),
        }
    )


@program("random.mrg_refused")
def mrg_refused(theano, T, np):
    """What MRG_RandomStreams does not take."""
    from theano.sandbox.rng_mrg import MRG_RandomStreams

    p, s = np.array(PROBABILITIES), MRG_RandomStreams(5)

    def call(method, *args, **options):
        return lambda: str(getattr(s, method)(*args, **options).ndim)

    def run(method, *args, **options):
        return lambda: _numbers(theano, getattr(s, method)(*args, **options), 1)

    return attempt_each(
        {
            "length 0": call("uniform", (0,)),
            "negative length": call("uniform", (3, -1)),
            "an int": call("uniform", 3),
            "a list": call("uniform", [3]),
            "a fraction": call("uniform", (2.5,)),
            "a text": call("uniform", ("a",)),
            "an array": call("uniform", np.array([3])),
            "no size": call("uniform", None),
            "a scalar": call("uniform", T.iscalar()),
            "an unknown argument": call("uniform", (3,), foo=3),
            "bounds of more dimensions": call("uniform", (3,), low=T.dmatrix()),
            "normal, length 0": call("normal", (0,)),
            "normal, a fraction": call("normal", (2.5,)),
            "normal, a matrix": call("normal", T.lmatrix()),
            "normal, no size": call("normal", None),
            "normal, a vector in a tuple": call("normal", (T.lvector(),)),
            "binomial, n": call("binomial", (6,), n=2),
            "binomial, no size": call("binomial"),
            "multinomial, no pvals": call("multinomial"),
            "multinomial, a size": call("multinomial", size=(2,), pvals=p),
            "multinomial, ndim": call("multinomial", ndim=2, pvals=p),
            "multinomial, a vector": call("multinomial", pvals=p[0]),
            "choice with replacement": call("choice", p=p),
            "choice of a": call("choice", replace=False, p=p, a=3),
            "choice without p": call("choice", replace=False),
            "choice, a vector": call("choice", replace=False, p=p[0]),
            "choice, ndim": call("choice", replace=False, p=p, ndim=1),
            "choice of too many": run("choice", size=4, replace=False, p=p),
            "wo, a size": call("multinomial_wo_replacement", size=(2,), n=2, pvals=p),
            "no streams": lambda: s.get_substream_rstates(0, "float32"),
        }
    )


@program("random.mrg_parts")
def mrg_parts(theano, T, np):
    """The functions and Ops below MRG_RandomStreams."""
    from theano.sandbox import multinomial, rng_mrg

    state = np.array([1, 2, 3, 4, 5, 6], "int32")
    states = np.array([[1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 1, 1]], "int32")
    p = np.array(PROBABILITIES)

    def next_value():
        after = np.zeros(6, "int32")
        value = rng_mrg.mrg_next_value(state, after, rng_mrg.NORM, 0xFFFFFFFF, 0)
        return [float(value), after]

    def drawn(rows, ndim=None, size=(5,)):
        return lambda: _draws(
            theano, rng_mrg.mrg_uniform.new(theano.shared(rows), ndim, "float64", size)[1]
        )

    def outcomes(cls, *args):
        return lambda: _numbers(theano, cls("auto")(*args), 1)

    guessed = [(1,), (6,), (7,), (100, 100), (1000, 1000), [3, 4], (), (np.int64(30),), 3]
    counts, choice = multinomial.MultinomialFromUniform, multinomial.ChoiceFromUniform
    return attempt_each(
        {
            "guess_n_streams": lambda: [rng_mrg.guess_n_streams(size) for size in guessed],
            "ff_2p72": lambda: rng_mrg.ff_2p72(state),
            "ff_2p134": lambda: rng_mrg.ff_2p134(state),
            "matVecModM": lambda: rng_mrg.matVecModM(rng_mrg.A1p72, state[:3], rng_mrg.M1),
            "multMatVect": lambda: rng_mrg.multMatVect(
                state, rng_mrg.A1p72, rng_mrg.M1, rng_mrg.A2p72, rng_mrg.M2
            ),
            "mrg_next_value": next_value,
            "substreams": lambda: rng_mrg.MRG_RandomStreams(7).get_substream_rstates(9, "float32"),
            "many substreams": lambda: bits(
                rng_mrg.MRG_RandomStreams(7).get_substream_rstates(1000, "float32")
            ),
            "mrg_uniform": drawn(states),
            "five columns": drawn(states[:, :5].copy()),
            "states that are a vector": drawn(state),
            "states of int64": drawn(states.astype("int64")),
            "text": lambda: [
                str(rng_mrg.mrg_uniform(T.TensorType("float32", (False,)))),
                str(counts("auto")),
                str(choice("int64")),
            ],
            "counts": outcomes(counts, p, [0.3, 0.05, 0.9]),
            "counts of two": outcomes(counts, p, [0.3, 0.9, 0.1, 0.4, 0.5, 0.6], 2),
            "counts at the bounds": outcomes(counts, p, [0.1, 0.3, 0.25]),
            "counts of none": outcomes(counts, p, [1.0, 1.0, 1.0]),
            "counts of too few": outcomes(counts, p, [0.3]),
            "counts of a vector": outcomes(counts, p[0], [0.3]),
            "counts of a matrix": outcomes(counts, p, [[0.3]]),
            "choices": outcomes(choice, p, [0.3, 0.05, 0.9]),
            "choices of three": outcomes(
                choice, p, [0.3, 0.9, 0.1, 0.4, 0.5, 0.6, 0.2, 0.7, 0.8], 3
            ),
            "choices of too few": outcomes(choice, p, [0.3]),
        }
    )


@program("random.numpy_streams")
def numpy_streams(theano, T, np):
    """Numbers of RandomStreams, bit for bit, and what it does not take."""
    from theano.tensor.shared_randomstreams import RandomStreams

    def drawn(method, *args, **options):
        return lambda: _draws(theano, getattr(RandomStreams(7), method)(*args, **options))

    one_to_three = T.constant([1.0, 2.0, 3.0])
    rows = T.constant([[0.5, 0.5], [0.1, 0.9]])
    column = T.constant([[3], [4]])
    rest = -1
    return attempt_each(
        {
            "uniform": drawn("uniform", (3,)),
            "uniform of nothing": drawn("uniform", (0,)),
            "uniform without dimensions": drawn("uniform", ()),
            "uniform float32": drawn("uniform", (2, 2), dtype="float32"),
            "uniform float16": drawn("uniform", (2, 2), dtype="float16"),
            "uniform of bounds": drawn("uniform", (2, rest), low=one_to_three, high=7),
            "uniform in the shape of bounds": drawn("uniform", None, low=one_to_three, high=7),
            "uniform of length 1": drawn("uniform", (1, 3)),
            "ndim": drawn("uniform", (2,), ndim=1),
            "another ndim": drawn("uniform", (2,), ndim=2),
            "an int": drawn("uniform", 3),
            "a fraction": drawn("uniform", (2.5,)),
            "a free length": drawn("uniform", (rest, 2)),
            "bounds of more dimensions": drawn("uniform", (3,), low=T.dmatrix()),
            "bounds of another length": drawn("uniform", (2,), low=one_to_three),
            "vector of unknown length": drawn("uniform", T.lvector()),
            "normal": drawn("normal", (3,), avg=2, std=3),
            "normal int32": drawn("normal", (4,), std=10, dtype="int32"),
            "negative std": drawn("normal", (3,), std=-1.0),
            "binomial": drawn("binomial", (5,), n=10, p=0.3),
            "binomial, p above 1": drawn("binomial", (3,), p=1.5),
            "binomial, negative n": drawn("binomial", (3,), n=-1),
            "poisson": drawn("poisson", (5,), lam=3.0),
            "poisson of a vector": drawn("poisson", (2,), lam=[1.0, 100.0]),
            "poisson, no lam": drawn("poisson", (3,)),
            "poisson, negative": drawn("poisson", (3,), lam=-1.0),
            "poisson, no size": drawn("poisson", lam=1.0),
            "choice": drawn("choice", (5,), a=5),
            "choice of values": drawn("choice", (5,), a=[3, 5, 9], p=[0.1, 0.2, 0.7]),
            "choice of fractions": drawn("choice", (3,), a=[0.1, 0.2], dtype="float64"),
            "choice without replacement": drawn("choice", (3,), a=5, replace=False),
            "choice of too many": drawn("choice", (3,), a=2, replace=False),
            "choice of 0": drawn("choice", (3,), a=0),
            "choice of a matrix": drawn("choice", (3,), a=[[1, 2]]),
            "choice, sum of p": drawn("choice", (3,), a=3, p=[0.1, 0.2, 0.3]),
            "choice, no size": drawn("choice"),
            "permutation": drawn("permutation", n=6),
            "permutations": drawn("permutation", (2, 3), n=4),
            "permutation, ndim": drawn("permutation", (), n=3, ndim=2),
            "permutation of a vector": drawn("permutation", n=[3]),
            "multinomial": drawn("multinomial", (3,), n=5, pvals=[0.2, 0.3, 0.5]),
            "multinomial default": drawn("multinomial"),
            "multinomial rows": drawn("multinomial", (2, 2), pvals=rows, n=column),
            "multinomial in their shape": drawn("multinomial", pvals=rows, n=column),
            "multinomial float32": drawn("multinomial", (3,), n=5, pvals=np.float32([0.1, 0.9])),
            "multinomial, sum of pvals": drawn("multinomial", (2,), pvals=[0.5, 0.6]),
            "multinomial, negative pvals": drawn("multinomial", (2,), pvals=[-0.5, 1.5]),
            "multinomial, negative n": drawn("multinomial", (2,), n=-1),
            "multinomial, another n": drawn("multinomial", (2,), n=[1, 2, 3]),
            "integers": drawn("random_integers", (5,), low=-3, high=3),
            "integers of bounds": drawn("random_integers", (2, 2), low=[1, 2], high=[[3], [2**40]]),
            "integers in the shape of bounds": drawn("random_integers", low=[1, 2], high=[9, 10]),
            "integers of fractions": drawn("random_integers", (3,), low=0.5, high=7.5),
            "large integers": drawn("random_integers", (3,), low=0, high=2**62),
            "no integers": drawn("random_integers", (3,), low=5, high=2),
            "integers of another length": drawn("random_integers", (3,), low=[1, 2], high=9),
            "shuffled": drawn("shuffle_row_elements", T.constant(np.arange(12.0).reshape(3, 4))),
        }
    )


@program("random.sizes")
def sizes(theano, T, np):
    """The dimensions that a draw from numpy's generator has."""
    from theano.tensor.raw_random import _infer_ndim_bcast

    x, v, i = T.dmatrix("x"), T.lvector("v"), T.iscalar("i")

    def inferred(*args):
        return lambda: [str(part) for part in _infer_ndim_bcast(*args)[::2]]

    return attempt_each(
        {
            "tuple": inferred(None, (2, 1)),
            "variable": inferred(None, (i, 1)),
            "of arguments": inferred(None, None, x),
            "free length": inferred(None, (-1, 2), x),
            "vector": inferred(2, v),
            "another ndim": inferred(3, (2, 1)),
            "nothing": inferred(None, None),
            "free without arguments": inferred(None, (-1,)),
            "larger argument": inferred(1, (2,), x),
            "a fraction": inferred(None, 3.0),
        }
    )


@program("random.states")
def states(theano, T, np):
    """States: default updates, seeds, copies, swaps, pickles."""
    from theano.sandbox.rng_mrg import MRG_RandomStreams
    from theano.tensor import raw_random
    from theano.tensor.shared_randomstreams import RandomStreams

    kinds = {"mrg": MRG_RandomStreams, "numpy": RandomStreams}

    def swapped(cls):
        one, other = cls(3), cls(4)
        f, g = (_drawer(theano, s.uniform((2,))) for s in (one, other))
        f()
        for mine, its in zip(one.state_updates, other.state_updates):  # noqa: B905
            its[0].set_value(mine[0].get_value())
        return [bits(f()), bits(g()), bits(g())]

    def seeded(cls):
        stream = cls(7)
        drawn = [stream.uniform((3,)), stream.uniform((7,)), stream.normal((3,))]
        f = theano.function([], drawn[:2])
        found = []
        for seed in ("none", 9, None):
            if seed != "none":
                stream.seed(seed)
            found.append([[bits(value) for value in f()] for _ in range(2)])
        return [found, len(stream.updates())]

    def updates(cls):
        stream = cls(234)
        u = stream.uniform((2, 2))
        state, after = stream.state_updates[0][:2]
        nearly_zeros = theano.function([], u + u - 2 * u)
        kept = theano.function([], u, no_default_updates=[state])
        none = theano.function([], u, no_default_updates=True)
        explicit = theano.function([], u, updates=[(state, after)], no_default_updates=True)
        twice = theano.function([], [u, u])
        calls = [nearly_zeros, kept, none, kept, explicit, explicit, kept]
        return [[bits(f()) for f in calls], [bits(value) for value in twice()]]

    def copied(cls):
        f = _drawer(theano, cls(5).uniform((2,)))
        f()
        g = f.copy()
        return [bits(np.ravel(h())) for h in (f, g, f, g)]

    def pickled(cls):
        stream = cls(5)
        f = _drawer(theano, stream.uniform((2,)))
        f()
        other, g = pickle.loads(pickle.dumps((stream, f), -1))
        return [[bits(h()) for h in (f, g, f)], len(other.state_updates)]

    def as_inputs():
        state = raw_random.random_state_type()
        after, drawn = raw_random.normal(state, (3,))
        f = theano.function([state], [after, drawn])
        generator = np.random.RandomState(1)
        first, again = f(generator), f(generator)
        return [bits(value) for value in (first[1], again[1], f(first[0])[1])]

    def updated_input():
        state = raw_random.random_state_type()
        after, drawn = raw_random.normal(state, (3,))
        given = theano.In(state, value=np.random.RandomState(1), update=after, mutable=True)
        f = theano.function([given], drawn)
        return [bits(f()), bits(f())]

    def merged():
        state = raw_random.random_state_type()
        (after, a), (_, b) = (raw_random.uniform(state, (2,)) for _ in range(2))
        _, c = raw_random.uniform(after, (2,))
        f = theano.function([state], [a, b, c])
        ops = [str(node.op) for node in f.maker.fgraph.toposort()]
        return [[bits(v) for v in f(np.random.RandomState(3))], sum("Random" in op for op in ops)]

    def shared():
        generator = np.random.RandomState(3)
        copied, borrowed = theano.shared(generator), theano.shared(generator, borrow=True)
        return [
            type(copied).__name__,
            copied.get_value(borrow=True) is generator,
            borrowed.get_value(borrow=True) is generator,
            str(copied.type),
            copied.get_value() is copied.get_value(),
            copied.type == borrowed.type,
        ]

    def test_values():
        with theano.change_flags(compute_test_value="raise"):
            found = []
            for cls in (MRG_RandomStreams, RandomStreams):
                u = cls(5).uniform((2,))
                found += [bits(u.tag.test_value), bits(theano.function([], u)())]
        return found

    def own_generator():
        stream = RandomStreams(234)
        u = stream.uniform((2,))
        f = _drawer(theano, u)
        u.rng.set_value(np.random.RandomState(5))
        first = bits(f())
        stream[u.rng] = np.random.RandomState(6)
        return [first, bits(f()), stream[u.rng] is u.rng.get_value(borrow=True)]

    cases = {}
    for case in (swapped, seeded, updates, copied, pickled):
        for kind, cls in kinds.items():
            cases[f"{case.__name__} {kind}"] = lambda case=case, cls=cls: case(cls)
    for case in (as_inputs, updated_input, merged, shared, test_values, own_generator):
        cases[case.__name__] = case
    cases["refused"] = lambda: theano.shared(np.random.RandomState(3)).set_value(3)
    return attempt_each(cases)


@program("random.gradients")
def gradients(theano, T, np):
    """Gradients through random numbers, and by the arguments of distributions."""
    from theano.sandbox.multinomial import MultinomialFromUniform
    from theano.sandbox.rng_mrg import MRG_RandomStreams
    from theano.tensor.shared_randomstreams import RandomStreams

    x, s = T.dmatrix("x"), T.dscalar("s")
    rows = np.array(PROBABILITIES)

    def by(variable, value, build):
        return lambda: theano.function([variable], T.grad(build(), variable))(value)

    def refused(variable, build):
        return lambda: str(T.grad(build(), variable).ndim)

    cases = {
        "by pvals": refused(x, lambda: MRG_RandomStreams(5).multinomial(pvals=x).sum() * 1.0),
        "by p": refused(s, lambda: MRG_RandomStreams(5).binomial((3,), p=s).sum() * 1.0),
        "of counts": by(x, rows, lambda: MultinomialFromUniform("float64")(x, [0.1] * 3).sum()),
    }
    for kind, cls in (("mrg", MRG_RandomStreams), ("numpy", RandomStreams)):
        cases["product " + kind] = by(
            x, np.ones((2, 2)), lambda cls=cls: (cls(5).uniform(x.shape, ndim=2) * x).sum()
        )
        cases["scale " + kind] = by(s, 2.0, lambda cls=cls: (s * cls(5).normal((3,))).sum())
        cases["by low " + kind] = refused(s, lambda cls=cls: cls(5).uniform((3,), low=s).sum())
        cases["by avg " + kind] = refused(s, lambda cls=cls: cls(5).normal((3,), avg=s).sum())
    return attempt_each(cases)


@program("random.inplace")
def inplace(theano, T, np):
    """Which Ops overwrite the states."""
    from theano.sandbox.rng_mrg import MRG_RandomStreams
    from theano.tensor.shared_randomstreams import RandomStreams

    def ops(cls, **options):
        f = theano.function([], cls(5).uniform((2,)), **options)
        draw = f.maker.fgraph.outputs[0].owner
        return [str(draw.op), bool(getattr(draw.op, "destroy_map", {}))]

    cases = {}
    for kind, cls in (("mrg", MRG_RandomStreams), ("numpy", RandomStreams)):
        for mode in ("FAST_RUN", "FAST_COMPILE"):
            cases[f"{kind} {mode}"] = lambda cls=cls, mode=mode: ops(cls, mode=mode)
        cases[kind + " without updates"] = lambda cls=cls: ops(cls, no_default_updates=True)
    return attempt_each(cases)


@program("random.tutorial")
def tutorial(theano, T, np):
    """The tutorial on random numbers: shared streams, seeds, copies of states between graphs."""
    from theano.sandbox.rng_mrg import MRG_RandomStreams
    from theano.tensor.shared_randomstreams import RandomStreams

    srng = RandomStreams(seed=234)
    rv_u = srng.uniform((2, 2))
    rv_n = srng.normal((2, 2))
    f = theano.function([], rv_u)
    g = theano.function([], rv_n, no_default_updates=True)
    nearly_zeros = theano.function([], rv_u + rv_u - 2 * rv_u)
    found = [f(), f(), g(), g(), nearly_zeros()]
    rng_val = rv_u.rng.get_value(borrow=True)
    rng_val.seed(89234)
    rv_u.rng.set_value(rng_val, borrow=True)
    srng.seed(902340)
    state_after_v0 = rv_u.rng.get_value().get_state()
    nearly_zeros()
    v1 = f()
    rng = rv_u.rng.get_value(borrow=True)
    rng.set_state(state_after_v0)
    rv_u.rng.set_value(rng, borrow=True)
    found += [v1, f(), f()]

    class Graph:
        def __init__(self, seed=123):
            self.rng = RandomStreams(seed)
            self.y = self.rng.uniform(size=(1,))

    def copy_random_state(g1, g2):
        if isinstance(g1.rng, MRG_RandomStreams):
            g2.rng.rstate = g1.rng.rstate
        for su1, su2 in zip(g1.rng.state_updates, g2.rng.state_updates):  # noqa: B905
            su2[0].set_value(su1[0].get_value())

    g1, g2 = Graph(seed=123), Graph(seed=987)
    f1, f2 = theano.function([], g1.y), theano.function([], g2.y)
    found += [f1(), f2()]
    copy_random_state(g1, g2)
    return [bits(value) for value in [*found, f1(), f2()]]


@program("random.training")
def training(theano, T, np):
    """A multi-layer perceptron with dropout, and a restricted Boltzmann machine, trained."""
    from theano.sandbox.rng_mrg import MRG_RandomStreams
    from theano.tensor.shared_randomstreams import RandomStreams

    data = np.random.RandomState(0)
    images, labels = data.rand(20, 12), data.randint(0, 3, 20)

    def dropped(stream, layer, p):
        mask = stream.binomial(n=1, p=1 - p, size=layer.shape)
        return layer * T.cast(mask, theano.config.floatX)

    def perceptron(stream):
        start = np.random.RandomState(1)
        x, y = T.matrix("x"), T.ivector("y")
        w1 = theano.shared(start.uniform(-0.5, 0.5, (12, 9)), "w1")
        w2 = theano.shared(start.uniform(-0.5, 0.5, (9, 3)), "w2")
        hidden = dropped(stream, T.tanh(T.dot(dropped(stream, x, 0.2), w1)), 0.5)
        probabilities = T.nnet.softmax(T.dot(hidden, w2))
        cost = -T.mean(T.log(probabilities)[T.arange(y.shape[0]), y])
        steps = [(w, w - 0.5 * T.grad(cost, w)) for w in (w1, w2)]
        train = theano.function([x, y], cost, updates=steps)
        return [[train(images, labels.astype("int32")) for _ in range(5)], w1.get_value()]

    def boltzmann(stream):
        w = theano.shared(np.random.RandomState(2).uniform(-0.3, 0.3, (12, 5)), "w")
        v = T.matrix("v")

        def sample(p):
            return stream.binomial(size=p.shape, n=1, p=p, dtype=theano.config.floatX)

        ph = T.nnet.sigmoid(T.dot(v, w))
        nv = sample(T.nnet.sigmoid(T.dot(sample(ph), w.T)))
        nh = T.nnet.sigmoid(T.dot(nv, w))
        gradient = T.dot(v.T, ph) - T.dot(nv.T, nh)
        step = theano.function([v], T.mean(T.sqr(v - nv)), updates=[(w, w + 0.1 * gradient)])
        binary = (images > 0.5).astype(theano.config.floatX)
        return [[step(binary) for _ in range(4)], w.get_value()]

    cases = {}
    for kind, cls in (("mrg", MRG_RandomStreams), ("numpy", RandomStreams)):
        for case in (perceptron, boltzmann):
            name = f"{case.__name__} {kind}"
            cases[name] = lambda case=case, cls=cls: case(cls(99))
    return attempt_each(cases)
