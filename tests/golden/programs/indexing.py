"""Every kind of index: its pattern and op, reading, setting, adding to, and the gradient."""

from functools import partial

from .broadcasting import pattern
from .compiling import in_modes, tensor
from .encoding import attempt, attempt_each
from .register import add_program, program

BASIC = {
    "v[0]": lambda T, s: s.v[0],
    "v[-1]": lambda T, s: s.v[-1],
    "v[n]": lambda T, s: s.v[s.n],
    "v[-n]": lambda T, s: s.v[-s.n],
    "v[k8]": lambda T, s: s.v[s.k8],
    "v[:]": lambda T, s: s.v[:],
    "v[1:]": lambda T, s: s.v[1:],
    "v[:-1]": lambda T, s: s.v[:-1],
    "v[1:3]": lambda T, s: s.v[1:3],
    "v[::2]": lambda T, s: s.v[::2],
    "v[::-1]": lambda T, s: s.v[::-1],
    "v[3:0:-2]": lambda T, s: s.v[3:0:-2],
    "v[n:]": lambda T, s: s.v[s.n :],
    "v[:n]": lambda T, s: s.v[: s.n],
    "v[n:n + 2]": lambda T, s: s.v[s.n : s.n + 2],
    "v[::n]": lambda T, s: s.v[:: s.n],
    "v[-100:100]": lambda T, s: s.v[-100:100],
    "v[3:1]": lambda T, s: s.v[3:1],
    "v[...]": lambda T, s: s.v[...],
    "v[None, :]": lambda T, s: s.v[None, :],
    "v[:, None]": lambda T, s: s.v[:, None],
    "x[0]": lambda T, s: s.x[0],
    "x[0, 1]": lambda T, s: s.x[0, 1],
    "x[:, 1]": lambda T, s: s.x[:, 1],
    "x[1, :]": lambda T, s: s.x[1, :],
    "x[:, 1:]": lambda T, s: s.x[:, 1:],
    "x[1:, ::-1]": lambda T, s: s.x[1:, ::-1],
    "x[n, 1:]": lambda T, s: s.x[s.n, 1:],
    "x[..., 0]": lambda T, s: s.x[..., 0],
    "x[0:1]": lambda T, s: s.x[0:1],
    "t[1, ..., 0]": lambda T, s: s.t[1, ..., 0],
    "t[:, 0]": lambda T, s: s.t[:, 0],
    "t[..., 1:]": lambda T, s: s.t[..., 1:],
    "t[1, None, :, 0]": lambda T, s: s.t[1, None, :, 0],
    "x[v0 as int]": lambda T, s: s.x[T.cast(s.v[0], "int64")],
    "x[1:][0]": lambda T, s: s.x[1:][0],
    "x.T[0]": lambda T, s: s.x.T[0],
}
ADVANCED = {
    "v[i]": lambda T, s: s.v[s.i],
    "v[[0, 2, 2]]": lambda T, s: s.v[[0, 2, 2]],
    "v[array]": lambda T, s: s.v[s.np.array([3, -1])],
    "v[i8]": lambda T, s: s.v[s.i8],
    "v[matrix]": lambda T, s: s.v[s.np.array([[0, 1], [2, 3]])],
    "v[nothing]": lambda T, s: s.v[s.np.array([], "int64")],
    "v[v > 2]": lambda T, s: s.v[s.v > 2],
    "v[array of bools]": lambda T, s: s.v[s.np.array([True, False, True, False])],
    "v[(v > 2).nonzero()]": lambda T, s: s.v[(s.v > 2).nonzero()],
    "v[eq as int8]": lambda T, s: s.v[T.cast(s.v > 2, "int8")],
    "x[i]": lambda T, s: s.x[s.i],
    "x[i, :]": lambda T, s: s.x[s.i, :],
    "x[:, i]": lambda T, s: s.x[:, s.i],
    "x[i, i]": lambda T, s: s.x[s.i, s.i],
    "x[i, [0, 1, 2]]": lambda T, s: s.x[s.i, [0, 1, 2]],
    "x[arange, i]": lambda T, s: s.x[T.arange(3), s.i],
    "x[0, i]": lambda T, s: s.x[0, s.i],
    "x[i, 0]": lambda T, s: s.x[s.i, 0],
    "x[n, i]": lambda T, s: s.x[s.n, s.i],
    "x[1:, i]": lambda T, s: s.x[1:, s.i],
    "x[i, 1:]": lambda T, s: s.x[s.i, 1:],
    "x[i][:, i]": lambda T, s: s.x[s.i][:, s.i],
    "x[column, i]": lambda T, s: s.x[s.i.dimshuffle(0, "x"), s.i],
    "x[x > 2]": lambda T, s: s.x[s.x > 2],
    "x[rows of bools]": lambda T, s: s.x[s.np.array([True, False, True])],
    "x[:, columns of bools]": lambda T, s: s.x[:, s.np.array([True, False, True])],
    "x[(x > 2).nonzero()]": lambda T, s: s.x[(s.x > 2).nonzero()],
    "x[None, i]": lambda T, s: s.x[None, s.i],
    "x[..., i]": lambda T, s: s.x[..., s.i],
    "t[:, i, 0]": lambda T, s: s.t[:, s.i, 0],
    "t[i8, :, i8]": lambda T, s: s.t[s.i8, :, s.i8],
    "t[i8, i8]": lambda T, s: s.t[s.i8, s.i8],
    "t[0, i]": lambda T, s: s.t[0, s.i],
    "t[:, :, [0, 1]]": lambda T, s: s.t[:, :, [0, 1]],
}


