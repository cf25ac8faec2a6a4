"""Ops that run on the host although their neighbours run on a device, each with the reason."""

from __future__ import annotations

from opwise import sparse
from opwise.gpu.lowering import runs_on_host
from opwise.graph.op import Op
from opwise.sparse.compressed import CSRFromCSC
from opwise.tensor.advanced_subtensor import AdvancedBooleanSubtensor
from opwise.tensor.breakpoint import PdbBreakpoint
from opwise.tensor.conv import neighbours, older, spatial
from opwise.tensor.conv.conv3d2d import DiagonalSubtensor, IncDiagonalSubtensor
from opwise.tensor.conv.epilogue import ConvElemwise
from opwise.tensor.conv.ops import BaseAbstractConv
from opwise.tensor.conv.pool import PoolGrad
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.deprecated import Default, Mean, Tile
from opwise.tensor.extra_ops import Bartlett, Unique
from opwise.tensor.ifelse import IfElse
from opwise.tensor.io import LoadFromDisk
from opwise.tensor.linalg.eigen import (
    Eig,
    EighGrad,
    Eigvalsh,
    EigvalshGrad,
    Expm,
    ExpmGrad,
)
from opwise.tensor.linalg.factor import CholeskyGrad
from opwise.tensor.linalg.fourier import Fourier
from opwise.tensor.linalg.frames import FFT
from opwise.tensor.linalg.hint import Hint
from opwise.tensor.linalg.inverse import TensorInv, TensorSolve, lstsq
from opwise.tensor.lists import (
    Append,
    Count,
    Extend,
    GetItem,
    Index,
    Insert,
    Length,
    MakeList,
    Remove,
    Reverse,
)
from opwise.tensor.nnet.blocksparse import SparseBlockGemv, SparseBlockOuter
from opwise.tensor.nnet.bnops import (
    AbstractBatchNormInference,
    AbstractBatchNormTrain,
    AbstractBatchNormTrainGrad,
)
from opwise.tensor.nnet.ctc import ConnectionistTemporalClassification
from opwise.tensor.random.mrg import DotModulo
from opwise.tensor.random.raw_random import RandomFunction
from opwise.tensor.reduce import FirstAlong
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.shape import Shape, Shape_i
from opwise.tensor.slices import MakeSlice
from opwise.tensor.windowsum import WindowSum

_LAPACK = "LAPACK computes it on the host; few programs need it in every step"

HOST_ONLY: dict[type[Op], str] = {
    Shape: "the host knows shapes without the elements",
    Shape_i: "the host knows shapes without the elements",
    ScalarFromTensor: "the host needs this value, and must wait for it",
    TensorFromScalar: "its input is a number on the host",
    MakeSlice: "a slice is not an array",
    FirstAlong: "only rewrites for the CPU make it",
    ConvElemwise: "only rewrites for the CPU make it",
    **dict.fromkeys(
        (Append, Count, Extend, GetItem, Index, Insert, Length, MakeList, Remove, Reverse),
        "a list is not an array",
    ),
    IfElse: "the host chooses the branch, and must know the condition",
    PdbBreakpoint: "a debugger runs on the host",
    Default: "only old programs make it",
    Mean: "only old programs make it; theano.tensor.mean runs on the device",
    LoadFromDisk: "the host reads files",
    **dict.fromkeys((DiagonalSubtensor, IncDiagonalSubtensor), "only old programs make it"),
    **dict.fromkeys(
        (older.OlderOp, older.ConvOp, older.Conv3D, older.ConvTransp3D, older.ConvGrad3D),
        "a call of it builds other Ops",
    ),
    Tile: "only old programs make it; theano.tensor.tile runs on the device",
    SparseBlockGemv: "no kernel gathers blocks",
    SparseBlockOuter: "no kernel adds to blocks that may repeat",
    ConnectionistTemporalClassification: "its steps follow each other in time",
    Bartlett: "it computes only a few numbers",
    AdvancedBooleanSubtensor: "output size depends on the data: it would need a synchronisation",
    RandomFunction: "numpy's generators draw one number after the other, on the host",
    DotModulo: "it computes six numbers",
    Hint: "rewrites remove it",
    **dict.fromkeys(
        (
            CholeskyGrad,
            Eig,
            EighGrad,
            Eigvalsh,
            EigvalshGrad,
            Expm,
            ExpmGrad,
            TensorInv,
            TensorSolve,
            lstsq,
        ),
        _LAPACK,
    ),
    **dict.fromkeys((FFT, Fourier), "its complex numbers stay on the host"),
    Unique: "output size depends on the data: it would need a synchronisation",
    Rowwise: "rewrites for a device make none: its kernels compute one reduction each",
    WindowSum: "only rewrites for the CPU make it",
}

HOST_ONLY |= dict.fromkeys(
    (BaseAbstractConv, PoolGrad), "kernels know the Ops derived from it, and no others"
)
HOST_ONLY |= dict.fromkeys(
    (AbstractBatchNormTrain, AbstractBatchNormInference, AbstractBatchNormTrainGrad),
    "rewrites compute it by elementwise Applys and sums; only FAST_COMPILE leaves it",
)
HOST_ONLY |= {
    cls: "no kernel takes neighbourhoods of images or samples them yet"
    for module in (neighbours, spatial)
    for cls in vars(module).values()
    if isinstance(cls, type) and issubclass(cls, Op) and cls.__module__ == module.__name__
}
HOST_ONLY |= {
    cls: "sparse matrices stay in the host's memory"
    for cls in vars(sparse).values()
    if isinstance(cls, type) and issubclass(cls, Op) and cls is not sparse.StructuredDotCSR
}
HOST_ONLY[CSRFromCSC] = "it sorts the entries of a matrix of the host"

runs_on_host(HOST_ONLY)
