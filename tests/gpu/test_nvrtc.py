"""All texts, compiled by NVRTC for several architectures: no warnings, no spills, vectors."""

import re

import kernel_cases
import nvrtc
import pytest

from opwise.gpu.kernels.cudatext import ScalarProgram
from opwise.gpu.kernels.elemwise import ElementwiseKernels
from opwise.gpu.kernels.kernel import OPTIONS, module_text

pytestmark = pytest.mark.slow

_VERBOSE = (*OPTIONS, "--ptxas-options=-v")
#: those of other architectures than the one that all kernels are compiled for
_OTHERS = (75, 80, 100, 120)
#: kernels of each kind, for the other architectures
_CHOSEN = ("layer", "half", "sum of rows", "argmax", "softmax", "cross entropy", "add rows",
           "pick apart", "add parts", "choose", "search by a sorter", "uniform",
           "counts", "sparse product", "convolution", "pool, max gradient")  # fmt: skip


@pytest.fixture(autouse=True)
def _compiler():
    nvrtc.needed()


def check(log, spilling=()):
    """Fail for any message but ptxas's figures, and for registers that go to memory.

    spilling: kernels that may, around calls of functions of the device's library. Returns how many
    registers each kernel uses.
    """
    messages = [line for line in log.splitlines() if line.strip() and "ptxas" not in line]
    assert not messages, log
    assert "ptxas warning" not in log and "ptxas error" not in log, log
    figures = re.findall(
        r"Function properties for (\S+)\n.*?(\d+) bytes spill stores, (\d+).*?\n.*?Used (\d+) reg",
        log,
    )
    spilled = {name for name, stores, loads, _ in figures if stores != "0" or loads != "0"}
    assert spilled <= set(spilling)
    return {name: int(count) for name, _, _, count in figures}


@pytest.mark.parametrize("half", [0, 1])
def test_every_kernel(half):
    every = kernel_cases.kernels()[half::2]
    log, code = nvrtc.compile_text(module_text(every), 90, _VERBOSE)
    # divisions of 64 bits and in loops, and the logarithm of a double, are calls
    calls = re.compile(r"ow_log_f64\(|/= total|const double t\d+ = \(.* / ")
    spilling = [k.name for k in every if k.wide or calls.search("\n".join((k.text, *k.needs)))]
    registers = check(log, spilling)
    assert registers.keys() == {kernel.name for kernel in every}
    for kernel in every:
        assert kernel.name.encode() in code
    # with more than 64 a processor of the device has less than half of its threads; indices of 64
    # bits may take more. Tiles of products keep their sums in registers
    most = {kernel.name: _most_registers(kernel) for kernel in every}
    assert {name: n for name, n in registers.items() if n > most[name]} == {}


def _most_registers(kernel):
    if kernel.name.startswith("ow_product_") and "_tile[2]" in kernel.text:
        return 128
    return 80 if kernel.wide else 64


@pytest.mark.parametrize("architecture", _OTHERS)
def test_other_architectures(architecture):
    if architecture not in nvrtc.architectures():
        pytest.skip(f"this NVRTC does not know sm_{architecture}")
    cases = kernel_cases.cases()
    chosen = [
        kernel
        for name in _CHOSEN
        for kernel in kernel_cases.made(cases[name]).kernels
        if not kernel.wide
    ]
    log, _ = nvrtc.compile_text(module_text(chosen), architecture, _VERBOSE)
    check(log)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_every_row(dtype):
    """Each expression of the scalar table is CUDA, and so is each cast."""
    texts = []
    for op in kernel_cases.every_row(dtype):
        program = ScalarProgram.of(op, op.in_dtypes, op.program.out_dtypes)
        assert program.missing() is None
        texts.append(ElementwiseKernels(program, 1, [(False,)] * op.nin).strided[False])
    log, _ = nvrtc.compile_text(module_text(texts), 90, OPTIONS)
    assert not log.strip()


def ptx_of(kernel):
    return nvrtc.ptx(module_text([kernel]), 90, OPTIONS)


def test_vectors_are_loaded_and_stored():
    cases = kernel_cases.cases()
    for name, stores in [("product", True), ("layer", True), ("sum of rows", False),
                         ("softmax", True)]:  # fmt: skip
        text = ptx_of(kernel_cases.made(cases[name]).kernels[0])
        assert re.search(r"ld\.global(\.nc)?\.v4\.f32", text), name
        assert ("st.global.v4.f32" in text) == stores, name
    text = ptx_of(kernel_cases.made(cases["half"]).kernels[0])
    assert re.search(r"ld\.global(\.nc)?\.v4\.u32|ld\.global(\.nc)?\.v8\.u16|v4\.b32", text), text


def test_loads_come_before_what_is_done_with_them():
    """Several vectors are on their way at once."""
    cases = kernel_cases.cases()
    for name, count in (("product", 4), ("sum of rows", 4)):
        text = ptx_of(kernel_cases.made(cases[name]).kernels[0])
        loads = [m.start() for m in re.finditer(r"ld\.global\S*\.v4", text)]
        arithmetic = [m.start() for m in re.finditer(r"\b(mul|add|fma)(\.rn)?\.f(32|64)", text)]
        assert len(loads) >= count and loads[count - 1] < min(
            a for a in arithmetic if a > loads[0]
        ), name


def test_indices_have_32_bits_where_they_fit():
    """Divisions, in kernels for all but huge arrays, are never those of 64 bits, which are slow."""
    for name in ("layer", "cube", "channels", "variance", "take", "add rows", "pick",
                 "pick apart", "add parts", "search", "choose", "uniform", "counts",
                 "draws", "sparse product", "convolution", "gradient by kernels",
                 "pool, max gradient", "pool, max"):  # fmt: skip
        for kernel in kernel_cases.made(kernel_cases.cases()[name]).kernels:
            wide = re.findall(r"\b(?:div|rem)\.[us]64", ptx_of(kernel))
            if "merge_rows" not in kernel.name:
                assert bool(wide) <= kernel.wide, kernel.name


def test_a_warning_would_be_seen():
    text = 'extern "C" __global__ void f(int *x) { int unused; x[0] = 1; }'
    log, _ = nvrtc.compile_text(text, 90, _VERBOSE)
    with pytest.raises(AssertionError, match="unused"):
        check(log)
