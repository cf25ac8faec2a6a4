"""``examine``: runs a Program some ways and raises Fault where one of them is wrong."""

from __future__ import annotations

import numpy as np

from opwise.compile.function import function
from opwise.compile.io import In
from opwise.config import change_flags
from opwise.modes.debugging.perturbation import Perturbed, beyond
from opwise.testing.fuzz.grow import Fault
from opwise.testing.ways import mode_of

#: calls of each function; all must give the same bits
_CALLS = 4


def examine(program, ways):
    """Raise Fault for the first way that differs from the plain run by more than roundings do.

    Outputs, new values of shared variables, and arguments, which must be as they were.
    """
    for way in ways:
        try:
            _examine(program, way)
        except Fault as fault:
            if not _confirmed(program, fault):
                continue
            raise
        finally:
            for name, leaf in program.leaves.items():
                if leaf.kind == "shared":
                    program.variables[name].set_value(leaf.argument(), borrow=True)


def compiled(program, way):
    """Return the function of a program under a way."""
    variables = program.variables
    inputs = [
        In(variables[leaf.name], mutable=leaf.kind == "mutable",
                  borrow=leaf.kind == "mutable")
        for leaf in program.arguments()
    ]  # fmt: skip
    with change_flags(on_opt_error="raise", compute_test_value="off"):
        return function(
            inputs, [variables[name] for name in program.outputs], mode=mode_of(way),
            updates=[(variables[s], variables[v]) for s, v in program.updates.items()],
            on_unused_input="ignore",
        )  # fmt: skip


def _examine(program, way):
    leaves = program.arguments()
    arguments = [leaf.argument() for leaf in leaves]
    try:
        f = compiled(program, way)
        found = f(*arguments)
    except Exception as error:  # whatever it is: the plain run raised nothing
        raise Fault(
            f"raises {type(error).__name__}: {error}", program, way, program.outputs
        ) from error
    for leaf, argument in zip(leaves, arguments, strict=True):
        if leaf.kind == "input" and argument.tobytes() != leaf.value.tobytes():
            raise Fault(f"the argument {leaf.name} was overwritten", program, way)
    results = [(name, name, value) for name, value in zip(program.outputs, found, strict=True)]
    for shared, new in program.updates.items():
        value = program.variables[shared].get_value(borrow=True)
        results.append((f"the update of {shared}", new, value))
    for label, name, value in results:
        how = _wrong(program.perturbed, program.variables[name], value)
        if how is not None:
            outputs = [name] if label == name else program.outputs
            raise Fault(f"{label}: {how}", program, way, outputs)
    if found:
        first = [np.array(value) for value in found]
        for k in range(2, _CALLS + 1):
            _call_again(program, f, leaves, way, first, k)


def _call_again(program, f, leaves, way, first, k):
    """Memory is used again, shared variables were changed; a device has captured what it did."""
    for name, leaf in program.leaves.items():
        if leaf.kind == "shared":
            program.variables[name].set_value(leaf.argument(), borrow=True)
    try:
        again = f(*[leaf.argument() for leaf in leaves])
    except Exception as error:  # as above
        raise Fault(f"call {k} raises {type(error).__name__}: {error}", program, way,
                    program.outputs) from error  # fmt: skip
    for name, one, two in zip(program.outputs, first, again, strict=True):
        if one.tobytes() != np.asarray(two).tobytes():
            raise Fault(f"{name}: call {k} gives {two} after {one}", program, way)


def _wrong(perturbed, var, value):
    [expected] = perturbed.compute([var])
    if not isinstance(value, np.ndarray):
        return f"a {type(value).__name__} instead of an array"
    return beyond(expected, value, perturbed.allowed(var))


def _confirmed(program, fault):
    """Return whether more and larger roundings do not explain a fault either."""
    names = [*fault.outputs, *program.updates.values()]
    if "raises" in str(fault)[:30] or not names:
        return True
    perturbed = Perturbed({program.variables[n]: leaf.value for n, leaf in program.leaves.items()},
                    runs=24, ulps=4.0, seed=1)  # fmt: skip
    with np.errstate(all="ignore"):
        perturbed.compute([program.variables[n] for n in [*program.statements]])
    stricter, program.perturbed = program.perturbed, perturbed
    try:
        _examine(program, fault.way)
    except Fault:
        return True
    finally:
        program.perturbed = stricter
        for name, leaf in program.leaves.items():
            if leaf.kind == "shared":
                program.variables[name].set_value(leaf.argument(), borrow=True)
    return False
