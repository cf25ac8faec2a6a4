"""Kernels of random numbers: uniform ones from streams, and outcomes that uniform numbers choose.

They compute what the host does, to the last bit. The order of threads has no effect on it.
"""

from __future__ import annotations

from opwise.gpu.kernels import cudatext, layouts
from opwise.gpu.kernels.cudatext import count_type, for_each, index_type, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    ForBothWidths,
    Kernel,
    Launch,
    Layout,
    Plan,
    grid_of,
    in_braces,
    make_kernel,
    with_head,
)
from opwise.scalar import csource
from opwise.tensor.random import mrg

# --- uniform numbers ----------------------------------------------------------------------------

#: threads in a block: each has a stream, and with few streams more processors have a block
_STREAMS = 64


class Uniform(ForBothWidths):
    """Uniform numbers of a dtype from streams of MRG31k3p, whose states it advances in place."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def _text(self, wide):
        """Return the kernel in which a thread draws all numbers of a stream."""
        index = index_type(wide)
        names = ("x1", "x2", "x3", "y1", "y2", "y3")
        places = [f"states[at + {k} * column]" if k else "states[at]" for k in range(6)]
        body = for_each(wide, [
            f"const {index} at = i * row;",
            *(f"ow_i32 {name} = {place};" for name, place in zip(names, places, strict=True)),
            *with_head("for (ow_u32 j = (ow_u32)i; j < total; j += streams)", in_braces([
                "const ow_i32 number = ow_mrg_step(x2, &x3, y1, &y3);",
                "const ow_i32 x = x3, y = y3;",
                "x3 = x2, x2 = x1, x1 = x;",
                "y3 = y2, y2 = y1, y1 = y;",
                f"z[j] = {_number('number', self.dtype)};",
            ])),
            *(f"{place} = {name};" for name, place in zip(names, places, strict=True)),
        ], threads=_STREAMS)  # fmt: skip
        parameters = [
            ("ow_i32 *__restrict__", "states"), (f"{stored(self.dtype)} *__restrict__", "z"),
            (index, "n"), (index, "row"), (index, "column"), ("ow_u32", "streams"),
            ("ow_u32", "total"),
        ]  # fmt: skip
        needs = cudatext.support("mrg", *(["half"] if self.dtype == "float16" else []))
        return make_kernel("uniform", parameters, body, needs, wide, _STREAMS)

    def plan(self, states: Layout, numbers: Layout, limits: DeviceLimits) -> Plan:
        """Return the Plan of a draw; output 0 holds the states, and output 1 gets the numbers."""
        total, streams = numbers.size, states.shape[0]
        drawing = min(total, streams)
        if not drawing:
            return Plan(())
        steps = layouts.steps_of(states, states.shape)
        walk = layouts.Walk(states.shape, tuple((step,) for step in steps), 1)
        launch = Launch(
            self.kernel[not walk.fits_32()], grid_of(drawing, limits, _STREAMS), (_STREAMS, 1),
            (Array("out", 0), Array("out", 1)), (drawing, *steps, streams, total),
        )  # fmt: skip
        return Plan((launch,))


def _number(integer, dtype):
    """Return the expression of the number, as stored, for an integer of a step."""
    norm = mrg.NORMS[dtype]
    if dtype == "float16":
        bits = f"(({integer} & {mrg.MASK_FLOAT16}) + 1)"
        return cudatext.store(f"ow_round_f16({bits} * {csource.literal(norm, 'float64')})", dtype)
    return f"({stored(dtype)}){integer} * {csource.literal(norm, dtype)}"


# --- outcomes -----------------------------------------------------------------------------------


def _search(probability: str, *chosen: str) -> list[str]:
    """Return the lines that find the outcome of a uniform number u in a row.

    It is the first one, ``at``, with which the sum of the probabilities is above u; -1 if there is
    none. probability: that of outcome m. chosen: lines to run if outcome m is chosen, with its
    probability as p.
    """
    return [
        "double sum = 0;",
        "ow_i32 at = -1;",
        *with_head("for (ow_i32 m = 0; m < columns && at < 0; m++)", in_braces([
            f"const double p = {probability};",
            "sum += p;",
            *with_head("if (sum > u)", in_braces(["at = m;", *chosen])),
        ])),
    ]  # fmt: skip


class _Outcomes(ForBothWidths):
    """Outcomes drawn from rows of probabilities: kernels and plans.

    Uniform number ``c * rows + row`` makes draw c of a row.
    """

    def __init__(self, pvals: str, unis: str, out: str) -> None:
        """pvals, unis: dtypes of the probabilities and of the uniform numbers; out: of results."""
        self.pvals, self.unis, self.out = pvals, unis, out

    def plan(self, pvals: Layout, unis: Layout, n: int, limits: DeviceLimits) -> Plan:
        """Return the Plan of ``n`` draws from each row."""
        raise NotImplementedError

    def _kernel(self, stem, outputs, body, wide):
        """Return a kernel that reads the inputs. outputs: (dtype, name) of what it writes."""
        index = index_type(wide)
        arrays = [(f"const {stored(d)} *__restrict__", name)
                  for d, name in ((self.pvals, "pvals"), (self.unis, "unis"))]  # fmt: skip
        arrays += [(f"{stored(d)} *__restrict__", name) for d, name in outputs]
        names = ("rows", "n", "row_step", "column_step", "unis_step")
        numbers = [("ow_i32", "columns"), *((index, name) for name in names)]
        return make_kernel(stem, [*arrays, *numbers], body, cudatext.support(), wide)

    def _result(self, text):
        """Return an int32 expression as an element of the results."""
        return csource.convert(text, "int32", self.out)

    def _launch(self, pvals, unis, n, outputs, threads, limits):
        """Return the launch of the kernel by so many threads."""
        rows, columns = pvals.shape
        steps = layouts.steps_of(pvals, pvals.shape)
        (unis_step,) = layouts.steps_of(unis, unis.shape)
        walks = (
            layouts.Walk(pvals.shape, tuple((step,) for step in steps), 1),
            layouts.Walk(unis.shape, ((unis_step,),), 1),
        )
        wide = not all(walk.fits_32() for walk in walks)
        arrays = (Array("in", 0), Array("in", 1), *outputs)
        numbers = (columns, rows, n, *steps, unis_step)
        return Launch(self.kernel[wide], grid_of(threads, limits), (THREADS, 1), arrays, numbers)


class Draws(_Outcomes):
    """The outcomes of draws that do not depend on each other, a row for each distribution.

    A thread makes one draw.
    """

    def _text(self, wide):
        index = index_type(wide)
        each = for_each(wide, [
            f"const {index} c = ({count_type(wide)})i / rows;",
            f"const {index} row = i - c * rows;",
            "const double u = unis[i * unis_step];",
            *_search("pvals[row * row_step + m * column_step]"),
            f"z[row * n + c] = {self._result('at')};",
        ], "draws")  # fmt: skip
        body = [f"const {index} draws = rows * n;", *each]
        return self._kernel("draw", [(self.out, "z")], body, wide)

    def launches(
        self, pvals: Layout, unis: Layout, n: int, to: Array, limits: DeviceLimits
    ) -> tuple[Launch, ...]:
        """Return the launches that store the outcomes at ``to``."""
        draws = pvals.shape[0] * n
        return (self._launch(pvals, unis, n, (to,), draws, limits),) if draws else ()

    def plan(self, pvals, unis, n, limits):
        return Plan(self.launches(pvals, unis, n, Array("out"), limits))


class Counts(ForBothWidths):
    """How often each outcome is drawn. A thread counts those draws of a row that chose one."""

    def __init__(self, pvals: str, unis: str, out: str) -> None:
        """As ``_Outcomes``."""
        self.out = out
        self.draws = Draws(pvals, unis, "int32")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (*self.draws.kernels, *self.kernel.values())

    def _text(self, wide):
        """Return the kernel that counts draws, with indices of 64 bits if ``wide``."""
        index = index_type(wide)
        each = for_each(wide, [
            f"const {index} row = ({count_type(wide)})i / columns;",
            "const ow_i32 m = i - row * columns;",
            "ow_i32 count = 0;",
            *with_head(f"for ({index} c = row * n; c < (row + 1) * n; c++)", in_braces([
                "count += drawn[c] == m;",
            ])),
            f"z[i] = {csource.convert('count', 'int32', self.out)};",
        ], "size")  # fmt: skip
        body = [f"const {index} size = rows * columns;", *each]
        parameters = [
            ("const ow_i32 *__restrict__", "drawn"), (f"{stored(self.out)} *__restrict__", "z"),
            (index, "rows"), (index, "columns"), (index, "n"),
        ]  # fmt: skip
        return make_kernel("count", parameters, body, cudatext.support(), wide)

    def plan(self, pvals: Layout, unis: Layout, n: int, limits: DeviceLimits) -> Plan:
        """Return the Plan of ``n`` draws from each row, and of counting them."""
        rows, columns = pvals.shape
        if not rows * columns:
            return Plan(())
        drawn = Array("scratch")
        first = self.draws.launches(pvals, unis, n, drawn, limits)
        wide = max(rows * columns, rows * n) >= layouts.LIMIT_32
        counting = Launch(
            self.kernel[wide], grid_of(rows * columns, limits), (THREADS, 1),
            (drawn, Array("out")), (rows, columns, n),
        )  # fmt: skip
        return Plan((*first, counting), (cudatext.itemsize("int32") * rows * n,))


class DrawsWithoutReplacement(_Outcomes):
    """The outcomes of draws after each of which the probability of its outcome becomes 0.

    A thread makes all draws of a row, and divides the other probabilities by their sum after each.
    """

    def _text(self, wide):
        index, left = index_type(wide), "left[m * rows + row]"
        each_outcome = "for (ow_i32 m = 0; m < columns; m++)"
        body = for_each(wide, [
            f"const {index} row = i;",
            each_outcome,
            f"    {left} = pvals[row * row_step + m * column_step];",
            *with_head(f"for ({index} c = 0; c < n; c++)", in_braces([
                "const double u = unis[(c * rows + row) * unis_step];",
                "double before = 0;",
                *_search(left, "before = sum - p;"),
                f"z[row * n + c] = {self._result('at')};",
                "if (at < 0)",
                "    continue;",
                f"{stored(self.pvals)} total = ({stored(self.pvals)})before;",
                "left[at * rows + row] = 0;",
                "for (ow_i32 m = at; m < columns; m++)",
                f"    total += {left};",
                each_outcome,
                f"    {left} /= total;",
            ])),
        ], "rows")  # fmt: skip
        outputs = [(self.pvals, "left"), (self.out, "z")]
        return self._kernel("draw_without_replacement", outputs, body, wide)

    def plan(self, pvals, unis, n, limits):
        rows = pvals.shape[0]
        if not rows * n:
            return Plan(())
        outputs = (Array("scratch"), Array("out"))
        launch = self._launch(pvals, unis, n, outputs, rows, limits)
        return Plan((launch,), (pvals.size * pvals.itemsize,))
