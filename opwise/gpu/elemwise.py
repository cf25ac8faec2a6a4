"""Kernels of elementwise programs: contiguous operands in vectors, others by their strides.

A kernel that is made of vectors knows which operands stand still; the strided one takes any, and so
does the one of tiles, for operands whose neighbours are not those of the result.
"""

from __future__ import annotations

import math

from opwise.gpu import cudatext, layouts, tiles
from opwise.gpu.cudatext import for_each, index_type, position
from opwise.gpu.kernel import (
    THREADS,
    Kernel,
    Launch,
    at_most,
    batched,
    grid_of,
    in_braces,
    make_kernel,
)
from opwise.gpu.kernel import loop as loop_over
from opwise.gpu.tiles import PITCH, TILE

#: elements of operands and results that a thread of a flat kernel has in registers
_REGISTERS = 32
#: elements of a tile that a thread computes
_TURNS = TILE * TILE // THREADS


class Loop:
    """An elementwise program on operands of ``ndim`` dimensions; its kernels and its launches.

    patterns: by input, along which dimensions it is broadcast. Operands are the inputs that the
    program reads, then its outputs; ``operands`` holds the indices of the former.
    """

    def __init__(self, program, ndim, patterns):
        self.program, self.ndim = program, ndim
        self.operands = [i for i in range(len(patterns)) if i not in program.unread]
        patterns = [patterns[i] for i in self.operands]
        #: operands that are one element in every call; they come without strides
        self.still = [k for k, p in enumerate(patterns) if ndim and all(p)]
        #: whether operands move along the innermost dimension
        self.inner = [not p[-1] if ndim else True for p in patterns]
        self.inner += [True] * len(program.outs)
        self.dtypes = [program.in_dtypes[i] for i in self.operands] + list(program.out_dtypes)
        self.moving = [k for k in range(len(self.dtypes)) if k not in self.still]
        self.width = self._width()
        #: no operand is broadcast along some dimensions only: contiguous ones are one long run
        self.flat = not any(any(p) and not all(p) for p in patterns)
        #: those that are loaded, and move
        self.read = [k for k in self.moving if k < len(self.operands)]
        text = _Text(self)
        fast = text.flat if self.flat else text.rows
        self.fast = {wide: fast(wide) for wide in (False, True)}
        self.strided = {wide: text.strided(wide) for wide in (False, True)}
        self.tiled = {}
        if ndim > 1 and self.read:
            self.tiled = {wide: text.tiled(wide) for wide in (False, True)}

    def _width(self):
        """Return how many elements are loaded at once: those of the widest in 16 bytes."""
        widest = max(cudatext.itemsize(self.dtypes[k]) for k in self.moving)
        width = cudatext.VECTOR_BYTES // widest
        while width > 1 and width * len(self.moving) > 2 * _REGISTERS:
            width //= 2
        return min(8, width)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        every = (self.fast, self.strided, self.tiled)
        return tuple(dict.fromkeys(kernel for found in every for kernel in found.values()))

    def launches(self, shape, given, arrays, device):
        """Return the launches, none or one, over ``shape``.

        given: layouts of the inputs and outputs; arrays: what a Launch calls them.
        """
        n_in = len(given) - len(self.program.outs)
        chosen = [*self.operands, *range(n_in, len(given))]
        if 0 in shape:
            return []
        moving = [given[chosen[k]] for k in self.moving]
        steps = [layouts.steps_of(layout, shape) for layout in moving]
        walk = layouts.walk(shape, steps)
        arrays = tuple(arrays[i] for i in chosen)
        wide = not walk.fits_32()
        if self._is_fast(walk, moving):
            return [self._fast_launch(wide, walk, arrays, device)]
        sizes = [layout.itemsize for layout in moving]
        tiling = tiles.tiling(walk, sizes, len(self.read), device.shared) if self.tiled else None
        if tiling is not None:
            return [self._tiled_launch(wide, tiling, sizes, arrays, device)]
        lengths, steps = walk.padded(self.ndim)
        numbers = (walk.size, *layouts.lengths(lengths, wide), *layouts.by_array(steps))
        blocks = grid_of(walk.size, device)
        return [Launch(self.strided[wide], blocks, (THREADS, 1), arrays, numbers)]

    def _is_fast(self, walk, moving):
        if not _aligned(moving, self.width):
            return False
        if not walk.shape:
            return self.flat
        inner = [int(self.inner[k]) for k in self.moving]
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

    def _fast_launch(self, wide, walk, arrays, device):
        kernel = self.fast[wide]
        if self.flat:
            blocks = grid_of(walk.size, device, self.tile)
            return Launch(kernel, blocks, (THREADS, 1), arrays, (walk.size,))
        lengths, steps = walk.padded(self.ndim)
        lengths = (*lengths[:-1], lengths[-1] // self.width)
        outer = layouts.by_array(steps[:-1])
        vectors = walk.size // self.width
        blocks = grid_of(vectors, device)
        numbers = (vectors, *layouts.lengths(lengths, wide), *outer)
        return Launch(kernel, blocks, (THREADS, 1), arrays, numbers)

    def _tiled_launch(self, wide, tiling, sizes, arrays, device):
        shape, steps = tiling.walk.padded(self.ndim)
        counts = (1,) * (self.ndim - len(tiling.counts)) + tiling.counts
        places, shared = tiling.places(sizes)
        n = math.prod(counts)
        numbers = (
            n, *layouts.lengths(counts, wide), *shape[-2:], *layouts.by_array(steps), *places
        )  # fmt: skip
        blocks = at_most(n, device)
        return Launch(self.tiled[wide], blocks, (THREADS, 1), arrays, numbers, shared)

    @property
    def early(self):
        """Whether a thread of a tiled kernel has all that it needs in registers, loaded at once."""
        words = sum(-(-cudatext.itemsize(self.dtypes[k]) // 4) for k in self.read)
        return _TURNS * words <= _REGISTERS // 2

    @property
    def unroll(self):
        """How many vectors a thread of a flat kernel loads before it computes."""
        return 2 if 2 * self.width * len(self.moving) <= _REGISTERS else 1

    @property
    def tile(self):
        """How many elements a block of a flat kernel computes in a turn."""
        return THREADS * self.width * self.unroll


def _aligned(moving, width):
    return all(
        layout.alignment % min(cudatext.VECTOR_BYTES, layout.itemsize * width) == 0
        for layout in moving
    )


class _Text:
    """Writes the kernels of a Loop."""

    def __init__(self, loop):
        self.loop = loop
        program = loop.program
        self.one, self.needs = program.function()
        self.width = loop.width
        self.names = [f"a{i}" for i in range(len(loop.operands))]
        self.names += [f"z{k}" for k in range(len(program.outs))]
        self.n_read = len(loop.operands)
        pairs = [cudatext.vector(loop.dtypes[k], self.width) for k in loop.moving]
        self.vectors = dict(zip(loop.moving, (name for name, _ in pairs), strict=True))
        self.vector_needs = tuple(text for _, text in pairs if text)

    def flat(self, wide):
        loop, index, width = self.loop, index_type(wide), self.width

        def loads(place):
            vectors = [(self.vectors[k], self.names[k]) for k in self._read()]
            found = [
                (type_, f"v{k}", f"*(const {type_} *)({name} + {place})")
                for k, (type_, name) in zip(self._read(), vectors, strict=True)
            ]
            return [], found

        def use(suffix, place):
            return in_braces(self._on_vector(dict.fromkeys(loop.moving, place), suffix))

        alone = loop_over(
            f"for ({index} i = n - n % {width} + first; i < n; i += threads)",
            self._on_element(dict.fromkeys(loop.moving, "i")),
        )
        body = [
            *self._still(),
            f"const {index} threads = ({index})gridDim.x * {THREADS};",
            f"const {index} first = ({index})blockIdx.x * {THREADS} + ({index})threadIdx.x;",
            f"const {index} end = n - {width - 1}, step = threads * {width};",
            f"{index} j = first * {width};",
            *batched(loop.unroll, "end", loads, use),
            *(alone if width > 1 else []),
        ]
        return self._kernel("flat", [(index, "n")], body, wide)

    def rows(self, wide):
        loop, last = self.loop, self.loop.ndim - 1
        lines, numbers = self._position(wide)
        starts, steps = {}, []
        for k in loop.moving:
            terms = [f"j{d} * s{k}_{d}" for d in range(last)]
            steps += [(index_type(wide), f"s{k}_{d}") for d in range(last)]
            if loop.inner[k]:
                terms.append(f"j{last} * {self.width}")
            starts[k] = " + ".join(terms) or "0"
        inside = [
            line
            for k in self._read()
            for line in (
                self._load(k, starts[k])
                if loop.inner[k]
                else [f"const {cudatext.c_type(loop.dtypes[k])} x{k} = {self._at(k, starts[k])};"]
            )
        ]
        body = [
            *self._still(),
            *for_each(wide, [*lines, *inside, *self._on_vector(starts)]),
        ]
        return self._kernel("rows", [*numbers, *steps], body, wide)

    def strided(self, wide):
        loop = self.loop
        lines, numbers = self._position(wide)
        places = {
            k: " + ".join(f"j{d} * s{k}_{d}" for d in range(loop.ndim)) or "i" for k in loop.moving
        }
        steps = [(index_type(wide), f"s{k}_{d}") for k in loop.moving for d in range(loop.ndim)]
        body = [*self._still(), *for_each(wide, [*lines, *self._on_element(places)])]
        return self._kernel("strided", [*numbers, *steps], body, wide, vectors=False)

    def tiled(self, wide):
        """Return the kernel of tiles: see ``tiles.Tiling``.

        A block loads what it needs of an operand that is turned before its first store, and a
        thread that of others before it stores there: an output may be an operand's memory.
        """
        loop, index, last = self.loop, index_type(wide), self.loop.ndim - 1
        find, numbers = self._position(wide)
        steps = [(index, f"s{k}_{d}") for k in loop.moving for d in range(loop.ndim)]
        places = [(index_type(False), f"t{k}") for k in self._read()]
        starts = [
            f"const {index} o{k} = "
            + " + ".join([
                *(f"j{d} * s{k}_{d}" for d in range(last - 1)),
                f"row * s{k}_{last - 1} + column * s{k}_{last};",
            ])
            for k in loop.moving
        ]  # fmt: skip
        of_tile = [
            *find,
            f"const {index} row = j{last - 1} * {TILE}, column = j{last} * {TILE};",
            f"const {index} height = rows - row, width = columns - column;",
            *starts,
            *(self._load_early(index) if loop.early else self._load_late()),
            *self._turns(loop_over("if (x < width && r < height)", self._on_tile())),
        ]
        body = [
            *self._still(),
            "OW_SHARED;",
            f"const int x = threadIdx.x % {TILE}, y = threadIdx.x / {TILE};",
            *loop_over(
                f"for ({index} i = ({index})blockIdx.x; i < n; i += ({index})gridDim.x)",
                in_braces(of_tile),
            ),
        ]
        numbers += [(index, "rows"), (index, "columns"), *steps, *places]
        return self._kernel("tiled", numbers, body, wide, vectors=False)

    def _load_early(self, index):
        """Return the lines that load all operands, then put the turned ones into their tiles."""
        down, across = (f"_{self.loop.ndim - d}" for d in (2, 1))
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
        """Return the lines that put turned operands into their tiles, one after the other."""
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
            *self._turns(loop_over("if (x < height && r < width)", in_braces(puts))),
            "__syncthreads();",
        ]

    def _on_tile(self):
        """Return the block that computes and stores the element x of line r of a tile."""
        kept = (lambda k: f"v{k}[u]") if self.loop.early else self._element
        loads = [
            line
            for k in self._read()
            for line in (
                f"const {self._type(k)} e{k} =",
                f"    t{k} < 0 ? {kept(k)} : {self._tile(k, 'r', 'x')};",
            )
        ]
        to = [self._element(k) for k in range(self.n_read, len(self.loop.dtypes))]
        return self._call(self._arguments(lambda k: f"e{k}"), to, loads)

    def _turns(self, lines):
        """Return the lines that a thread does for each line r of a tile that is its own."""
        return [
            "OW_UNROLL" if self.loop.early else '_Pragma("unroll 1")',
            *loop_over(
                f"for (int u = 0; u < {_TURNS}; u++)",
                in_braces([f"const int r = y + u * {THREADS // TILE};", *lines]),
            ),
        ]

    def _element(self, k, line="r", at="x"):
        """Return the element of an array at some place of a tile."""
        last = self.loop.ndim - 1
        return f"{self.names[k]}[o{k} + {line} * s{k}_{last - 1} + {at} * s{k}_{last}]"

    def _type(self, k):
        return cudatext.stored(self.loop.dtypes[k])

    def _tile(self, k, line, at):
        """Return what is kept of it in shared memory."""
        return f"(({self._type(k)} *)(ow_shared + t{k}))[{line} * {PITCH} + {at}]"

    def _kernel(self, stem, numbers, body, wide, vectors=True):
        loop = self.loop
        arrays = [
            (f"{'const ' if k < self.n_read else ''}{cudatext.stored(dtype)} *", self.names[k])
            for k, dtype in enumerate(loop.dtypes)
        ]
        needs = (*self.needs[:-1], *(self.vector_needs if vectors else ()), self.needs[-1])
        return make_kernel(stem, [*arrays, *numbers], body, needs, wide=wide)

    def _read(self):
        return self.loop.read

    def _still(self):
        """Return the lines that load what stands still."""
        return [
            f"const {cudatext.c_type(self.loop.dtypes[k])} x{k} = {self._at(k, '0')};"
            for k in self.loop.still
        ]

    def _at(self, k, place):
        return cudatext.load(f"{self.names[k]}[{place}]", self.loop.dtypes[k])

    def _position(self, wide):
        """Return (lines that make the position j0, j1, ... of i, parameters that they use)."""
        ndim = self.loop.ndim
        numbers = [(index_type(wide), "n"), *cudatext.lengths("n", ndim, wide)]
        return position("i", "j", ndim, "n", wide), numbers

    def _load(self, k, start):
        vector = self.vectors[k]
        return [f"const {vector} v{k} = *(const {vector} *)({self.names[k]} + {start});"]

    def _on_vector(self, starts, suffix=""):
        """Return the lines that compute a vector and store it.

        starts: its place by operand; suffix: what follows the names v of the operands' vectors.
        """
        loop, at = self.loop, ".at[k]" if self.width > 1 else ""
        args = self._arguments(lambda k: f"v{k}{suffix}{at}" if loop.inner[k] else None)
        outs = range(self.n_read, len(loop.dtypes))
        call = self._call(args, [f"w{k}{at}" for k in outs])
        if self.width > 1:
            call = ["OW_UNROLL", *loop_over(f"for (int k = 0; k < {self.width}; k++)", call)]
        return [
            *(f"{self.vectors[k]} w{k};" for k in outs),
            *call,
            *(f"*({self.vectors[k]} *)({self.names[k]} + {starts[k]}) = w{k};" for k in outs),
        ]

    def _on_element(self, places):
        """Return the lines that compute one element; places: its place by operand."""
        loop = self.loop
        to = [f"{self.names[k]}[{places[k]}]" for k in range(self.n_read, len(loop.dtypes))]
        loads = [
            f"const {cudatext.stored(loop.dtypes[k])} v{k} = {self.names[k]}[{places[k]}];"
            for k in self._read()
        ]
        return self._call(self._arguments(lambda k: f"v{k}"), to, loads)

    def _arguments(self, element):
        """Return the program's arguments; element: function from a moving operand to an element,
        None where it is in x already."""
        loop, args = self.loop, []
        for i, _ in enumerate(loop.program.in_dtypes):
            if i in loop.program.unread:
                args.append("0")
                continue
            k = loop.operands.index(i)
            text = None if k in loop.still else element(k)
            args.append(f"x{k}" if text is None else cudatext.load(text, loop.dtypes[k]))
        return args

    def _call(self, args, to, loads=()):
        dtypes = self.loop.program.out_dtypes
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
