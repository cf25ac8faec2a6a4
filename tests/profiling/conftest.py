"""Profiles with figures that the tests choose."""

import pytest

from opwise.profiling.profile import ApplyProfile, CompileProfile, FunctionProfile, Profile


def an_apply(op, total, position=0, c=True, keys=(), count=1, op_class=None, lines=()):
    """An Apply that took ``total`` nanoseconds."""
    return ApplyProfile(
        position=position,
        op=op,
        op_class=op_class or f"<class 'ops.{op.split('{')[0]}'>",
        op_key=f"ops.{op}",
        text=f"{op}(x)",
        inputs=("TensorType(float64, vector)",),
        outputs=("TensorType(float64, vector)",),
        keys=tuple(keys),
        lines=tuple(lines),
        c=c,
        why="" if c else "no C implementation",
        count=count,
        total=total,
        least=total // max(1, count),
        most=total,
        histogram=(0, count),
    )


def a_function(*applys, name="f", calls=1, call_ns=None):
    """A function of these Applys, called ``calls`` times."""
    total = sum(a.total for a in applys)
    return FunctionProfile(
        name=name,
        applys=tuple(applys),
        calls=calls,
        call_ns=2 * total if call_ns is None else call_ns,
        fn_ns=total,
        first_call_ns=total,
        compile=CompileProfile(
            total=0.3,
            optimizer=0.1,
            validate=0.01,
            linker=0.2,
            thunks=0.15,
            load=0.001,
            slowest=(("exp(x)", 0.1),),
        ),
    )


@pytest.fixture
def build():
    """(an_apply, a_function, Profile)."""
    return an_apply, a_function, Profile
