"""Op: what an Apply computes. Subclasses define ``make_node`` and ``perform``, and may define more.

Implementations other than ``perform`` (C kernels, CUDA) are registered with the linkers by op class
and are not methods here.
"""

from __future__ import annotations

from opwise.config import config
from opwise.errors import MethodNotDefined
from opwise.graph import testvalue
from opwise.graph.apply import Apply


class Op:
    """Base class of operations.

    Equality and hash come from ``__props__``, a tuple of attribute names; without it two instances
    differ. ``view_map`` and ``destroy_map`` map output indices to lists of input indices whose
    memory the output is a view of, or overwrites.
    """

    view_map: dict[int, list[int]] = {}
    destroy_map: dict[int, list[int]] = {}
    default_output: int | None = None
    #: what profiles need to know of the Op besides its name: "product" for a product of matrices,
    #: "fused" for one loop over several operations, "" for any other
    profile_kind: str = ""

    def make_node(self, *inputs):
        """Return an Apply of this Op; the default uses ``itypes`` and ``otypes``."""
        itypes = getattr(self, "itypes", None)
        otypes = getattr(self, "otypes", None)
        if itypes is None or otypes is None:
            raise NotImplementedError(
                "You can either define itypes and otypes, or implement make_node "
                f"({type(self)}), which returns Apply(self, inputs, outputs)"
            )
        if len(inputs) != len(itypes):
            raise ValueError(
                f"We expected {len(itypes)} inputs but got {len(inputs)} ({self} of {inputs}): "
                "give one for each of itypes"
            )
        for i, (var, expected) in enumerate(zip(inputs, itypes, strict=True)):
            got = getattr(var, "type", None)
            if got != expected:
                raise TypeError(
                    f"We expected inputs of types '{itypes}' but got types "
                    f"'{[getattr(v, 'type', v) for v in inputs]}' (input {i} of {self}): convert "
                    "it, or define make_node, which may do that"
                )
        return Apply(self, list(inputs), [t() for t in otypes])

    def __call__(self, *inputs, **kwargs):
        """Apply the Op and return its output, or the list of its outputs.

        return_list=True always gives a list. Other keywords go to ``make_node``.
        """
        return_list = kwargs.pop("return_list", False)
        node = self.make_node(*inputs, **kwargs)
        if not isinstance(node, Apply):
            raise TypeError(
                f"{self}.make_node returned {node!r}; it must return an Apply: Apply(self, inputs, "
                "outputs)"
            )
        if config.compute_test_value != "off":
            testvalue.after_make_node(node)
        if self.default_output is not None:
            result = node.outputs[self.default_output]
            return [result] if return_list else result
        if return_list:
            return list(node.outputs)
        return node.outputs[0] if len(node.outputs) == 1 else node.outputs

    #: the test value of a variable; AttributeError where it has none
    _get_test_value = staticmethod(testvalue.get_test_value)

    # --- what subclasses may define -----------------------------------------------------------

    def perform(self, node, inputs, output_storage):
        """Put each output into ``output_storage[i][0]``, which may hold an old value."""
        raise MethodNotDefined("perform", type(self), type(self).__name__)

    def grad(self, inputs, output_gradients):
        """Return the gradient of a scalar cost by each input, given those by each output."""
        raise MethodNotDefined("grad", type(self), type(self).__name__)

    def L_op(self, inputs, outputs, output_gradients):
        """As ``grad``, with the outputs at hand."""
        return self.grad(inputs, output_gradients)

    def R_op(self, inputs, eval_points):
        """Return the derivative of each output in the direction ``eval_points``."""
        raise MethodNotDefined("R_op", type(self), type(self).__name__)

    def do_constant_folding(self, node):
        """Return whether an Apply of constants may be computed when the function is compiled."""
        return True

    def flops(self, inputs, outputs):
        """Return the floating-point operations for shapes of inputs and outputs, None for no array.

        None without an exact count.
        """
        return None

    def traffic(self, node, inputs, outputs):
        """Return (bytes read of each input, bytes written of each output) for layouts in memory.

        inputs, outputs: ``costs.ArrayLayout``, None for no array. None without an exact count.
        """
        return None

    def element_cost(self, n_inputs):
        """Return roughly how many nanoseconds an element takes."""
        return 1.0

    def get_params(self, node):
        """Return the params that ``perform`` takes as a fourth argument, where the Op has any."""
        raise MethodNotDefined("get_params", type(self), type(self).__name__)

    # --- identity -------------------------------------------------------------------------------

    def _props(self):
        return tuple(getattr(self, name) for name in self.__props__)

    def _props_dict(self):
        return {name: getattr(self, name) for name in self.__props__}

    def __hash__(self):
        if not hasattr(self, "__props__"):
            return object.__hash__(self)
        return hash((type(self), self._props()))

    def __eq__(self, other):
        if not hasattr(self, "__props__"):
            return self is other
        return type(self) is type(other) and self._props() == other._props()

    def __ne__(self, other):
        return not self == other

    def __str__(self):
        props = getattr(self, "__props__", None)
        if not props:
            return type(self).__name__
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in props)
        return f"{type(self).__name__}{{{fields}}}"

    def __repr__(self):
        return str(self)


PureOp = Op
CLinkerOp = Op


class OpenMPOp(Op):
    """Legacy base class; cores are used by the generated kernels, not by the Op."""

    def __init__(self, openmp=None):
        self.openmp = openmp


class COp(Op):
    """Legacy base class of Ops whose C code lies in files; ``perform`` must be defined to run."""

    def __init__(self, func_files, func_name=None):
        self.func_files = [func_files] if isinstance(func_files, str) else list(func_files)
        self.func_name = func_name
