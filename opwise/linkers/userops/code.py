"""The compiled C++ code of an Apply, and errors that name the Op and the lines of its code."""

from __future__ import annotations

from typing import Any

from opwise.errors import CompileError, MethodNotDefined, with_message
from opwise.graph import provenance
from opwise.graph.apply import Apply, NoParams
from opwise.graph.clinker import CLinkerOp
from opwise.graph.op import Op
from opwise.linkers import cbuild, opwise_c
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import ObjectStep, c_lowering
from opwise.linkers.userops import recipe, source
from opwise.linkers.userops.compilererrors import first_errors, where
from opwise.linkers.userops.python import makes_thunks, prepare, runs_in_python


def lower(node: Apply, kernels: Kernels) -> ObjectStep | None:
    """Return the step that runs the ``c_code`` of an Apply, or None if ``perform`` is to run.

    An Op without ``perform`` is compiled even if the mode compiles nothing: nothing else can run
    it. Raises NotImplementedError if there is neither ``perform`` nor a compiler.
    """
    op = node.op
    if makes_thunks(op) or (runs_in_python(op) and not kernels.generate):
        return None
    return lower_c_code(node, kernels)


def lower_c_code(node: Apply, kernels: Kernels) -> ObjectStep | None:
    """Return the step that runs the ``c_code`` of an Apply; None if it has ``perform`` instead."""
    op = node.op
    has_perform = runs_in_python(op)
    if has_perform and (not op._op_use_c_code or _is_unready(node)):
        return None
    prepare(node, {}, {}, "c")
    try:
        code = UserCode(node)
    except (MethodNotDefined, NotImplementedError) as e:
        if has_perform:
            return None
        raise NotImplementedError(
            f"{op} cannot produce C code: {e} It has no perform either.{_made_at(node)}"
        ) from e
    if cbuild.cxx_compiler() is None:
        if has_perform:
            return None
        raise NotImplementedError(
            f"{op} has C++ code but no perform, so it needs a C++ compiler. "
            f"{cbuild.no_compiler() or 'There is none (no g++ or clang++ is on the PATH)'}: "
            f"install one, or define perform.{_made_at(node)}"
        )
    kernels.add(code)
    return ObjectStep(code)


def _is_unready(node: Apply) -> bool:
    """Return whether the code of an Op must not run because it does not know float16."""
    has_half = any(
        getattr(var.type, "dtype", "") == "float16" for var in (*node.inputs, *node.outputs)
    )
    return has_half and not getattr(node.op, "_f16_ok", False)


def _made_at(node: Apply) -> str:
    return "".join(map(provenance.made_by, node.origins[:1]))


#: never unloaded: objects that the code has made may need its functions as long as they live
_loaded: set[opwise_c.Library] = set()


class UserCode:
    """The C++ code of an Apply, compiled between ``start`` and ``finish``.

    owner: the operation whose code it has (default: the Op). Raises MethodNotDefined if a method
    that is needed is not defined.
    """

    def __init__(self, node: Apply, owner: Op | None = None) -> None:
        self.node = node
        op = node.op
        self.owner: Op = owner or op
        params = node.run_params()
        self.params = params if params is NoParams else op.params_type.filter(params)
        self.source = source.of_apply(node, params)
        self.library: opwise_c.Library | None = None
        self._build: cbuild.Build | None = None

    def start(self, builds: dict[str, cbuild.Build]) -> None:
        """Start to compile, if the cache has no library of this code.

        builds: by key, those that were started before, which equal code shares.
        """
        op, text = self.node.op, self.source.text
        versions = [op.c_code_cache_version_apply(self.node)]
        versions += [owner.c_code_cache_version() for owner in self.source.owners]
        how = recipe.of_owners(self.source.owners, text, versions)
        key = how.key(text)
        if key not in builds:
            builds[key] = cbuild.Build(text, how)
        self._build = builds[key]

    def finish(self) -> cbuild.BuildReport:
        """Wait for the compiler; raises CompileError with the lines in which it found errors."""
        assert self._build is not None
        try:
            self.library, report = self._build.result()
        except CompileError as e:
            raise CompileError(self._explained(e), messages=e.messages) from e
        _loaded.add(self.library)
        return report

    def bind(self) -> opwise_c.ObjectCode:
        """Return an instance for one step; raises what the user's initialization raises."""
        node = self.node
        assert self.library is not None
        params = None if self.params is NoParams else self.params
        try:
            return opwise_c.ObjectCode(self.library, len(node.inputs), len(node.outputs), params)
        except Exception as e:  # of any class of the user
            text = f"It was raised by the initialization of the C++ code of {self._who()}."
            raise with_message(e, f"{e}\n{text}{_made_at(node)}", text) from e

    def _who(self) -> str:
        return f"{self.owner} ({where(type(self.owner))})"

    def _explained(self, e: CompileError) -> str:
        return (
            f"The C++ code of {self._who()} does not compile:\n"
            f"{first_errors(e, self.source.parts)}\n"
            f"Correct these lines, which its methods return.\n"
            f"Apply: {self.node}{_made_at(self.node)}"
        )


def why_python(node: Apply) -> str:
    """Return why an Op with ``c_code`` runs ``perform``, in a few words for a profile."""
    op: Any = node.op
    if makes_thunks(op):
        return "the Op makes its own thunk"
    if not op._op_use_c_code:
        return "_op_use_c_code is False"
    if _is_unready(node):
        return "its C++ code does not support float16 (_f16_ok)"
    try:
        source.of_apply(node, node.run_params())
    except MethodNotDefined as e:
        return f"{e.args[-1]} does not define {e.args[0]}" if len(e.args) == 3 else str(e)
    except NotImplementedError as e:
        return f"its C++ code does not support this: {e}"
    return "no C++ compiler is used"


class _CCode:
    """The lowering of Ops that define ``c_code``."""

    def __call__(self, node: Apply, kernels: Kernels) -> ObjectStep | None:
        return lower(node, kernels)

    def why_python(self, node: Apply) -> str:
        return why_python(node)


c_lowering(CLinkerOp, limited=False, any_type=True)(_CCode())
