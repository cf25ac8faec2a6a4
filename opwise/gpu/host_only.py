"""Why the host runs some Ops whatever a device could do: the reasons that profiles give.

An Op without an entry here or in the other tables runs on the host too, and profiles say that it
has no GPU implementation. So an entry is for an Op that a kernel would not move.
"""

from __future__ import annotations

from opwise.gpu.lowering import runs_on_host
from opwise.graph.op import Op
from opwise.tensor.advanced_subtensor import AdvancedBooleanSubtensor
from opwise.tensor.breakpoint import PdbBreakpoint
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.extra_ops import Bartlett, Unique
from opwise.tensor.ifelse import IfElse
from opwise.tensor.io import LoadFromDisk
from opwise.tensor.linalg.fourier import Fourier
from opwise.tensor.linalg.frames import FFT
from opwise.tensor.nnet.ctc import ConnectionistTemporalClassification
from opwise.tensor.random.generator import GeneratorDraw
from opwise.tensor.random.mrg import DotModulo
from opwise.tensor.random.raw_random import RandomFunction
from opwise.tensor.shape import Shape, Shape_i

HOST_ONLY: dict[type[Op], str] = {
    Shape: "the host knows shapes without the elements",
    Shape_i: "the host knows shapes without the elements",
    ScalarFromTensor: "the host needs this value, and must wait for it",
    TensorFromScalar: "its input is a number on the host",
    IfElse: "the host chooses the branch, and must know the condition",
    PdbBreakpoint: "a debugger runs on the host",
    LoadFromDisk: "the host reads files",
    ConnectionistTemporalClassification: "its steps follow each other in time",
    Bartlett: "it computes only a few numbers",
    DotModulo: "it computes six numbers",
    **dict.fromkeys(
        (RandomFunction, GeneratorDraw),
        "numpy's generators draw one number after the other, on the host",
    ),
    AdvancedBooleanSubtensor: "output size depends on the data: it would need a synchronisation",
    Unique: "output size depends on the data: it would need a synchronisation",
    **dict.fromkeys((FFT, Fourier), "its complex numbers stay on the host"),
}

runs_on_host(HOST_ONLY)
