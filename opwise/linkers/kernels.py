"""Loops for elementwise Applys, and for reductions of them: generated C, or the built-in loops.

The loops of a function become one C file. Without a compiler, or if a mode forbids it, the VM's
interpreter runs the same scalar program, chunk by chunk, over loops that are built in.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from opwise.errors import CompileError
from opwise.graph import provenance
from opwise.linkers import cbuild, opwise_c, resources
from opwise.linkers.lowering import LOOP_DTYPES
from opwise.linkers.userops import loopcode
from opwise.scalar import csource, loops, usercode
from opwise.scalar.borrowed import BORROWED
from opwise.scalar.dtypes import COMPLEX, CONTINUOUS
from opwise.scalar.op import Cast, ScalarOp
from opwise.scalar.program import Instruction, Program
from opwise.scalar.recurrence import Recurrence
from opwise.scalar.rowloops import RowProgram
from opwise.scalar.take import Take, tables, value_dtypes
from opwise.scalar.usercode import UserFunction

#: part of the cache key of generated code: change it when the text's meaning changes
VERSION = 9
#: characters of loops for which another compiler is started: fewer take less time than its start
SHARE = 1500


class Loop:
    """A loop that ``Kernels.finish`` looks up or compiles."""

    __slots__ = (
        "address", "broadcast", "context", "definitions", "functions", "keep", "name", "on_demand",
        "program", "reducers", "same_order",
    )  # fmt: skip

    def __init__(self, program: Program, reducers: tuple[int, ...] = ()) -> None:
        self.program = program
        #: the built-in reductions that the interpreter ends with, as ``opwise_c.Code`` takes them
        self.reducers = reducers
        #: whether the interpreter reduces in the order of the compiled loop
        self.same_order = True
        #: its C function, and the texts that define it; None for built-in loops
        self.name: str | None = None
        self.definitions: Sequence[str] | None = None
        #: the functions of users that it calls
        self.functions: list[UserFunction] = []
        #: addresses of the C function and of its first argument, after ``finish``; 0 if there is no
        #: such loop: the Apply then runs ``perform``
        self.address = self.context = 0
        #: what owns the memory at these addresses
        self.keep: opwise_c.Library | opwise_c.Code | None = None
        #: mask of the inputs that may be broadcast; -1 if the loop takes any strides
        self.broadcast = -1
        #: a loop that its step needs for some operands only, the address of which is the context
        self.on_demand: opwise_c.OnDemand | None = None

    @property
    def needs_gil(self) -> bool:
        """Whether it calls code of users that may set an exception, or has a state."""
        return any(function.needs_gil for function in self.functions)


#: loops, and the library that they are compiled to
Builds = list[tuple[list[Loop], cbuild.Build]]


class Compiled(Protocol):
    """Code of a user that is compiled between ``start`` and ``finish``."""

    def start(self, builds: dict[str, cbuild.Build]) -> None: ...

    def finish(self) -> cbuild.BuildReport: ...


#: whether kernels of functions that are compiled now wait for the first run that needs them
demanded: ContextVar[bool] = ContextVar("opwise_kernels_demanded", default=False)


class Kernels:
    """Gives loops to the lowerings of one function; ``finish`` compiles those that were given."""

    def __init__(self, generate: bool = True) -> None:
        self.generate = generate and cbuild.compiler() is not None
        if generate:
            cbuild.warn_of_compiler()
        self._loops: dict[tuple[Any, ...], Loop] = {}
        #: loops that the interpreter cannot run
        self._special: dict[Recurrence | RowProgram, Loop] = {}
        #: whether the function runs only where the C function of a loop around it does not
        self.demanded = demanded.get()
        self._builds: Builds | None = None
        #: what is compiled later, after ``start``
        self.pending: Pending | None = None
        self._codes: list[Compiled] = []
        #: builds of users' code by key: equal Applys share one
        self._shared: dict[str, cbuild.Build] = {}
        #: what the cache and the compiler did, after ``finish``
        self.report: cbuild.BuildReport | None = None

    def elemwise(
        self,
        op: ScalarOp,
        in_dtypes: Sequence[str],
        out_dtypes: Sequence[str],
        constant_inputs: Sequence[int],
        maybe_broadcast: Sequence[int],
    ) -> Loop | None:
        """Return a Loop for a scalar op, or None if a part of it has no C.

        constant_inputs: positions of those that hold one number. maybe_broadcast: of those that may
        be broadcast along the innermost dimension.
        """
        return self._loop(
            loops.elemwise_text, (), op, in_dtypes, out_dtypes, constant_inputs, maybe_broadcast
        )

    def reduction(
        self,
        row: Any,
        acc: str,
        whole: bool,
        reducers: tuple[int, int, int],
        op: ScalarOp,
        in_dtypes: Sequence[str],
        out_dtypes: Sequence[str],
        constant_inputs: Sequence[int],
        maybe_broadcast: Sequence[int],
    ) -> Loop | None:
        """Return a Loop that folds the results of a scalar op by the operation ``row``, or None.

        acc: dtype of the accumulators. whole: whether each result is one number. reducers: the
        built-in reductions of its results, as ``opwise_c.Code`` takes them.
        """
        loop = self._loop(
            loops.reduction_text, (row.name, acc, "run" if whole else "any"), op, in_dtypes,
            out_dtypes, constant_inputs, maybe_broadcast, reducers,
        )  # fmt: skip
        if loop is not None and acc in CONTINUOUS:
            n_acc, rows, run = len(out_dtypes), *reducers[:2]
            elements = value_dtypes(loop.program)
            lanes = (loops.lanes(acc, n_acc, given) for given in (elements, ()))
            loop.same_order = len(set(lanes)) == 1 and (n_acc == 1 or run != rows)
        return loop

    def recurrence(self, repeated: Recurrence) -> Loop | None:
        """Return a Loop that repeats a scalar program; None if no kernels are generated."""
        loop = self._special_loop(repeated)
        if loop is not None and self.demanded and loop.on_demand is None:
            loop.on_demand = opwise_c.OnDemand(_compiling(loop))
            loop.definitions = None
        return loop

    def rows(self, program: RowProgram) -> Loop | None:
        """Return a Loop that runs a row program; None if no kernels are generated.

        The loop over turned rows is compiled on demand.
        """
        loop = self._special_loop(program)
        if loop is not None and loop.on_demand is None:
            turned = Loop(loop.program)
            turned.name = f"{loop.name}_turned"
            turned.definitions = program.turned_text(turned.name)
            loop.on_demand = opwise_c.OnDemand(_compiling(turned))
            loop.context = loop.on_demand.address
        return loop

    @property
    def on_demand(self) -> tuple[opwise_c.OnDemand, ...]:
        """The loops that are compiled when a step first needs them."""
        found = (loop.on_demand for loop in self._special.values())
        return tuple(one for one in found if one is not None)

    def _special_loop(self, program: Recurrence | RowProgram) -> Loop | None:
        if not self.generate:
            return None
        loop = self._special.get(program)
        if loop is None:
            name = f"ow_r{len(self._special)}"
            definitions = program.check().text(name)
            if definitions is None:
                return None
            loop = Loop(program)
            loop.name, loop.definitions = name, definitions
            self._special[program] = loop
        return loop

    def _loop(
        self,
        make: Callable[..., Sequence[str] | None],
        first: tuple[Any, ...],
        op: ScalarOp,
        in_dtypes: Sequence[str],
        out_dtypes: Sequence[str],
        constant_inputs: Sequence[int],
        maybe_broadcast: Sequence[int],
        reducers: tuple[int, ...] = (),
    ) -> Loop | None:
        if not LOOP_DTYPES.issuperset(in_dtypes) or not LOOP_DTYPES.issuperset(out_dtypes):
            return None
        key = (first, op, tuple(in_dtypes), tuple(constant_inputs), tuple(maybe_broadcast))
        loop = self._loops.get(key)
        if loop is not None:
            return loop
        program = Program.of(op, in_dtypes, out_dtypes).check()
        loop = Loop(program, reducers)
        if self.generate or any(usercode.is_c_only(one.op) for one in program.instructions):
            loop.name = name = f"ow_k{len(self._loops)}"
            loop.functions = usercode.functions_of(program)
            if loop.needs_gil:
                name += "_held"
            loop.definitions = make(name, *first, program, constant_inputs, maybe_broadcast)
            if loop.definitions is None:
                return None
            if loop.needs_gil:
                loop.definitions = [*loop.definitions, f"OW_WITH_GIL({loop.name}, {name})"]
            loop.broadcast = sum(1 << i for i in (*constant_inputs, *maybe_broadcast))
        elif not interpretable(program):
            return None
        self._loops[key] = loop
        return loop

    def add(self, code: Compiled) -> None:
        """Compile the code of a user too."""
        self._codes.append(code)

    def start(self, later: bool = False) -> Builds:
        """Start to compile what the cache lacks; return the builds of loops.

        later: if built-in loops give the same bits, only look into the cache; what it lacks becomes
        ``pending``.
        """
        for code in self._codes:
            code.start(self._shared)
        every = (*self._loops.values(), *self._special.values())
        generated = [loop for loop in every if loop.definitions is not None]
        shares = _shares([loop for loop in generated if not loop.functions])
        builds = [(loops, cbuild.Build(source_text(loops), start=False)) for loops in shares]
        users = [loop for loop in generated if loop.functions]
        known = all(build.is_known for _, build in builds)
        # the interpreter cannot run these
        others = users or [loop for loop in self._special.values() if loop.definitions is not None]
        later = later and not known and not others
        if later and not self.demanded:
            same = not cbuild.may_change_bits(cbuild.extra_flags())
            later = same and all(map(_has_same_bits, generated))
        if later:
            self.pending, builds = Pending(builds), []
        for _, build in builds:
            build.start()
        if users:
            builds.append((users, loopcode.build(source_text(users), _functions(users))))
        self._builds = builds
        return builds

    def finish(self) -> None:
        """Wait for the compilers; the interpreter runs loops that are not compiled.

        Raises CompileError for the code of users.
        """
        builds = self.start() if self._builds is None else self._builds
        for loop, (address, library) in _compiled(builds, self._note).items():
            loop.address, loop.keep = address, library
        for loop in self._loops.values():
            if not loop.address:
                _interpret(loop)
        for code in self._codes:
            self._note(code.finish())

    def _note(self, report: cbuild.BuildReport) -> None:
        self.report = report if self.report is None else self.report + report


#: nanoseconds in calls after which kernels are compiled: the time that starting a compiler takes
_WORTH_COMPILING = 2_000_000


class Pending:
    """Kernels that are compiled while a function runs on built-in loops with the same results.

    The compiler starts once calls have taken some time, so functions that are hardly used need
    none. Its work is in the cache for other processes, even if this one ends before.
    """

    def __init__(self, builds: Builds) -> None:
        self._builds = builds
        #: what the cache and the compiler did; None before the kernels are in use
        self.report: cbuild.BuildReport | None = None
        #: the process in which the compiler was started; None: it was not
        self._process: int | None = None

    def take(self, ns: int, wait: bool) -> dict[Loop, tuple[int, opwise_c.Library]] | None:
        """Return {Loop: (address, library)} once the compiler is done, without what it refused.

        Called before each call of the function; None: that call runs built-in loops. ns: of earlier
        calls. wait: wait for the compiler.
        """
        if not wait and ns < _WORTH_COMPILING:
            return None
        if self._process != os.getpid():
            self._start()
        if not wait and not all(build.is_done for _, build in self._builds):
            return None
        _started.discard(self)
        return _compiled(self._builds, self._note)

    def _note(self, report: cbuild.BuildReport) -> None:
        self.report = report if self.report is None else self.report + report

    def _start(self) -> None:
        if self._process is not None:  # this is a fork, without the thread that ran the compiler
            self._builds = [(loops, build.again()) for loops, build in self._builds]
        for _, build in self._builds:
            build.start()
        self._process = os.getpid()
        _started.add(self)

    def keep(self) -> None:
        """Put what was compiled in this process into the cache."""
        if self._process == os.getpid():
            for _, build in self._builds:
                build.keep()


#: whose compilers were started, but whose kernels are not in use yet
_started: weakref.WeakSet[Pending] = weakref.WeakSet()


@atexit.register
def _keep_pending() -> None:
    """At exit: wait for compilers, but not without end, and keep what they have made."""
    cbuild.end_compilers()
    for pending in list(_started):
        pending.keep()


def _compiled(
    builds: Builds, note: Callable[[cbuild.BuildReport], None] | None = None
) -> dict[Loop, tuple[int, opwise_c.Library]]:
    """Wait for compilers; return {Loop: (address, library)} without those that failed, and warn.

    note: called with the report of each library. Raises CompileError for the code of users.
    """
    found, failure = {}, None
    for loops_, build in builds:
        try:
            library, report = build.result()
        except CompileError as e:
            if loops_[0].functions:
                raise loopcode.explained(e, _functions(loops_)) from e
            failure = e
            continue
        if note is not None:
            note(report)
        for loop in loops_:
            assert loop.name is not None
            found[loop] = library.symbol(loop.name), library
    if failure is not None:
        provenance.warn(
            f"opwise uses its slower, built-in loops: {failure}. Check the flags cxx (the "
            "compiler) and gcc.cxxflags; to use no compiler and silence this message, set cxx="
        )
    return found


def _functions(wanted: Sequence[Loop]) -> list[UserFunction]:
    """Return the functions of users that loops call, each once."""
    return list({f.name: f for loop in wanted for f in loop.functions}.values())


def _interpret(loop: Loop) -> None:
    """Let the interpreter run a loop, if it can."""
    if interpretable(loop.program):
        code = interpreter_code(loop.program, loop.reducers)
        loop.keep, loop.address, loop.context = code, opwise_c.INTERPRET, code.address


def _compiling(loop: Loop) -> Callable[[], tuple[int, opwise_c.Library] | None]:
    """Return a function that compiles a loop, with the compiler and the flags of now.

    It returns (address, library), or None with a warning if the compiler fails.
    """
    text = source_text([loop])
    recipe = cbuild.kernel_recipe(text)

    def compiled() -> tuple[int, opwise_c.Library] | None:
        assert loop.name is not None
        try:
            library, _ = cbuild.Build(text, recipe).result()
        except CompileError as e:
            provenance.warn(f"opwise uses a slower loop: {e}")
            return None
        return library.symbol(loop.name), library

    return compiled


def _shares(wanted: list[Loop]) -> list[list[Loop]]:
    """Divide loops into groups of about equal size, as many as it pays to run compilers for."""
    sizes = {loop: sum(map(len, loop.definitions or ())) for loop in wanted}
    if not wanted:
        return []
    count = max(1, min(resources.processors(), len(wanted), sum(sizes.values()) // SHARE))
    groups: list[list[Loop]] = [[] for _ in range(count)]
    work = [0] * count
    for loop in sorted(wanted, key=sizes.__getitem__, reverse=True):
        least = work.index(min(work))
        groups[least].append(loop)
        work[least] += sizes[loop]
    return [group for group in groups if group]


def source_text(wanted: Sequence[Loop]) -> str:
    """Return the C file of some loops of a function."""
    return loops.file_text(
        [text for loop in wanted for text in loop.definitions or ()],
        [loop.program for loop in wanted],
        head=f"/* made by opwise, version {VERSION} of the generator */",
    )


# --- the interpreter ----------------------------------------------------------------------------

#: (address of the loop, output register, input registers)
_Instruction = tuple[int, int, tuple[int, ...]]


def _has_same_bits(loop: Loop) -> bool:
    """Return whether the interpreter gives the same bits for a loop as compiled C.

    NaN is NaN on both, but its sign and payload may differ. Vector functions of the math library
    differ from the others in their last bits. Built-in loops of complex numbers are compiled for
    any processor.
    """
    program = loop.program
    if any(dtype in COMPLEX for dtype in program.dtypes):
        return False
    if not loop.same_order or not program.instructions or not interpretable(program):
        return False
    for one in program.instructions:
        _, libm, _ = csource.requirements(one.op, program.arguments(one), one.dtype)
        plain = one.op.row is not None or isinstance(one.op, Cast | Take)
        if not plain or not libm <= csource.EXACT | BORROWED.keys():
            return False
    return True


#: bytes of an element
_SIZES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
          "float16": 2, "float32": 4, "int64": 8, "uint64": 8, "float64": 8, "complex64": 8,
          "complex128": 16}  # fmt: skip


def interpretable(program: Program) -> bool:
    """Return whether every instruction has a built-in loop."""
    return _instructions(program) is not None


def interpreter_code(program: Program, reducers: tuple[int, ...] = ()) -> opwise_c.Code:
    """Return an interpretable program as instructions of the interpreter.

    reducers: the built-in reductions of its results, as ``opwise_c.Code`` takes them.
    """
    found = _instructions(program)
    assert found is not None
    rows = (one.op.row for one in program.instructions)
    if any(row is not None and BORROWED.keys() & row.libm for row in rows):
        opwise_c.load_special()
    itemsizes, results, instructions = found
    return opwise_c.Code(len(program.in_dtypes), itemsizes, results, instructions, reducers)


def _instructions(program: Program) -> tuple[list[int], list[int], list[_Instruction]] | None:
    """Return (item size of each register, register of each output, instructions), or None."""
    dtypes = list(program.in_dtypes)
    registers = list(range(len(dtypes)))  # by slot
    instructions: list[_Instruction] = []

    def emit(loop: str, args: Sequence[int], dtype: str) -> int | None:
        address = opwise_c.LOOPS.get(loop)
        if address is None:
            return None
        dtypes.append(dtype)
        instructions.append((address, len(dtypes) - 1, tuple(args)))
        return len(dtypes) - 1

    def converted(register: int, dtype: str, wanted: str) -> int | None:
        if dtype == wanted:
            return register
        return emit(f"cast_{csource.short(dtype)}_{csource.short(wanted)}", [register], wanted)

    for step in program.instructions:
        args = [registers[a] for a in step.args]
        arg_dtypes = program.arguments(step)
        if any(d not in LOOP_DTYPES for d in (*arg_dtypes, step.dtype)):
            return None
        if isinstance(step.op, Cast):
            register = converted(args[0], arg_dtypes[0], step.dtype)
        elif isinstance(step.op, Take):
            at = converted(args[1], arg_dtypes[1], "int64")
            name = f"take_{csource.short(step.dtype)}"
            register = None if at is None else emit(name, [args[0], at], step.dtype)
        else:
            register = _emit_row(step, args, arg_dtypes, emit, converted)
        if register is None:
            return None
        registers.append(register)
    # the interpreter hands the address of a table on as it is: an operand of elements of no size
    of_tables = tables(program)
    sizes = [0 if r in of_tables else _SIZES[d] for r, d in enumerate(dtypes)]
    results = [registers[s] for s in program.outs]
    shared = _shared_registers(len(program.in_dtypes), sizes, results, instructions)
    return shared if len(shared[0]) <= opwise_c.MAXREG else None


def _shared_registers(
    n_in: int, itemsizes: list[int], results: list[int], instructions: list[_Instruction]
) -> tuple[list[int], list[int], list[_Instruction]]:
    """Return what ``_instructions`` returns, with registers that take several values in turn.

    Those of operands, the first ``n_in``, and of results hold the same one to the end.
    """
    last_read = {r: k for k, (_, _, args) in enumerate(instructions) for r in args}
    kept, places, sizes = set(results), list(range(n_in)), itemsizes[:n_in]
    places += [-1] * (len(itemsizes) - n_in)
    free: list[int] = []
    shared = []
    for k, (address, out, args) in enumerate(instructions):
        # an instruction never writes to a register that it reads: element sizes may differ
        place = free.pop() if free else len(sizes)
        if place == len(sizes):
            sizes.append(0)
        places[out], sizes[place] = place, itemsizes[out]
        shared.append((address, place, tuple(places[a] for a in args)))
        for r in {out, *args}:
            if r >= n_in and r not in kept and last_read.get(r, k) == k:
                free.append(places[r])
    return sizes, [places[r] for r in results], shared


def _emit_row(
    step: Instruction,
    args: list[int],
    arg_dtypes: list[str],
    emit: Callable[[str, Sequence[int], str], int | None],
    converted: Callable[[int, str, str], int | None],
) -> int | None:
    row = step.op.row
    if row is None:
        return None
    computing = row.compute_dtype(arg_dtypes, step.dtype)
    # what is computed in float16 is computed in float32, and rounded after each operation
    rounded = computing == "float16"
    computing = "float32" if rounded else computing
    first_kept = row.first_is_condition
    if row.ignores_first:
        args, arg_dtypes = args[1:], arg_dtypes[1:]
    ready: list[int] = []
    for i, (register, dtype) in enumerate(zip(args, arg_dtypes, strict=True)):
        wanted = "bool" if first_kept and i == 0 else computing
        made = converted(register, dtype, wanted)
        if made is not None and rounded and wanted != "bool" and dtype != "float16":
            made = _rounded(made, converted)
        if made is None:
            return None
        ready.append(made)
    result: int | None
    loop = f"{row.name}_{csource.short(computing)}"
    if row.nin >= 0:
        result = emit(loop, ready, row_result(row, computing))
    else:
        result = ready[0]
        for register in ready[1:]:
            result = None if result is None else emit(loop, [result, register], computing)
            if rounded and result is not None:
                result = _rounded(result, converted)
        if len(ready) == 1:
            result = emit(f"identity_{csource.short(computing)}", ready, computing)
    given = row_result(row, computing)
    if result is not None and rounded and given == "float32" and step.dtype != "float16":
        result = _rounded(result, converted)
    return None if result is None else converted(result, given, step.dtype)


def _rounded(register: int, converted: Callable[[int, str, str], int | None]) -> int | None:
    """Return the register of values of float32 rounded to those of float16, or None."""
    half = converted(register, "float32", "float16")
    return None if half is None else converted(half, "float16", "float32")


def row_result(row: Any, computing: str) -> str:
    """Return the dtype that the built-in loop of a row gives for a computing dtype."""
    if row.out(*([computing] * max(1, row.nin))) == "bool":
        return "bool"
    return csource.result_dtype(row, computing)
