"""Op: what an Apply computes. Subclasses define ``make_node`` and ``perform``, and may define more.

Other implementations (C kernels, CUDA) are not methods: linkers register them by class of Op. Only
Ops of users may have methods that return C++ code (``opwise.graph.clinker``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from opwise.config import config
from opwise.errors import GradNotDefined, MethodNotDefined, ROpNotDefined
from opwise.graph import costs, provenance, testvalue, upcalls
from opwise.graph.apply import Apply
from opwise.graph.clinker import CLinkerOp
from opwise.graph.params import ParamsType
from opwise.graph.variable import Var, Variable, get_test_value

#: the values of an Apply's inputs
Values: TypeAlias = Sequence[Any]
#: for each output of an Apply a list, whose only item is its value
Storage: TypeAlias = Sequence[list[Any]]
#: the symbolic shape of a variable: of each dimension an int or a 0-d integer variable; None for a
#: variable without a shape (checkers of types do not know either, as ``Var``)
Lengths: TypeAlias = Any


class _AppliedOp(CLinkerOp):
    """How an Op is applied to variables.

    It is not part of ``Op`` because programs that extend this write ``super(Op, self).__call__``.
    """

    #: index of the output that a call returns; None: the only output, or the list of all
    default_output: int | None = None

    def make_node(self, *inputs: Any) -> Apply:
        """Return an Apply of this Op to ``inputs``."""
        raise NotImplementedError

    @staticmethod
    def add_tag_trace(thing: Any, user_line: int | None = None) -> Any:
        """Return ``thing``: each Apply keeps the lines that made it without this.

        Programs that replace ``__call__`` call it.
        """
        return thing

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Apply the Op and return its output, or the list of its outputs.

        return_list: always return a list (default: False). Passes other keywords to ``make_node``.
        """
        return_list = kwargs.pop("return_list", False)
        if provenance.recording() and provenance.is_of_user(type(self).make_node):
            # as of other Ops, the line is that of the call: not one inside the Op
            with provenance.located(provenance.capture()):
                node = self.make_node(*inputs, **kwargs)
        else:
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


