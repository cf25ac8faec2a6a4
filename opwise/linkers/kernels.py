"""Loops for elementwise Applys: generated C, or the built-in loops run chunk by chunk.

One C file is made for all loops of a function. Without a compiler, or where a mode forbids it, the
interpreter of the virtual machine runs the same scalar program over loops built with opwise.
"""

from __future__ import annotations

import warnings

from opwise.errors import CompileError
from opwise.linkers import cbuild, opwise_c
from opwise.linkers.cmakers import C_DTYPES
from opwise.scalar import csource
from opwise.scalar.composite import Composite, Step
from opwise.scalar.op import Cast

#: part of the cache key of generated code: change it when the text's meaning changes
VERSION = 3
#: inputs that may broadcast along the innermost dimension and still get a loop of their own
MAX_MAYBE = 2
#: characters of loops for which another compiler is started: fewer take less time than its start
SHARE = 1500


class Loop:
    """A loop to be: ``address`` and ``context`` are known once ``Kernels.finish`` was called.

    The address stays 0 where no loop could be had: the Apply then runs ``perform``.
    """

    __slots__ = ("address", "context", "keep", "name", "source", "still")

    def __init__(self, name=None, source=None):
        self.name = name
        self.source = source
        self.address = self.context = 0
        self.keep = None
        #: mask of the inputs that may stand still; -1 where the loop takes any strides
        self.still = -1


def as_program(op, in_dtypes, out_dtypes):
    """Return a scalar op as (steps, output slots), a Composite's program."""
    if isinstance(op, Composite):
        return op.steps, op.outs
    n = len(in_dtypes)
    return (Step(op, tuple(range(n)), out_dtypes[0]),), (n,)


class Kernels:
    """Gives loops to the makers of one function; ``finish`` compiles what they asked for."""

    def __init__(self, generate=True):
        self.generate = generate and cbuild.compiler() is not None
        self._loops: dict[tuple, Loop] = {}
        self._builds = None
        #: filled by ``finish``: what the cache and the compiler did
        self.report: cbuild.Report | None = None

    def elemwise(self, op, in_dtypes, out_dtypes, constant_inputs, maybe_broadcast):
        """Return a Loop for a scalar op, or None if a part of it has no C.

        constant_inputs: those that are one number in every call; maybe_broadcast: those that may
        stand still along the innermost dimension.
        """
        if not C_DTYPES.issuperset(in_dtypes) or not C_DTYPES.issuperset(out_dtypes):
            return None
        key = (op, tuple(in_dtypes), tuple(constant_inputs), tuple(maybe_broadcast))
        loop = self._loops.get(key)
        if loop is None:
            steps, outs = as_program(op, in_dtypes, out_dtypes)
            loop = self._generated(steps, outs, in_dtypes, constant_inputs, maybe_broadcast)
            if loop is None:
                return None
            loop.source = (loop.source, steps, outs, tuple(in_dtypes))
            self._loops[key] = loop
        return loop

    def _generated(self, steps, outs, in_dtypes, constant_inputs, maybe_broadcast):
        if not self.generate:
            return Loop() if interpretable(steps, in_dtypes) else None
        name = f"ow_k{len(self._loops)}"
        text = loop_text(name, steps, outs, in_dtypes, constant_inputs, maybe_broadcast)
        if text is None:
            return None
        loop = Loop(name, text)
        loop.still = sum(1 << i for i in (*constant_inputs, *maybe_broadcast[:MAX_MAYBE]))
        return loop

    def start(self):
        """Begin to compile, where the cache does not have them, all loops that were asked for."""
        shares = _shares(list(self._loops.values())) if self.generate else []
        self._builds = [
            (loops, cbuild.Build(file_text([loop.source for loop in loops]))) for loops in shares
        ]

    def finish(self):
        """Wait for the loops; those that cannot be had are left to the interpreter."""
        if self._builds is None:
            self.start()
        failure = None
        for loops, build in self._builds:
            try:
                library, report = build.result()
            except CompileError as e:
                failure = e
                continue
            self.report = report if self.report is None else self.report + report
            for loop in loops:
                loop.address = library.symbol(loop.name)
                loop.keep = library
        if failure is not None:
            warnings.warn(
                f"opwise goes on with its built-in loops, which are slower: {failure}", stacklevel=2
            )
        for loop in self._loops.values():
            _, steps, outs, in_dtypes = loop.source
            if not loop.address and interpretable(steps, in_dtypes):
                loop.keep = interpreter_code(steps, outs, in_dtypes)
                loop.address, loop.context = opwise_c.INTERPRET, loop.keep.address