class Leaves:
    """Inputs of one, two and three dimensions, indices, and their values."""

    def __init__(self, T, np):
        self.np = np
        self.v, self.x, self.t = T.dvector("v"), T.dmatrix("x"), T.dtensor3("t")
        self.n, self.k8 = T.lscalar("n"), T.bscalar("k8")
        self.i, self.i8 = T.lvector("i"), T.bvector("i8")
        self.inputs = [self.v, self.x, self.t, self.n, self.k8, self.i, self.i8]
        self.values = (
            np.array([1.0, 2.0, 3.0, 4.0]),
            np.arange(1.0, 10.0).reshape(3, 3) / 2,
            np.arange(18.0).reshape(2, 3, 3),
            np.array(2),
            np.array(1, "int8"),
            np.array([2, 0, 0]),
            np.array([1, 0], "int8"),
        )


def _read(build, theano, T, np):
    leaves = Leaves(T, np)
    part = build(T, leaves)
    results = {"pattern": pattern(part), "op": str(part.owner.op), "ops below": _ops_below(part)}
    results["read"] = in_modes(theano, leaves.inputs, part, *leaves.values)
    return results


def _ops_below(part):
    owners, node = [], part.owner.inputs[0].owner
    while node is not None:
        owners.append(str(node.op))
        node = node.inputs[0].owner
    return owners


def _changed(change, value, build, theano, T, np):
    leaves = Leaves(T, np)
    part = build(T, leaves)
    whole = getattr(T, change)(part, value(T, part))
    return {
        "op": str(whole.owner.op),
        "result": in_modes(theano, leaves.inputs, whole, *leaves.values),
    }


def _of_number(T, part):
    return 10.0


def _of_part(T, part):
    return part * part


def _gradient(build, theano, T, np):
    leaves = Leaves(T, np)
    part = build(T, leaves)
    candidates = [leaves.v, leaves.x, leaves.t]
    slopes = T.grad((part**2).sum(), candidates, disconnected_inputs="ignore")
    slopes = [slope for slope in slopes if slope.owner is not None]
    return in_modes(theano, leaves.inputs, slopes, *leaves.values)


def _table(case, cases, theano, T, np):
    return attempt_each(
        {label: partial(case, build, theano, T, np) for label, build in cases.items()}
    )


for _kind, _cases in (("basic", BASIC), ("advanced", ADVANCED)):
    add_program(f"indexing.{_kind}.read", partial(_table, _read, _cases))
    add_program(f"indexing.{_kind}.gradient", partial(_table, _gradient, _cases))
    for _change in ("set_subtensor", "inc_subtensor"):
        add_program(
            f"indexing.{_kind}.{_change}.number",
            partial(_table, partial(_changed, _change, _of_number), _cases),
        )
        add_program(
            f"indexing.{_kind}.{_change}.tensor",
            partial(_table, partial(_changed, _change, _of_part), _cases),
        )


