"""Kernels on the rows of matrices: softmax, its logarithm and gradient, cross entropy with labels.

A group of threads computes a row. If rows fit shared memory, each element is read and written once.
Rows and columns are 32-bit indices; offsets in memory have 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opwise.gpu.kernels import cudatext, layouts
from opwise.gpu.kernels.cudatext import c_type, for_each, held, load, store, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    Kernel,
    Launch,
    Layout,
    Plan,
    batched,
    grid_of,
    in_braces,
    is_used,
    make_kernel,
    with_head,
)  # fmt: skip
from opwise.gpu.kernels.reduce import Folding, across
from opwise.scalar import csource

_WARP = 32
#: bytes of shared memory left for the joins of a block (see ``reduce.across``)
_FOR_JOINS = 1024
#: the fewest vectors of a row for each thread of its group
_WORTH = 4


@dataclass(frozen=True)
class _OnlineSoftmax:
    """The maximum of the elements so far, and the sum of exp(element - maximum) over them."""

    dtypes: tuple[str, ...]

    def join(self, a: Sequence[str], b: Sequence[str]) -> str:
        return f"ow_online_{csource.short(self.dtypes[0])}({', '.join([*a, *b])});"


class RowKernels:
    """The kernels of one operation on rows, and its plans.

    Its inputs are matrices of one dtype (or one row, such as a bias), then perhaps a gradient of
    each row, then perhaps labels.
    """

    def __init__(
        self,
        text: Callable[[_RowText], list[str]],
        dtype: str,
        matrices: int,
        keeps: int,
        outs: tuple[str, ...],
        label: str | None = None,
        gradient: bool = False,
        matrix: int = 0,
    ) -> None:
        """text: writes the lines for a row; its name is part of the kernels' names.

        matrices: how many inputs are matrices. keeps: how many numbers of each element are kept in
        shared memory. outs: dtypes of the outputs; number ``matrix`` is a matrix. label: dtype of
        the labels, if any. gradient: whether there is a gradient of each row.
        """
        self.dtype, self.matrices, self.keeps = dtype, matrices, keeps
        self.outs, self.label, self.gradient, self.matrix = outs, label, gradient, matrix
        width = min(8, cudatext.VECTOR_BYTES // cudatext.itemsize(dtype))
        self.vectors = self._kernel(text, width, keeps > 0)
        self.single = self._kernel(text, 1, keeps > 0)
        self.long = self._kernel(text, 1, False) if keeps else None

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(filter(None, (self.vectors, self.single, self.long)))

    def _kernel(self, text, width, kept):
        writer = _RowText(self, width, kept)
        body = text(writer)
        parameters = [
            (f"const {stored(self.dtype)} *__restrict__", f"a{k}") for k in range(self.matrices)
        ]
        if self.gradient:
            parameters.append((f"const {stored(self.dtype)} *", "g"))
        if self.label:
            parameters.append((f"const {stored(self.label)} *", "labels"))
        parameters += [(f"{stored(d)} *", f"z{k}") for k, d in enumerate(self.outs)]
        if self.label:
            parameters.append(("ow_u32 *", "wrong"))
        parameters += [("ow_i32", "rows"), ("ow_i32", "n")]
        for k in range(self.matrices):
            parameters += [("ow_i64", f"row{k}"), ("ow_i64", f"step{k}")]
        if self.gradient:
            parameters.append(("ow_i64", "g_step"))
        if self.label:
            parameters.append(("ow_i64", "label_step"))
        stem = text.__name__.strip("_") + ("" if width == 1 else "_vectors")
        stem += "_long" if self.keeps and not kept else ""
        return make_kernel(stem, parameters, writer.around(body), writer.needs)

    def plan(
        self, inputs: Sequence[Layout], outputs: Sequence[Layout], limits: DeviceLimits
    ) -> Plan:
        """Return the Plan. A matrix whose rows or columns have length 1 is broadcast."""
        rows, n = outputs[self.matrix].shape
        if rows * n == 0 and not (rows and len(self.outs) > 1):
            return Plan(())
        if max(rows, n) >= 2**31 - 2**20:
            raise ValueError(f"a matrix of {rows} by {n} is too large for kernels on rows")
        matrices = [_steps(x, rows, n) for x in inputs[: self.matrices]]
        numbers = [rows, n]
        for row, step in matrices:
            numbers += [row, step]
        k = self.matrices
        for _ in range(bool(self.gradient) + bool(self.label)):
            # a gradient that is a number is broadcast: its step is 0
            numbers.append((*layouts.steps_of(inputs[k], inputs[k].shape), 0)[0])
            k += 1
        kernel, width = self._choose(inputs, outputs, matrices, n)
        lanes = _lanes(n, width)
        block = (lanes, 1) if lanes > _WARP else (lanes, THREADS // lanes)
        shared = block[1] * n * self.keeps * cudatext.itemsize(held(self.dtype))
        if self.keeps and shared + _FOR_JOINS > limits.shared:
            kernel, shared = self.long, 0
            lanes = _lanes(n, 1)
            block = (lanes, 1) if lanes > _WARP else (lanes, THREADS // lanes)
        grid = grid_of(rows, limits, block[1])
        arrays = [Array("in", i) for i in range(k)] + [
            Array("out", o) for o in range(len(self.outs))
        ]
        if self.label:
            arrays.append(Array("error_flag"))
        return Plan((Launch(kernel, grid, block, tuple(arrays), tuple(numbers), shared),))

    def _choose(self, inputs, outputs, matrices, n):
        """Return (the kernel for some layouts, how many elements it loads at once)."""
        width = min(8, cudatext.VECTOR_BYTES // cudatext.itemsize(self.dtype))
        involved = [*inputs[: self.matrices], outputs[self.matrix]]
        fits = (
            n % width == 0
            and all(x.alignment % cudatext.VECTOR_BYTES == 0 for x in involved)
            and all(step == 1 and row % width == 0 for row, step in matrices)
        )
        return (self.vectors, width) if fits else (self.single, 1)


def _steps(layout, rows, n):
    """Return the steps, in elements, from row to row and from column to column.

    A vector is broadcast to all rows.
    """
    matrix = layout._replace(shape=(1, *layout.shape)[-2:], strides=(0, *layout.strides)[-2:])
    return layouts.steps_of(matrix, (rows, n))


def _lanes(n, width):
    wanted = -(-n // (width * _WORTH))
    return min(THREADS, 1 << max(0, wanted - 1).bit_length())


class _RowText:
    """Writes the lines of operations on rows."""

    def __init__(self, kernels, width, kept):
        self.k, self.width, self.kept = kernels, width, kept
        self.type = c_type(kernels.dtype)
        self.short = csource.short(held(kernels.dtype))
        self.zero = "0.0f" if self.type == "float" else "0.0"
        self.infinity = f"__builtin_inf{'f' if self.type == 'float' else ''}()"
        self._functions = {}
        self._types = {}
        self._online = False

    @property
    def needs(self):
        names = ["expneg", "log", *(["half"] if self.k.dtype == "float16" else [])]
        names += ["better", "complain"] if self.k.label else []
        names += ["online"] if self._online else []
        return (
            *cudatext.support(*names, dtypes=[held(self.k.dtype)]),
            *filter(None, self._types.values()),
            *self._functions.values(),
        )

    def _load(self, pointer, place, vector):
        """Return the expression of the vector, or the element, at a place."""
        if self.width == 1:
            return f"{pointer}[{place}]"
        return f"*(const {vector} *)({pointer} + {place})"

    def _store(self, pointer, place, vector, name):
        if self.width == 1:
            return f"{pointer}[{place}] = {name};"
        return f"*({vector} *)({pointer} + {place}) = {name};"

    def exp(self, text):
        return f"ow_expneg_{self.short}({text})"

    def log(self, text):
        return f"ow_log_{self.short}({text})"

    def join(self, folding, *names):
        """Return the statement that joins variables over all threads of a group."""
        name, text = across(folding)
        self._functions[name] = text
        self._online |= isinstance(folding, _OnlineSoftmax)
        return f"{name}({', '.join(names)});"

    def sum(self, name):
        return self.join(Folding.of("add", held(self.k.dtype), held(self.k.dtype)), name)

    def largest(self, name):
        """Return the statement that joins maxima. NaN is ignored: it makes the sum NaN anyway."""
        return self.join(_Largest((held(self.k.dtype),)), name)

    def around(self, body):
        """Return the body of a kernel that runs lines for each row ``at``, of length m.

        Groups of threads without a row run them too, with m = 0.
        """
        matrices = [
            f"const {stored(self.k.dtype)} *x{k} = a{k} + at * row{k};"
            for k in range(self.k.matrices)
        ]
        times = f"{self.k.keeps} * " if self.k.keeps > 1 else ""
        shared = [
            "OW_SHARED;",
            f"{self.type} *kept0 = ({self.type} *)ow_shared + threadIdx.y * {times}n;",
            *(f"{self.type} *kept{i} = kept{i - 1} + n;" for i in range(1, self.k.keeps)),
        ]  # fmt: skip
        label = [
            "ow_i64 label = at < rows ? (ow_i64)labels[at * label_step] : 0;",
            "if (label < 0 || label >= n) {",
            "    if (threadIdx.x == 0)",
            "        ow_complain(wrong, at);",
            "    label = -1;",
            "}",
        ]
        gradient = f"const {self.type} by = at < rows ? {load('g[at * g_step]', self.k.dtype)}"
        return [
            *(shared if self.kept else []),
            "for (ow_i32 first = blockIdx.x * blockDim.y; first < rows;"
            " first += gridDim.x * blockDim.y) {",
            "    const ow_i64 at = first + (ow_i64)threadIdx.y;",
            "    const ow_i32 m = at < rows ? n : 0;",
            *(f"    {line}" for line in matrices),
            *(f"    {line}" for line in (label if self.k.label else [])),
            *([f"    {gradient} : {self.zero};"] if self.k.gradient else []),
            *(f"    {line}" for line in body),
            "}",
        ]

    def _vector(self, dtype):
        name, text = cudatext.vector(dtype, self.width)
        self._types[name] = text
        return name

    def each(self, statement, reads=(), kept=(), keeps=(), writes=None):
        """Return the lines that run statements on each element of the row.

        reads: matrices, whose values are v0, v1, ...; kept: numbers in shared memory, whose values
        are e0, e1, ...; keeps: (number, expression) to write there; writes: (output, expression).
        """
        at = ".at[k]" if self.width > 1 else ""
        of_held, of_stored = self._vector(held(self.k.dtype)), self._vector(self.k.dtype)
        declared, ends, after = [], [], []
        for i in kept:
            declared.append(f"const {of_held} l{i} = {self._load(f'kept{i}', 'c', of_held)};")
        for i, value in keeps:
            declared.append(f"{of_held} r{i};")
            ends.append(f"r{i}{at} = {value};")
            after.append(self._store(f"kept{i}", "c", of_held, f"r{i}"))
        if writes is not None:
            out, value = writes
            declared.append(f"{of_stored} w;")
            ends.append(f"w{at} = {store(value, self.k.dtype)};")
            after.append(self._store(f"z{out}", "at * n + c", of_stored, "w"))

        def loads(place):
            return [], [
                (of_stored, f"u{k}", self._load(
                    f"x{k}", place if self.width > 1 else f"{place} * step{k}", of_stored))
                for k in reads
            ]  # fmt: skip

        def use(suffix, place):
            values = [
                f"const {self.type} v{k} = {load(f'u{k}{suffix}{at}', self.k.dtype)};"
                for k in reads
            ] + [f"const {self.type} e{i} = l{i}{at};" for i in kept]
            inner = in_braces([*values, *statement, *ends])
            if self.width > 1:
                inner = ["OW_UNROLL", *with_head(f"for (int k = 0; k < {self.width}; k++)", inner)]
            lines = [*declared, *inner, *after]
            named = [f"const ow_i32 c = {place};"] if is_used("c", lines) else []
            return in_braces([*named, *lines])

        # loads from shared memory need no batches
        count = 4 if reads else 1
        each = f" * {self.width}" if self.width > 1 else ""
        return in_braces([
            f"const ow_i32 step = blockDim.x{each};",
            f"ow_i32 j = threadIdx.x{each};",
            *batched(count, "m", loads, use),
        ])  # fmt: skip

    @property
    def column(self):
        """The column of the element in statements of ``each``."""
        return "c + k" if self.width > 1 else "c"


@dataclass(frozen=True)
class _Largest:
    """The larger of two numbers that are not NaN."""

    dtypes: tuple[str, ...]

    def join(self, a: Sequence[str], b: Sequence[str]) -> str:
        return f"{a[0]} = {b[0]} > {a[0]} ? {b[0]} : {a[0]};"


# --- operations -----------------------------------------------------------------------------------


def _value(writer):
    """Return the expression of an element of x, or of x + bias."""
    return " + ".join(f"v{k}" for k in range(writer.k.matrices))


def _reads(writer):
    return range(writer.k.matrices)


def _softmax(w):
    return _softmax_like(w, "total = 1 / total;", f"{w.exp('%s - most')} * total", "e0 * total")


def _logsoftmax(w):
    return _softmax_like(w, f"total = {w.log('total')};", "(%s - most) - total", None)


def _softmax_like(w, scale, result, of_exponential):
    """Return the lines of a softmax or its logarithm.

    scale: the statement that follows the sum. result: expression of an output, from a value %s.
    of_exponential: the same from the exponential e0, if shared memory keeps that.
    """
    largest = f"{w.type} most = -{w.infinity}, total = {w.zero};"
    if not w.kept:
        v = f"const {w.type} v = {_value(w)};"
        online = [
            v,
            f"if (v > most) {{ total = total * {w.exp('most - v')} + 1; most = v; }}",
            f"else total += v == most ? 1 : {w.exp('v - most')};",
        ]
        return [
            largest,
            *w.each(online, _reads(w)),
            w.join(_OnlineSoftmax((held(w.k.dtype),) * 2), "most", "total"),
            "total += most - most;",  # an infinite maximum makes NaN of the row
            scale,
            *w.each([v], _reads(w), writes=(0, result % "v")),
        ]
    first = [f"const {w.type} v = {_value(w)};", "most = v > most ? v : most;"]
    if of_exponential:
        second = [f"const {w.type} e = {w.exp('e0 - most')};", "total += e;"]
        kept = [(0, "e")]
    else:
        second, kept = [f"total += {w.exp('e0 - most')};"], []
    return [
        largest,
        *w.each(first, _reads(w), keeps=[(0, "v")]),
        w.largest("most"),
        *w.each(second, kept=[0], keeps=kept),
        w.sum("total"),
        scale,
        *w.each([], kept=[0], writes=(0, of_exponential or result % "e0")),
    ]


def _softmax_grad(w):
    start = f"{w.type} total = {w.zero};"
    if not w.kept:
        return [
            start,
            *w.each(["total += v0 * v1;"], [0, 1]),
            w.sum("total"),
            *w.each([], [0, 1], writes=(0, "v0 * v1 - total * v1")),
        ]
    product = [f"const {w.type} p = v0 * v1;", "total += p;"]
    return [
        start,
        *w.each(product, [0, 1], keeps=[(0, "p"), (1, "v1")]),
        w.sum("total"),
        *w.each([], kept=[0, 1], writes=(0, "e0 - total * e1")),
    ]


def _xent(w):
    pair = Folding.argmax(held(w.k.dtype), True)
    value = f"const {w.type} v = {_value(w)};"
    better = pair.join(("most", "best"), ("v", f"(ow_i64)({w.column})"))
    first = [value, better, f"if ({w.column} == label) mine = v;"]
    start = [
        f'{w.type} most = {w.zero}, total = {w.zero}, mine = __builtin_nan{_f(w)}("");',
        "ow_i64 best = -1;",
    ]
    if w.kept:
        second = w.each(
            [f"const {w.type} e = {w.exp('e0 - most')};", "total += e;"], kept=[0], keeps=[(0, "e")]
        )
        third = w.each([], kept=[0], writes=(1, "e0 * inverse"))
    else:
        second = w.each([value, f"total += {w.exp('v - most')};"], _reads(w))
        third = w.each([value], _reads(w), writes=(1, f"{w.exp('v - most')} * inverse"))
    owner = f"label / {w.width} % blockDim.x" if w.width > 1 else "label % blockDim.x"
    nll = store(f"{w.log('total')} - (mine - most)", w.k.dtype)
    return [
        *start,
        *w.each(first, _reads(w), keeps=[(0, "v")] if w.kept else []),
        w.join(pair, "most", "best"),
        *second,
        w.sum("total"),
        f"const {w.type} inverse = 1 / total;",
        *third,
        # the thread that read the label's column knows its value
        f"if (label >= 0 && at < rows && threadIdx.x == {owner})",
        f"    z0[at] = {nll};",
        "if (threadIdx.x == 0 && at < rows)",
        "    z2[at] = most == most && best >= 0 ? best : 0;",
    ]


def _f(w):
    return "f" if w.type == "float" else ""


def _xent_dx(w):
    return w.each([], [0], writes=(0, f"by * v0 - ({w.column} == label ? by : {w.zero})"))


def _onehot_grad(w):
    return w.each([], [0], writes=(0, f"{w.column} == label ? -by / v0 : {w.zero}"))


def softmax(dtype: str, bias: bool) -> RowKernels:
    """Inputs: x, and perhaps a bias."""
    return RowKernels(_softmax, dtype, 1 + bias, 1, (dtype,))


def log_softmax(dtype: str) -> RowKernels:
    """Input: x."""
    return RowKernels(_logsoftmax, dtype, 1, 1, (dtype,))


def softmax_grad(dtype: str) -> RowKernels:
    """Inputs: the gradient with respect to the softmax, and the softmax."""
    return RowKernels(_softmax_grad, dtype, 2, 2, (dtype,))


def cross_entropy(dtype: str, label: str) -> RowKernels:
    """Inputs: x, bias, labels. Outputs: cross entropy, softmax, position of the maximum."""
    return RowKernels(_xent, dtype, 2, 1, (dtype, dtype, label), label, matrix=1)


def cross_entropy_dx(dtype: str, label: str) -> RowKernels:
    """Inputs: softmax, gradient with respect to the cross entropy, labels."""
    return RowKernels(_xent_dx, dtype, 1, 0, (dtype,), label, gradient=True)


def one_hot_grad(dtype: str, label: str) -> RowKernels:
    """Inputs: probabilities, gradient with respect to the cross entropy, labels."""
    return RowKernels(_onehot_grad, dtype, 1, 0, (dtype,), label, gradient=True)


def one_hot(dtype: str, label: str) -> Kernel:
    """Return the kernel of -log of the probability of each row's label."""
    value = load("p[i * row + label * step]", dtype)
    short = csource.short(held(dtype))
    lines = [
        "const ow_i64 label = (ow_i64)labels[i * label_step];",
        "if (label < 0 || label >= n)",
        "    ow_complain(wrong, i);",
        "else",
        f"    z[i] = {store(f'-ow_log_{short}({value})', dtype)};",
    ]
    parameters = [
        (f"const {stored(dtype)} *", "p"), (f"const {stored(label)} *", "labels"),
        (f"{stored(dtype)} *", "z"), ("ow_u32 *", "wrong"),
        *(("ow_i64", name) for name in ("rows", "n", "row", "step", "label_step")),
    ]  # fmt: skip
    half = ["half"] if dtype == "float16" else []
    needs = cudatext.support("log", "complain", *half, dtypes=[held(dtype)])
    return make_kernel("onehot", parameters, for_each(True, lines, "rows"), needs)


def one_hot_plan(kernel: Kernel, inputs: Sequence[Layout], limits: DeviceLimits) -> Plan:
    """Return the Plan for (probabilities, labels)."""
    p, labels = inputs
    rows, n = p.shape
    if rows == 0:
        return Plan(())
    grid = grid_of(rows, limits)
    arrays = (Array("in", 0), Array("in", 1), Array("out", 0), Array("error_flag"))
    steps = (*layouts.steps_of(p, p.shape), *layouts.steps_of(labels, labels.shape))
    numbers = (rows, n, *steps)
    return Plan((Launch(kernel, grid, (THREADS, 1), arrays, numbers),))
