"""Reductions by scalar operations of users, in C++: one element after the other, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import ObjectStep
from opwise.linkers.userops.code import UserCode
from opwise.linkers.userops.python import runs_in_python
from opwise.scalar import csource, usercode
from opwise.scalar.cinterface import c_type
from opwise.scalar.usercode import UserFunction
from opwise.tensor.reduce import users_identity

_CODE = """\
{{
    const int nd = {nd}, nkept = {nkept};
    const int order[nd + 1] = {{{order}}};  /* the kept dimensions, then the reduced ones */
    npy_intp shape[nd + 1], step[nd + 1], at[nd + 1] = {{0}}, total = 1, count = 1;
    for (int k = 0; k < nd; k++) {{
        shape[k] = PyArray_DIM({x}, order[k]);
        step[k] = PyArray_STRIDE({x}, order[k]);
        (k < nkept ? total : count) *= shape[k];
    }}
    if (count == 0 && total != 0 && !{has_identity}) {{
        for (int k = nkept; k < nd; k++)
            if (shape[k] == 0) {{
                PyErr_Format(PyExc_ValueError, "Input of CAReduce{{%s}} has zero-size on axis %d",
                             "{op}", order[k]);
                {fail}
            }}
    }}
    if (!{z} || !PyArray_ISCARRAY({z}) || PyArray_NDIM({z}) != nkept
        || !PyArray_CompareLists(PyArray_DIMS({z}), shape, nkept)) {{
        Py_XDECREF({z});
        {z} = (PyArrayObject *)PyArray_EMPTY(nkept, shape, {typenum}, 0);
        if (!{z}) {fail}
    }}
    {out} *to = ({out} *)PyArray_DATA({z});
    for (npy_intp i = 0; count == 0 && i < total; i++)
        to[i] = ({out}){identity};
    const char *from = (const char *)PyArray_DATA({x});
    for (npy_intp i = 0; count != 0 && i < total; i++) {{
        {acc} acc = ({acc})*(const {element} *)from;
        for (npy_intp j = 1; j < count; j++) {{
            for (int k = nd - 1; k >= nkept; k--) {{
                from += step[k];
                if (++at[k] < shape[k])
                    break;
                from -= at[k] * step[k];
                at[k] = 0;
            }}
            acc = {function}(acc, ({acc})*(const {element} *)from);
        }}
        if ({may_fail} && PyErr_Occurred()) {fail}
        to[i] = ({out})acc;
        for (int k = nd - 1; k >= 0; k--) {{  /* the next kept element; reduced indices restart */
            if (k >= nkept) {{
                from -= at[k] * step[k];
                at[k] = 0;
                continue;
            }}
            from += step[k];
            if (++at[k] < shape[k])
                break;
            from -= at[k] * step[k];
            at[k] = 0;
        }}
    }}
}}
"""


class _Reduction(Op):
    """A CAReduce as an Op with ``c_code``: ``function`` takes two accumulators."""

    def __init__(self, reduce: Any, function: UserFunction, acc: str) -> None:
        self.reduce, self.function, self.acc = reduce, function, acc

    def c_headers(self) -> Sequence[str]:
        return self.function.headers

    def c_support_code(self) -> str:
        return usercode.definitions([self.function])

    def c_code(
        self,
        node: Apply,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        sub: Mapping[str, Any],
    ) -> str:
        nd, axis = node.inputs[0].type.ndim, self.reduce.axis
        reduced = list(range(nd)) if axis is None else list(axis)
        kept = [d for d in range(nd) if d not in reduced]
        out = node.outputs[0].type.dtype
        identity = users_identity(self.reduce.scalar_op)
        return _CODE.format(
            nd=nd,
            nkept=len(kept),
            order=", ".join(map(str, [*kept, *reduced, 0])),
            x=inputs[0],
            z=outputs[0],
            op=str(self.reduce.scalar_op).replace('"', "'"),
            fail=sub["fail"],
            typenum=f"NPY_{out.upper()}",
            out=c_type(out),
            acc=c_type(self.acc),
            element=c_type(node.inputs[0].type.dtype),
            function=self.function.name,
            has_identity=int(identity is not None),
            identity=csource.literal(identity or 0, out),
            may_fail=int(self.function.needs_gil),
        )


def lower(node: Apply, kernels: Kernels, acc: str) -> ObjectStep | None:
    """Return the step of a CAReduce by a user's operation; None if it has no C++ code.

    acc: the dtype of the accumulator.
    """
    op, x, out = node.op, node.inputs[0], node.outputs[0]
    if op.axis == () or x.type.ndim == 0:
        return None
    if not kernels.generate and runs_in_python(op):
        return None
    function = usercode.function_of(op.scalar_op, (acc, acc), acc)
    if function is None or "float16" in (x.type.dtype, out.type.dtype):
        return None
    reduction = _Reduction(op, function, acc)
    code = UserCode(Apply(reduction, [x.clone()], [out.type.make_variable()]), owner=op.scalar_op)
    kernels.add(code)
    return ObjectStep(code)