@program("indexing.refused_while_building")
def refused_while_building(theano, T, np):
    """Indices that no variable takes."""
    v, x = T.dvector("v"), T.dmatrix("x")
    return attempt_each(
        {
            "v[0, 0]": lambda: v[0, 0],
            "v[1.0]": lambda: v[1.0],
            "v[float vector]": lambda: v[T.dvector()],
            "v[[True, False]]": lambda: v[[True, False]],
            "v[True]": lambda: v[True],
            "v[None]": lambda: str(v[None].type),
            "x[..., ..., 0]": lambda: x[..., ..., 0],
            "x[:, :, None, 0]": lambda: x[:, :, None, 0],
            "v[1.5:]": lambda: v[1.5:],
            "v[x > 0]": lambda: v[x > 0],
            "scalar[0]": lambda: T.dscalar()[0],
            "set_subtensor of an input": lambda: T.set_subtensor(v, 1.0),
            "set_subtensor of a sum": lambda: T.set_subtensor(v + 1, 1.0),
            "set_subtensor of int by float": lambda: str(T.set_subtensor(T.ivector()[0], 1.5).type),
            "set_subtensor of float32 by float64": lambda: str(
                T.set_subtensor(T.fvector()[0], T.dscalar()).type
            ),
            "set_subtensor of too many dimensions": lambda: T.set_subtensor(v[1:], x),
            "set_subtensor of transposed": lambda: str(T.set_subtensor(x.T[0], 1.0).owner.op),
            "set_subtensor of reshaped": lambda: str(
                T.set_subtensor(x.reshape((4,)), 1.0).owner.op
            ),
            "v.take of floats": lambda: v.take(T.dvector()),
            "del": lambda: v.__delitem__(0),
        }
    )


@program("indexing.refused_at_run_time")
def refused_at_run_time(theano, T, np):
    """Indices out of range, masks and values of wrong lengths."""
    v, x, n, i = T.dvector("v"), T.dmatrix("x"), T.lscalar("n"), T.lvector("i")
    w = T.dvector("w")
    ones = np.ones
    return {
        "v[5]": in_modes(theano, [v], v[5], ones(1)),
        "v[n]": in_modes(theano, [v, n], v[n], ones(2), np.array(2)),
        "v[-3]": in_modes(theano, [v], v[-3], ones(2)),
        "x[0, 7]": in_modes(theano, [x], x[0, 7], ones((2, 3))),
        "v[i]": in_modes(theano, [v, i], v[i], ones(2), np.array([5])),
        "x[i, i]": in_modes(theano, [x, i], x[i, i], ones((2, 3)), np.array([0, 2])),
        "v[mask]": in_modes(theano, [v, w], v[w > 0], ones(2), ones(3)),
        "v[::0]": in_modes(theano, [v, n], v[::n], ones(2), np.array(0)),
        "set v[5]": in_modes(theano, [v], T.set_subtensor(v[5], 1.0), ones(2)),
        "inc v[i]": in_modes(theano, [v, i], T.inc_subtensor(v[i], 1.0), ones(2), np.array([2])),
        "set v[:2] of 3": in_modes(theano, [v, w], T.set_subtensor(v[:2], w), ones(4), ones(3)),
        "inc v[i] of 2": in_modes(
            theano, [v, w, i], T.inc_subtensor(v[i], w), ones(3), ones(2), np.array([0, 0, 2])
        ),
        "set x[i] of 2 columns": in_modes(
            theano, [x, i], T.set_subtensor(x[i], np.ones((1, 2))), ones((3, 3)), np.array([0])
        ),
    }


@program("indexing.repeated_indices")
def repeated_indices(theano, T, np):
    """Adding counts every occurrence of an index; setting keeps the last."""
    v, x, i = T.dvector("v"), T.dmatrix("x"), T.lvector("i")
    vector, matrix, index = np.zeros(3), np.zeros((2, 2)), np.array([0, 0, 1])
    values = np.array([1.0, 2.0, 3.0])
    set_part, inc_part = T.set_subtensor, T.inc_subtensor
    results = {}
    for label, change in (("inc", inc_part), ("set", set_part)):
        results[label + " number"] = in_modes(theano, [v, i], change(v[i], 1.0), vector, index)
        results[label + " values"] = in_modes(theano, [v, i], change(v[i], values), vector, index)
        results[label + " rows"] = in_modes(
            theano, [x, i], change(x[i], np.ones((3, 2))), matrix, index
        )
        results[label + " pairs"] = in_modes(theano, [x, i], change(x[i, i], 1.0), matrix, index)
        results[label + " columns"] = in_modes(theano, [x, i], change(x[:, i], 1.0), matrix, index)
        results[label + " row of ones"] = in_modes(
            theano, [x, i], change(x[i], np.ones(2)), matrix, index
        )
        results[label + " mask"] = in_modes(theano, [v], change(v[v < 1], 5.0), vector)
    results["inc inplace"] = in_modes(theano, [v], inc_part(v[1:], 1.0, inplace=True), vector)
    f = tensor(T, "float32", 1, "f")
    results["float32 number"] = attempt(
        lambda: in_modes(theano, [f], inc_part(f[1:], 1.1), np.zeros(3, "float32"))
    )
    results["ints"] = attempt(
        lambda: in_modes(
            theano,
            [f],
            set_part(T.cast(f, "int32")[1:], T.constant(np.int8(3))),
            np.zeros(3, "float32"),
        )
    )
    return results
