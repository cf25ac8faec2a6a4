"""Loops for elementwise Applys, and for reductions of them: generated C, or the built-in loops.

One C file is made for all loops of a function. Without a compiler, or where a mode forbids it, the
interpreter of the virtual machine runs the same scalar program, chunk by chunk, over loops built
with opwise.
"""

from __future__ import annotations

from opwise.errors import CompileError
from opwise.graph import provenance
from opwise.linkers import cbuild, opwise_c, resources
from opwise.linkers.cmakers import C_DTYPES
from opwise.scalar import csource, loops
from opwise.scalar.composite import Composite, Step
from opwise.scalar.op import Cast

#: part of the cache key of generated code: change it when the text's meaning changes
VERSION = 6
#: characters of loops for which another compiler is started: fewer take less time than its start
SHARE = 1500


class Loop:
    """A loop to be: ``address`` and ``context`` are known once ``Kernels.finish`` was called.

    The address stays 0 where no loop could be had: the Apply then runs ``perform``.
    """

    __slots__ = ("address", "context", "definitions", "keep", "name", "program", "reducer", "still")

    def __init__(self, program, reducer=-1):
        #: (steps, output slots, input dtypes)
        self.program = program
        #: index of the built-in reduction that the interpreter ends with, or -1
        self.reducer = reducer
        self.name = self.definitions = None
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
        if generate:
            cbuild.warn_of_compiler()
        self._loops: dict[tuple, Loop] = {}
        self._builds = None
        #: filled by ``finish``: what the cache and the compiler did
        self.report: cbuild.Report | None = None

    def elemwise(self, op, in_dtypes, out_dtypes, constant_inputs, maybe_broadcast):
        """Return a Loop for a scalar op, or None if a part of it has no C.

        constant_inputs: those that are one number in every call; maybe_broadcast: those that may
        stand still along the innermost dimension.
        """
        return self._loop(
            loops.elemwise_text, (), op, in_dtypes, out_dtypes, constant_inputs, maybe_broadcast
        )

    def reduction(self, row, acc, whole, reducer, op, in_dtypes, out_dtype, constant_inputs, maybe):
        """Return a Loop that folds what a scalar op computes by the operation ``row``, or None.

        acc: dtype of the accumulator; whole: the result is one number; reducer: index of the
        built-in reduction of plain elements.
        """
        return self._loop(
            loops.reduction_text, (row.name, acc, whole), op, in_dtypes, [out_dtype],
            constant_inputs, maybe, reducer,
        )  # fmt: skip

    def _loop(self, make, first, op, in_dtypes, out_dtypes, constant_inputs, maybe, reducer=-1):
        if not C_DTYPES.issuperset(in_dtypes) or not C_DTYPES.issuperset(out_dtypes):
            return None
        key = (first, op, tuple(in_dtypes), tuple(constant_inputs), tuple(maybe))
        loop = self._loops.get(key)
        if loop is not None:
            return loop
        steps, outs = as_program(op, in_dtypes, out_dtypes)
        loop = Loop((steps, outs, tuple(in_dtypes)), reducer)
        if not loops.is_cheap(steps):
            maybe = ()  # a copy of what stands still costs less than to compile such a loop twice
        if self.generate:
            loop.name = f"ow_k{len(self._loops)}"
            given = (*first, steps, outs[0]) if first else (steps, outs)
            loop.definitions = make(loop.name, *given, in_dtypes, constant_inputs, maybe)
            if loop.definitions is None:
                return None
            loop.still = sum(1 << i for i in (*constant_inputs, *maybe[: loops.MAX_MAYBE]))
        elif not interpretable(steps, in_dtypes):
            return None
        self._loops[key] = loop
        return loop

    def start(self):
        """Begin to compile, where the cache does not have them, all loops that were asked for."""
        shares = _shares(list(self._loops.values())) if self.generate else []
        self._builds = [(wanted, cbuild.Build(source_text(wanted))) for wanted in shares]

    def finish(self):
        """Wait for the loops; those that cannot be had are left to the interpreter."""
        if self._builds is None:
            self.start()
        failure = None
        for wanted, build in self._builds:
            try:
                library, report = build.result()
            except CompileError as e:
                failure = e
                continue
            self.report = report if self.report is None else self.report + report
            for loop in wanted:
                loop.address = library.symbol(loop.name)
                loop.keep = library
        if failure is not None:
            provenance.warn(
                f"opwise uses its slower, built-in loops: {failure}. Check the flags cxx (the "
                "compiler) and gcc.cxxflags; to use no compiler and silence this message, set cxx="
            )
        for loop in self._loops.values():
            steps, _, in_dtypes = loop.program
            if not loop.address and interpretable(steps, in_dtypes):
                loop.keep = interpreter_code(*loop.program, loop.reducer)
                loop.address, loop.context = opwise_c.INTERPRET, loop.keep.address


def _shares(wanted):
    """Return the loops in as many groups as it pays to run compilers for, of about equal work."""
    sizes = {loop: sum(map(len, loop.definitions)) for loop in wanted}
    count = max(1, min(resources.processors(), len(wanted), sum(sizes.values()) // SHARE))
    groups = [[] for _ in range(count)]
    work = [0] * count
    for loop in sorted(wanted, key=sizes.get, reverse=True):
        least = work.index(min(work))
        groups[least].append(loop)
        work[least] += sizes[loop]
    return [group for group in groups if group]


def source_text(wanted):
    """Return the C file of some loops of a function."""
    return loops.file_text(
        [text for loop in wanted for text in loop.definitions],
        [(loop.program[0], loop.program[2]) for loop in wanted],
        head=f"/* made by opwise, version {VERSION} of the generator */",
    )


# --- the interpreter ----------------------------------------------------------------------------


def interpretable(steps, in_dtypes):
    """Return whether every step has a built-in loop."""
    return _instructions(steps, in_dtypes) is not None


def interpreter_code(steps, outs, in_dtypes, reducer=-1):
    """Return the program as instructions of the interpreter; reducer: what it ends with."""
    itemsizes, results, instructions = _instructions(steps, in_dtypes)
    n = len(in_dtypes)
    return opwise_c.Code(n, itemsizes, [results[s] for s in outs], instructions, reducer)


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