def _shares(loops):
    """Return the loops in as many groups as it pays to run compilers for, of about equal work."""
    sizes = {loop: len(loop.source[0]) for loop in loops}
    count = max(1, min(cbuild.processors(), len(loops), sum(sizes.values()) // SHARE))
    groups = [[] for _ in range(count)]
    work = [0] * count
    for loop in sorted(loops, key=sizes.get, reverse=True):
        least = work.index(min(work))
        groups[least].append(loop)
        work[least] += sizes[loop]
    return [group for group in groups if group]


# --- generated C --------------------------------------------------------------------------------


def loop_text(name, steps, outs, in_dtypes, constant_inputs, maybe_broadcast):
    """Return the C text of one loop, or None if a scalar op of it has no C.

    Operands are contiguous or stand still; the machine copies others chunk by chunk.
    """
    body = _body(steps, outs, in_dtypes)
    if body is None:
        return None
    n_in, n_out = len(in_dtypes), len(outs)
    types = [csource.c_type(_slot_dtype(s, steps, in_dtypes)) for s in outs]
    types += [csource.c_type(d) for d in in_dtypes]
    lines = [
        f"static inline __attribute__((always_inline)) void {name}_one(",
        "    "
        + ", ".join(
            [f"{types[n_out + i]} x{i}" for i in range(n_in)]
            + [f"{types[k]} *z{k}" for k in range(n_out)]
        )
        + ")",
        "{",
        *body,
        "}",
        f"void {name}(const void *ctx, char **p, const ow_i64 *st, ow_i64 n)",
        "{",
    ]
    fixed = set(constant_inputs)
    maybe = maybe_broadcast[:MAX_MAYBE]
    for mask in range(1 << len(maybe)):
        still = fixed | {i for b, i in enumerate(maybe) if mask >> b & 1}
        lines += _variant(name, types, n_in, n_out, still, tested=maybe)
    lines.append("}")
    return "\n".join(lines)


def _variant(name, types, n_in, n_out, still, tested):
    """Return the lines of a loop in which inputs ``still`` do not move; others are contiguous.

    tested: the inputs of which the strides decide whether this loop is the one.
    """
    tests = [f"st[{n_out + i}] {'==' if i in still else '!='} 0" for i in tested]
    lines = [f"    if ({' && '.join(tests)}) {{" if tests else "    {"]
    args = []
    for i in range(n_in):
        k = n_out + i
        if i in still:
            lines.append(f"        const {types[k]} x{i} = *({types[k]} *)p[{k}];")
            args.append(f"x{i}")
        else:
            lines.append(f"        const {types[k]} *a{k} = (const {types[k]} *)p[{k}];")
            args.append(f"a{k}[i]")
    for k in range(n_out):
        lines.append(f"        {types[k]} *a{k} = ({types[k]} *)p[{k}];")
        args.append(f"a{k} + i")
    # an output may take an input's memory, but then element by element
    lines.append('        _Pragma("GCC ivdep")')
    lines.append("        for (ow_i64 i = 0; i < n; i++)")
    lines.append(f"            {name}_one({', '.join(args)});")
    lines.append("    }")
    return lines


def _slot_dtype(slot, steps, in_dtypes):
    return in_dtypes[slot] if slot < len(in_dtypes) else steps[slot - len(in_dtypes)].dtype


def _body(steps, outs, in_dtypes):
    n = len(in_dtypes)
    names = [f"x{i}" for i in range(n)]
    slot_dtypes = list(in_dtypes)
    lines = []
    for k, step in enumerate(steps):
        text = csource.step_c(
            step.op, [names[a] for a in step.args], [slot_dtypes[a] for a in step.args], step.dtype
        )
        if text is None:
            return None
        lines.append(f"    const {csource.c_type(step.dtype)} t{k} = {text};")
        names.append(f"t{k}")
        slot_dtypes.append(step.dtype)
    lines += [f"    *z{k} = {names[s]};" for k, s in enumerate(outs)]
    return lines


def file_text(sources):
    """Return a C file with all loops and just the declarations that they need."""
    needed = (set(), set(), set())
    for _, steps, _, in_dtypes in sources:
        slots = list(in_dtypes)
        for step in steps:
            parts = csource.requirements(step.op, [slots[a] for a in step.args], step.dtype)
            for all_of, part in zip(needed, parts, strict=True):
                all_of.update(part)
            slots.append(step.dtype)
    support, libm, dtypes = map(sorted, needed)
    return "\n".join(
        [
            f"/* made by opwise, version {VERSION} of the generator */",
            "#define OW_INLINE static inline __attribute__((always_inline))",
            csource.prototypes(libm, dtypes),
            csource.support(support, dtypes),
            *(text for text, *_ in sources),
            "",
        ]
    )


# --- the interpreter ----------------------------------------------------------------------------


def interpretable(steps, in_dtypes):
    """Return whether every step has a built-in loop."""
    return _instructions(steps, in_dtypes) is not None


def interpreter_code(steps, outs, in_dtypes):
    """Return the program as instructions of the interpreter."""
    itemsizes, results, instructions = _instructions(steps, in_dtypes)
    n = len(in_dtypes)
    return opwise_c.Code(n, itemsizes, [results[s] for s in outs], instructions)


def _instructions(steps, in_dtypes):
    """Return (item size of each register, register of each slot, instructions), or None."""
    dtypes = list(in_dtypes)
    registers = list(range(len(in_dtypes)))  # by slot
    slot_dtypes = list(in_dtypes)
    instructions = []

    def emit(loop, args, dtype):
        address = opwise_c.LOOPS.get(loop)
        if address is None:
            return None
        dtypes.append(dtype)
        instructions.append((address, len(dtypes) - 1, tuple(args)))
        return len(dtypes) - 1

    def converted(register, dtype, wanted):
        if dtype == wanted:
            return register
        return emit(f"cast_{csource.short(dtype)}_{csource.short(wanted)}", [register], wanted)

    for step in steps:
        args = [registers[a] for a in step.args]
        arg_dtypes = [slot_dtypes[a] for a in step.args]
        if any(d not in C_DTYPES for d in (*arg_dtypes, step.dtype)):
            return None
        if isinstance(step.op, Cast):
            register = converted(args[0], arg_dtypes[0], step.dtype)
        else:
            register = _emit_row(step, args, arg_dtypes, emit, converted)
        if register is None or len(dtypes) > opwise_c.MAXREG:
            return None
        registers.append(register)
        slot_dtypes.append(step.dtype)
    sizes = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
             "float32": 4, "int64": 8, "uint64": 8, "float64": 8}  # fmt: skip
    return [sizes[d] for d in dtypes], registers, instructions


def _emit_row(step, args, arg_dtypes, emit, converted):
    row = step.op.row
    if row is None:
        return None
    computing = row.compute_dtype(arg_dtypes, step.dtype)
    first_kept = "condition" in row.extra
    if "ignores_first" in row.extra:
        args, arg_dtypes = args[1:], arg_dtypes[1:]
    ready = []
    for i, (register, dtype) in enumerate(zip(args, arg_dtypes, strict=True)):
        wanted = "bool" if first_kept and i == 0 else computing
        ready.append(converted(register, dtype, wanted))
        if ready[-1] is None:
            return None
    loop = f"{row.name}_{csource.short(computing)}"
    if row.nin >= 0:
        result = emit(loop, ready, row_result(row, computing))
    else:
        result = ready[0]
        for register in ready[1:]:
            result = None if result is None else emit(loop, [result, register], computing)
        if len(ready) == 1:
            result = emit(f"identity_{csource.short(computing)}", ready, computing)
    return None if result is None else converted(result, row_result(row, computing), step.dtype)


def row_result(row, computing):
    """Return the dtype that the built-in loop of a row gives for a computing dtype."""
    return "bool" if row.out(*([computing] * max(1, row.nin))) == "bool" else computing
