"""Kernels of elementwise programs: contiguous operands in vectors, others by their strides.

The flat and the row kernel load vectors, and know which operands are broadcast. The strided kernel
takes any operands; so does the tiled one, for operands that lie in memory in another order than the
result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from opwise.gpu.kernels import cudatext, layouts, tiles
from opwise.gpu.kernels.cudatext import ScalarProgram, for_each, index_type, position
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    Kernel,
    Launch,
    Layout,
    batched,
    capped,
    grid_of,
    in_braces,
    make_kernel,
    with_head,
)
from opwise.gpu.kernels.layouts import Walk
from opwise.gpu.kernels.tiles import PITCH, TILE

#: elements of operands and results that a thread of a flat kernel holds in registers
_REGISTERS = 32
#: elements of a tile that a thread computes
_TURNS = TILE * TILE // THREADS


class ElementwiseKernels:
    """The kernels of an elementwise program, and their launches.

    Its operands are the inputs that the program reads, followed by its outputs.
    """

    def __init__(
        self, program: ScalarProgram, ndim: int, patterns: Sequence[tuple[bool, ...]]
    ) -> None:
        """ndim: dimensions of all operands. patterns: by input, where it is broadcast."""
        self.program, self.ndim = program, ndim
        #: the inputs that the program reads
        self.operands = [i for i in range(len(patterns)) if i not in program.unread]
        patterns = [patterns[i] for i in self.operands]
        #: operands that are one element in every call; kernels take no strides of these
        self.broadcast = [k for k, p in enumerate(patterns) if ndim and all(p)]
        #: whether each operand varies along the innermost dimension
        self.inner = [not p[-1] if ndim else True for p in patterns]
        self.inner += [True] * len(program.outs)
        self.dtypes = [program.in_dtypes[i] for i in self.operands] + list(program.out_dtypes)
        self.varying = [k for k in range(len(self.dtypes)) if k not in self.broadcast]
        self.width = self._width()
        #: whether no operand is broadcast along some dimensions only, so that contiguous operands
        #: are one long run
        self.flat = not any(any(p) and not all(p) for p in patterns)
        #: operands that are loaded and not broadcast
        self.read = [k for k in self.varying if k < len(self.operands)]
        text = _ElementwiseText(self)
        fast = text.flat if self.flat else text.rows
        self.fast = {wide: fast(wide) for wide in (False, True)}
        self.strided = {wide: text.strided(wide) for wide in (False, True)}
        self.tiled: dict[bool, Kernel] = {}
        if ndim > 1 and self.read:
            self.tiled = {wide: text.tiled(wide) for wide in (False, True)}

    def _width(self) -> int:
        """Return how many elements are loaded at once: 16 bytes of the widest dtype."""
        widest = max(cudatext.itemsize(self.dtypes[k]) for k in self.varying)
        width = cudatext.VECTOR_BYTES // widest
        while width > 1 and width * len(self.varying) > 2 * _REGISTERS:
            width //= 2
        return min(8, width)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        every = (self.fast, self.strided, self.tiled)
        return tuple(dict.fromkeys(kernel for found in every for kernel in found.values()))

    def launches(
        self, shape: tuple[int, ...], given: Sequence[Layout], arrays: Sequence[Array],
        limits: DeviceLimits,
    ) -> list[Launch]:  # fmt: skip
        """Return the launch over ``shape``, or none if that is empty.

        given: layouts of the inputs and outputs; arrays: which arrays they are.
        """
        n_in = len(given) - len(self.program.outs)
        chosen = [*self.operands, *range(n_in, len(given))]
        if 0 in shape:
            return []
        varying = [given[chosen[k]] for k in self.varying]
        steps = [layouts.steps_of(layout, shape) for layout in varying]
        walk = layouts.walk(shape, steps)
        operands = tuple(arrays[i] for i in chosen)
        wide = not walk.fits_32()
        if self._is_fast(walk, varying):
            return [self._fast_launch(wide, walk, operands, limits)]
        sizes = [layout.itemsize for layout in varying]
        tiling = tiles.tiling(walk, sizes, len(self.read), limits.shared) if self.tiled else None
        if tiling is not None:
            return [self._tiled_launch(wide, tiling, sizes, operands, limits)]
        lengths, padded = walk.padded(self.ndim)
        numbers = (walk.size, *layouts.lengths(lengths, wide), *layouts.by_array(padded))
        blocks = grid_of(walk.size, limits)
        return [Launch(self.strided[wide], blocks, (THREADS, 1), operands, numbers)]

    def _is_fast(self, walk: Walk, varying: list[Layout]) -> bool:
        """Return whether the flat kernel, or that of rows, can run over a Walk."""
        if not _aligned(varying, self.width):
            return False
        if not walk.shape:
            return self.flat
        inner = [int(self.inner[k]) for k in self.varying]
        if list(walk.steps[-1]) != inner:
            return False
        if self.flat:
            return len(walk.shape) == 1
        return walk.shape[-1] % self.width == 0 and all(
            s % self.width == 0
            for column in walk.steps[:-1]
            for s, moves in zip(column, inner, strict=True)
            if moves
        )

    def _fast_launch(self, wide, walk, arrays, limits):
        kernel = self.fast[wide]
        if self.flat:
            blocks = grid_of(walk.size, limits, self.tile)
            return Launch(kernel, blocks, (THREADS, 1), arrays, (walk.size,))
        lengths, steps = walk.padded(self.ndim)
        lengths = (*lengths[:-1], lengths[-1] // self.width)
        outer = layouts.by_array(steps[:-1])
        vectors = walk.size // self.width
        blocks = grid_of(vectors, limits)
        numbers = (vectors, *layouts.lengths(lengths, wide), *outer)
        return Launch(kernel, blocks, (THREADS, 1), arrays, numbers)

    def _tiled_launch(self, wide, tiling, sizes, arrays, limits):
        shape, steps = tiling.walk.padded(self.ndim)
        counts = (1,) * (self.ndim - len(tiling.counts)) + tiling.counts
        places, shared = tiling.places(sizes)
        n = math.prod(counts)
        numbers = (
            n, *layouts.lengths(counts, wide), *shape[-2:], *layouts.by_array(steps), *places
        )  # fmt: skip
        blocks = capped(n, limits)
        return Launch(self.tiled[wide], blocks, (THREADS, 1), arrays, numbers, shared)

    @property
    def early(self) -> bool:
        """Whether a thread of a tiled kernel loads all its elements at once, into registers."""
        words = sum(-(-cudatext.itemsize(self.dtypes[k]) // 4) for k in self.read)
        return _TURNS * words <= _REGISTERS // 2

    @property
    def unroll(self) -> int:
        """How many vectors a thread of a flat kernel loads before it computes."""
        return 2 if 2 * self.width * len(self.varying) <= _REGISTERS else 1

    @property
    def tile(self) -> int:
        """How many elements a block of a flat kernel computes in one turn of its loop."""
        return THREADS * self.width * self.unroll


def _aligned(varying, width):
    return all(
        layout.alignment % min(cudatext.VECTOR_BYTES, layout.itemsize * width) == 0
        for layout in varying
    )


class _ElementwiseText:
    """Writes the kernels of an ElementwiseKernels."""

    def __init__(self, kernels: ElementwiseKernels) -> None:
        self.kernels = kernels
        program = kernels.program
        self.one, self.needs = program.function()
        self.width = kernels.width
        self.names = [f"a{i}" for i in range(len(kernels.operands))]
        self.names += [f"z{k}" for k in range(len(program.outs))]
        self.n_read = len(kernels.operands)
        pairs = [cudatext.vector(kernels.dtypes[k], self.width) for k in kernels.varying]
        self.vectors = dict(zip(kernels.varying, (name for name, _ in pairs), strict=True))
        self.vector_needs = tuple(text for _, text in pairs if text)

    def flat(self, wide):
        kernels, index, width = self.kernels, index_type(wide), self.width

        def loads(place):
            vectors = [(self.vectors[k], self.names[k]) for k in self._read()]
            found = [
                (type_, f"v{k}", f"*(const {type_} *)({name} + {place})")
                for k, (type_, name) in zip(self._read(), vectors, strict=True)
            ]
            return [], found

        def use(suffix, place):
            return in_braces(self._on_vector(dict.fromkeys(kernels.varying, place), suffix))

        alone = with_head(
            f"for ({index} i = n - n % {width} + first; i < n; i += threads)",
            self._on_element(dict.fromkeys(kernels.varying, "i")),
        )
        body = [
            *self._load_broadcast(),
            f"const {index} threads = ({index})gridDim.x * {THREADS};",
            f"const {index} first = ({index})blockIdx.x * {THREADS} + ({index})threadIdx.x;",
            f"const {index} end = n - {width - 1}, step = threads * {width};",
            f"{index} j = first * {width};",
            *batched(kernels.unroll, "end", loads, use),
            *(alone if width > 1 else []),
        ]
        return self._kernel("flat", [(index, "n")], body, wide)

    def rows(self, wide):
        kernels, last = self.kernels, self.kernels.ndim - 1
        lines, numbers = self._position(wide)
        starts, steps = {}, []
        for k in kernels.varying:
            terms = [f"j{d} * s{k}_{d}" for d in range(last)]
            steps += [(index_type(wide), f"s{k}_{d}") for d in range(last)]
            if kernels.inner[k]:
                terms.append(f"j{last} * {self.width}")
            starts[k] = " + ".join(terms) or "0"
        inside = [
            line
            for k in self._read()
            for line in (
                self._load(k, starts[k])
                if kernels.inner[k]
                else [
                    f"const {cudatext.c_type(kernels.dtypes[k])} x{k} = {self._at(k, starts[k])};"
                ]
            )
        ]
        body = [
            *self._load_broadcast(),
            *for_each(wide, [*lines, *inside, *self._on_vector(starts)]),
        ]
        return self._kernel("rows", [*numbers, *steps], body, wide)

    def strided(self, wide):
        kernels = self.kernels
        lines, numbers = self._position(wide)
        places = {
            k: " + ".join(f"j{d} * s{k}_{d}" for d in range(kernels.ndim)) or "i"
            for k in kernels.varying
        }
        steps = [
            (index_type(wide), f"s{k}_{d}") for k in kernels.varying for d in range(kernels.ndim)
        ]
        body = [*self._load_broadcast(), *for_each(wide, [*lines, *self._on_element(places)])]
        return self._kernel("strided", [*numbers, *steps], body, wide, vectors=False)

    def tiled(self, wide):
        """Return the kernel of tiles: see ``tiles.Tiling``.

        An output may overwrite an operand. So a block loads its tiles of turned operands before its
        first store, and a thread loads its elements of other operands before it stores there.
        """
        kernels, index, last = self.kernels, index_type(wide), self.kernels.ndim - 1
        find, numbers = self._position(wide)
        steps = [(index, f"s{k}_{d}") for k in kernels.varying for d in range(kernels.ndim)]
        places = [(index_type(False), f"t{k}") for k in self._read()]
        starts = [
            f"const {index} o{k} = "
            + " + ".join([
                *(f"j{d} * s{k}_{d}" for d in range(last - 1)),
                f"row * s{k}_{last - 1} + column * s{k}_{last};",
            ])
            for k in kernels.varying
        ]  # fmt: skip
        of_tile = [
            *find,
            f"const {index} row = j{last - 1} * {TILE}, column = j{last} * {TILE};",
            f"const {index} height = rows - row, width = columns - column;",
            *starts,
            *(self._load_early(index) if kernels.early else self._load_late()),
            *self._turns(with_head("if (x < width && r < height)", self._on_tile())),
        ]
        body = [
            *self._load_broadcast(),
            "OW_SHARED;",
            f"const int x = threadIdx.x % {TILE}, y = threadIdx.x / {TILE};",
            *with_head(
                f"for ({index} i = ({index})blockIdx.x; i < n; i += ({index})gridDim.x)",
                in_braces(of_tile),
            ),
        ]
        numbers += [(index, "rows"), (index, "columns"), *steps, *places]
        return self._kernel("tiled", numbers, body, wide, vectors=False)

    def _load_early(self, index):
        """Return the lines that load all operands, then write the turned ones to their tiles."""
        down, across = (f"_{self.kernels.ndim - d}" for d in (2, 1))
        steps = [
            f"const {index} {name}{k} = t{k} < 0 ? s{k}{one} : s{k}{other};"
            for k in self._read()
            for name, one, other in (("p", across, down), ("q", down, across))
        ]
        loads = [
            line
            for k in self._read()
            for line in (
                f"v{k}[u] = 0;",
                f"if (t{k} < 0 ? straight : turned)",
                f"    v{k}[u] = {self.names[k]}[o{k} + x * p{k} + r * q{k}];",
            )
        ]
        puts = [
            line
            for k in self._read()
            for line in (f"if (t{k} >= 0)", f"    {self._tile(k, 'x', 'r')} = v{k}[u];")
        ]
        return [
            *steps,
            *(f"{self._type(k)} v{k}[{_TURNS}];" for k in self._read()),
            *self._turns([
                "const bool straight = x < width && r < height;",
                "const bool turned = x < height && r < width;",
                *loads,
            ]),
            "__syncthreads();",
            *self._turns(puts),
            "__syncthreads();",
        ]  # fmt: skip

    def _load_late(self):
        """Return the lines that load turned operands and write them to their tiles, one by one."""
        puts = [
            line
            for k in self._read()
            for line in (
                f"if (t{k} >= 0)",
                f"    {self._tile(k, 'x', 'r')} = {self._element(k, 'x', 'r')};",
            )
        ]
        return [
            "__syncthreads();",
            *self._turns(with_head("if (x < height && r < width)", in_braces(puts))),
            "__syncthreads();",
        ]

    def _on_tile(self):
        """Return the block that computes and stores the element x of line r of a tile."""
        kept = (lambda k: f"v{k}[u]") if self.kernels.early else self._element
        loads = [
            line
            for k in self._read()
            for line in (
                f"const {self._type(k)} e{k} =",
                f"    t{k} < 0 ? {kept(k)} : {self._tile(k, 'r', 'x')};",
            )
        ]
        to = [self._element(k) for k in range(self.n_read, len(self.kernels.dtypes))]
        return self._call(self._arguments(lambda k: f"e{k}"), to, loads)

    def _turns(self, lines):
        """Return the loop of a thread over the lines r of a tile that it computes."""
        return [
            "OW_UNROLL" if self.kernels.early else '_Pragma("unroll 1")',
            *with_head(
                f"for (int u = 0; u < {_TURNS}; u++)",
                in_braces([f"const int r = y + u * {THREADS // TILE};", *lines]),
            ),
        ]

    def _element(self, k, line="r", at="x"):
        """Return the expression of an element of an array, at a line and column of a tile."""
        last = self.kernels.ndim - 1
        return f"{self.names[k]}[o{k} + {line} * s{k}_{last - 1} + {at} * s{k}_{last}]"

    def _type(self, k):
        return cudatext.stored(self.kernels.dtypes[k])

    def _tile(self, k, line, at):
        """Return the expression of an element of operand ``k``'s tile in shared memory."""
        return f"(({self._type(k)} *)(ow_shared + t{k}))[{line} * {PITCH} + {at}]"

    def _kernel(self, stem, numbers, body, wide, vectors=True):
        kernels = self.kernels
        arrays = [
            (f"{'const ' if k < self.n_read else ''}{cudatext.stored(dtype)} *", self.names[k])
            for k, dtype in enumerate(kernels.dtypes)
        ]
        needs = (*self.needs[:-1], *(self.vector_needs if vectors else ()), self.needs[-1])
        return make_kernel(stem, [*arrays, *numbers], body, needs, wide=wide)

    def _read(self):
        return self.kernels.read

    def _load_broadcast(self):
        """Return the lines that load broadcast operands."""
        return [
            f"const {cudatext.c_type(self.kernels.dtypes[k])} x{k} = {self._at(k, '0')};"
            for k in self.kernels.broadcast
        ]

    def _at(self, k, place):
        return cudatext.load(f"{self.names[k]}[{place}]", self.kernels.dtypes[k])

    def _position(self, wide):
        """Return (lines that compute indices j0, j1, ... of element i, parameters they use)."""
        ndim = self.kernels.ndim
        numbers = [(index_type(wide), "n"), *cudatext.lengths("n", ndim, wide)]
        return position("i", "j", ndim, "n", wide), numbers

    def _load(self, k, start):
        vector = self.vectors[k]
        return [f"const {vector} v{k} = *(const {vector} *)({self.names[k]} + {start});"]

    def _on_vector(self, starts, suffix=""):
        """Return the lines that compute a vector of results and store it.

        starts: by operand, the offset of its vector; suffix: follows the names v of the vectors.
        """
        kernels, at = self.kernels, ".at[k]" if self.width > 1 else ""
        args = self._arguments(lambda k: f"v{k}{suffix}{at}" if kernels.inner[k] else None)
        outs = range(self.n_read, len(kernels.dtypes))
        call = self._call(args, [f"w{k}{at}" for k in outs])
        if self.width > 1:
            call = ["OW_UNROLL", *with_head(f"for (int k = 0; k < {self.width}; k++)", call)]
        return [
            *(f"{self.vectors[k]} w{k};" for k in outs),
            *call,
            *(f"*({self.vectors[k]} *)({self.names[k]} + {starts[k]}) = w{k};" for k in outs),
        ]

    def _on_element(self, places):
        """Return the lines that compute one element; places: its offset by operand."""
        kernels = self.kernels
        to = [f"{self.names[k]}[{places[k]}]" for k in range(self.n_read, len(kernels.dtypes))]
        loads = [
            f"const {cudatext.stored(kernels.dtypes[k])} v{k} = {self.names[k]}[{places[k]}];"
            for k in self._read()
        ]
        return self._call(self._arguments(lambda k: f"v{k}"), to, loads)

    def _arguments(self, element):
        """Return the program's arguments.

        element: from a varying operand to its element; None if the variable x holds it already.
        """
        kernels, args = self.kernels, []
        for i, _ in enumerate(kernels.program.in_dtypes):
            if i in kernels.program.unread:
                args.append("0")
                continue
            k = kernels.operands.index(i)
            text = None if k in kernels.broadcast else element(k)
            args.append(f"x{k}" if text is None else cudatext.load(text, kernels.dtypes[k]))
        return args

    def _call(self, args, to, loads=()):
        dtypes = self.kernels.program.out_dtypes
        call = f"{self.one}({', '.join([*args, *(f'&r{k}' for k in range(len(to)))])});"
        return in_braces([
            *loads,
            *(f"{cudatext.c_type(d)} r{k};" for k, d in enumerate(dtypes)),
            call,
            *(
                f"{place} = {cudatext.store(f'r{k}', d)};"
                for k, (place, d) in enumerate(zip(to, dtypes, strict=True))
            ),
        ])  # fmt: skip
