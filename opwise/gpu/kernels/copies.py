"""Kernels that copy one array into another, or add one to another."""

from __future__ import annotations

from opwise.gpu.kernels.cudatext import ScalarProgram
from opwise.gpu.kernels.elemwise import ElementwiseKernels
from opwise.gpu.kernels.kernel import Array, DeviceLimits, Kernel, Launch, Layout
from opwise.scalar.op import OPS, cast_op


class Copies:
    """Copies between arrays of ``ndim`` dimensions, or sums; the dtypes may differ."""

    def __init__(
        self,
        source: str,
        target: str,
        ndim: int,
        pattern: tuple[bool, ...] | None = None,
        adds: bool = False,
    ) -> None:
        """source, target: dtypes. pattern: along which dimensions the source is broadcast.

        adds: add to the target.
        """
        self.adds = adds
        patterns = [pattern or (False,) * ndim]
        if adds:
            program = ScalarProgram.of(OPS["add"], [target, source], [target])
            patterns.insert(0, (False,) * ndim)
        elif source == target:
            program = ScalarProgram.identity(source)
        else:
            program = ScalarProgram.of(cast_op(target), [source], [target])
        #: why there are no kernels, or None
        self.missing = program.missing()
        self._elementwise = None
        if self.missing is None:
            self._elementwise = ElementwiseKernels(program, ndim, patterns)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self._elementwise.kernels if self._elementwise is not None else ()

    def launches(
        self, source: Layout, target: Layout, from_: Array, to: Array, limits: DeviceLimits
    ) -> list[Launch]:
        """Return the launches that copy an array, or add it, to another.

        source, target: the layouts of both; from_, to: which arrays they are.
        """
        assert self._elementwise is not None, self.missing
        given, arrays = [source, target], [from_, to]
        if self.adds:
            given, arrays = [target, source, target], [to, from_, to]
        return self._elementwise.launches(target.shape, given, arrays, limits)