class Op(_AppliedOp):
    """Base class of operations.

    Two instances are equal if their classes and the attributes named by ``__props__`` are equal; an
    Op without ``__props__`` equals only itself.
    """

    #: names of the attributes that define equality and the hash; an Op may leave it undefined
    __props__: tuple[str, ...]
    #: index of an output -> indices of the inputs whose memory it is a view of
    view_map: Mapping[int, Sequence[int]] = {}
    #: index of an output -> indices of the inputs whose memory it overwrites
    destroy_map: Mapping[int, Sequence[int]] = {}
    #: (indices of the inputs that the outputs are if the first input is true, of those if it is
    #: false); empty for an Op that computes with all inputs
    branches: Sequence[Sequence[int]] = ()
    #: whether the first output is the state that the first input is after the Op has used it, as of
    #: a generator of random numbers
    advances_state: bool = False
    #: whether what undoes its step restores the state as a whole, also if later Applys changed it
    saves_state: bool = False
    #: whether ``perform`` takes None for the value of a tensor; otherwise that is an error
    accepts_none: bool = False
    #: how profiles group the Op: "product" for a product of matrices, "fused" for a loop over
    #: several operations, "" for any other
    profile_kind: str = ""
    #: why it runs in Python, in a few words for a profile; "" for the reason that a linker finds
    why_python: str = ""
    #: whether ``c_code`` may run; if not, ``perform`` does
    _op_use_c_code: bool = True

    @property
    def _inner_outputs(self) -> Sequence[Variable]:
        """The outputs of the graph that an Op holds: copies and records take it first."""
        return ()

    def make_node(self, *inputs: Any) -> Apply:
        """Return an Apply of this Op to ``inputs``; the default uses ``itypes`` and ``otypes``."""
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
                "give one input per type of itypes"
            )
        for i, (var, expected) in enumerate(zip(inputs, itypes, strict=True)):
            got = getattr(var, "type", None)
            if got != expected:
                raise TypeError(
                    f"We expected inputs of types '{itypes}' but got types "
                    f"'{[getattr(v, 'type', v) for v in inputs]}' (input {i} of {self}): convert "
                    "it, or define make_node to convert it"
                )
        return Apply(self, list(inputs), [t() for t in otypes])

    _get_test_value = staticmethod(get_test_value)

    # --- what subclasses may define -----------------------------------------------------------

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> Any:
        """Compute the values of the outputs from those of ``inputs``.

        output_storage: one list per output; store the value as its only item, which may hold the
        value of an earlier call.
        """
        raise MethodNotDefined("perform", type(self), type(self).__name__)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        """Return the gradient of a scalar cost by each input, given those by each output.

        An Op whose gradient is its method ``L_op`` is applied again for it.
        """
        if type(self).L_op is not Op.L_op:
            node = self.make_node(*inputs)
            return self.L_op(node.inputs, node.outputs, output_gradients)
        raise GradNotDefined("grad", type(self), type(self).__name__)

    def L_op(
        self, inputs: Sequence[Var], outputs: Sequence[Var], output_gradients: Sequence[Var]
    ) -> Sequence[Var]:
        """Return what ``grad`` returns; this method is also given the outputs."""
        return self.grad(inputs, output_gradients)

    def R_op(self, inputs: Sequence[Var], eval_points: Sequence[Var]) -> Sequence[Var]:
        """Return the derivative of each output in the direction ``eval_points``."""
        raise ROpNotDefined("R_op", type(self), type(self).__name__)

    def do_constant_folding(self, node: Apply) -> bool:
        """Return whether to compute an Apply of constants when the function is compiled."""
        return True

    def flops(self, inputs: costs.Shapes, outputs: costs.Shapes) -> int | None:
        """Return the number of floating-point operations; None if it is not known exactly.

        inputs, outputs: their shapes; None for a value that is not an array.
        """
        return None

    def apply_flops(self, node: Apply, inputs: costs.Shapes, outputs: costs.Shapes) -> int | None:
        """Return ``flops`` of one Apply, for Ops whose constants tell how much they compute."""
        return self.flops(inputs, outputs)

    def traffic(
        self, node: Apply, inputs: costs.Layouts, outputs: costs.Layouts, /
    ) -> costs.Traffic:
        """Return (bytes read of each input, bytes written of each output); None if not known.

        inputs, outputs: their layouts in memory; None for a value that is not an array.
        """
        return None

    def apply_work(self, inputs: costs.Shapes, outputs: costs.Shapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes; None if it is not known.

        For Applys whose ``flops`` are not known, such as loops with exp. The arguments are those of
        ``flops``.
        """
        return None

    def element_cost(self, n_inputs: int) -> float:
        """Return the approximate time per element in nanoseconds."""
        return 1.0

    def get_params(self, node: Apply) -> Any:
        """Return the fourth argument of ``perform``, and ``sub["params"]`` of C++ code.

        The default is for Ops whose ``params_type`` is a ParamsType: it takes the attributes of
        the Op with the names of the fields. Raises MethodNotDefined if the Op has no params.
        """
        params_type = getattr(self, "params_type", None)
        if not isinstance(params_type, ParamsType):
            raise MethodNotDefined("get_params", type(self), type(self).__name__)
        missing = tuple(f for f in params_type.fields if not hasattr(self, f))
        if missing:
            raise AttributeError(
                f"{type(self).__name__}: missing attributes {missing} for ParamsType."
            )
        return params_type.get_params(self)

    # --- thunks: legacy programs may call these methods, or replace them ------------------------

    def prepare_node(
        self, node: Apply, storage_map: Any, compute_map: Any, impl: str | None = None
    ) -> None:
        """Change an Apply before its thunk is made; impl: 'c' or 'py'."""

    def make_thunk(
        self,
        node: Apply,
        storage_map: Mapping[Variable, list[Any]],
        compute_map: Mapping[Variable, list[bool]],
        no_recycling: Sequence[Variable] = (),
        impl: str | None = None,
    ) -> Callable[[], None]:
        """Return a function that runs an Apply on storages, {variable: [value]}.

        impl: 'c', 'py', or None for C if there is C. An Op that replaces this method runs what its
        own method returns.
        """
        return upcalls.make_thunk(node, storage_map, compute_map, impl)

    def make_c_thunk(
        self, node: Apply, storage_map: Any, compute_map: Any, no_recycling: Any = ()
    ) -> Callable[[], None]:
        """Return a thunk that runs C; raises NotImplementedError if the Op has none."""
        return upcalls.make_thunk(node, storage_map, compute_map, "c")

    def make_py_thunk(
        self,
        node: Apply,
        storage_map: Any,
        compute_map: Any,
        no_recycling: Any = (),
        debug: bool = False,
    ) -> Callable[[], None]:
        """Return a thunk that runs ``perform``."""
        return upcalls.make_thunk(node, storage_map, compute_map, "py")

    # --- identity -------------------------------------------------------------------------------

    def _props(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__props__)

    def _props_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__props__}

    def __hash__(self) -> int:
        if not hasattr(self, "__props__"):
            return object.__hash__(self)
        return hash((type(self), self._props()))

    def __eq__(self, other: object) -> bool:
        if not hasattr(self, "__props__"):
            return self is other
        return type(self) is type(other) and self._props() == other._props()

    def __str__(self) -> str:
        props = getattr(self, "__props__", None)
        if not props:
            return type(self).__name__
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in props)
        return f"{type(self).__name__}{{{fields}}}"

    def __repr__(self) -> str:
        return str(self)


PureOp = Op
