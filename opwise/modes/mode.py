"""Mode: an optimizer and a linker, which compile functions; and the tables of their names."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Self

from opwise.config import config, register_mode_name
from opwise.errors import similar
from opwise.graph import provenance, target
from opwise.graph.fgraph import FunctionGraph
from opwise.linkers.base import CLinker, Linker, OpWiseCLinker, PerformLinker, VM_Linker
from opwise.linkers.wrap import DualLinker
from opwise.optimizers.database import Query
from opwise.optimizers.passes import OptimizationProfile
from opwise.optimizers.stages import optdb, optimize

#: linkers by name; a string "module:class" is replaced by an instance at its first use
predefined_linkers: dict[str, Any] = {
    "py": PerformLinker(),
    "c": CLinker(),
    "c|py": OpWiseCLinker(),
    "c|py_nogc": OpWiseCLinker(allow_gc=False),
    "c&py": DualLinker(),
    "vm": VM_Linker(use_cloop=False),
    "cvm": VM_Linker(use_cloop=True),
    "vm_nogc": VM_Linker(allow_gc=False, use_cloop=False),
    "cvm_nogc": VM_Linker(allow_gc=False, use_cloop=True),
    "cupy": "opwise.gpu.linker:CupyLinker",
}

OPT_NONE = Query(include=[])
OPT_MERGE = Query(include=["merge"])
OPT_FAST_RUN = Query(include=["fast_run"])
OPT_FAST_RUN_STABLE = OPT_FAST_RUN.requiring("stable")
OPT_FAST_COMPILE = Query(include=["fast_compile", "fast_compile_gpu"])
OPT_STABILIZE = OPT_FAST_RUN.until(1.5000001)
OPT_O2 = OPT_FAST_COMPILE.including("fusion")
OPT_O3 = OPT_FAST_RUN.excluding("inplace")
OPT_UNSAFE = OPT_FAST_RUN.including("unsafe").excluding("inplace")

for _name, _query in list(globals().items()):
    if _name.startswith("OPT_") and isinstance(_query, Query):
        _query.name = _name

#: optimizers by name
predefined_optimizers: dict[str | None, Any] = {
    None: OPT_NONE,
    "None": OPT_NONE,
    "merge": OPT_MERGE,
    "o4": OPT_FAST_RUN,
    "o3": OPT_O3,
    "o2": OPT_O2,
    "o1": OPT_FAST_COMPILE,
    "unsafe": OPT_UNSAFE,
    "fast_compile": OPT_FAST_COMPILE,
    "fast_run": OPT_FAST_RUN,
    "fast_run_stable": OPT_FAST_RUN_STABLE,
    "stabilize": OPT_STABILIZE,
}


def register_linker(name: str, linker: Any) -> None:
    """Add a linker under a name; raise ValueError if the name is taken."""
    if name in predefined_linkers:
        raise ValueError(f"Linker name already taken: {name}. Choose another.")
    predefined_linkers[name] = linker


def register_optimizer(name: str, opt: Any) -> None:
    """Add an optimizer under a name; raise ValueError if the name is taken."""
    if name in predefined_optimizers:
        raise ValueError(f"Optimizer name already taken: {name}. Choose another.")
    predefined_optimizers[name] = opt


def find_linker(linker: Any) -> Any:
    """Return the linker with a name (None: config.linker); return another object as it is.

    Raises KeyError for an unknown name.
    """
    if linker is None:
        linker = config.linker
    if not isinstance(linker, str):
        return linker
    found = _named(predefined_linkers, linker, "linker")
    if isinstance(found, str):
        found = predefined_linkers[linker] = _load(found)()
    return found


def find_optimizer(optimizer: Any) -> Any:
    """Return the optimizer with a name ('default': config.optimizer); another object as it is.

    Raises KeyError for an unknown name.
    """
    if optimizer == "default":
        optimizer = config.optimizer
    if isinstance(optimizer, str) or optimizer is None:
        return _named(predefined_optimizers, optimizer, "optimizer")
    return optimizer


def _named(table: Mapping[Any, Any], name: str | None, what: str) -> Any:
    if name not in table:
        names = sorted(each for each in table if isinstance(each, str))
        advice = similar(str(name), names)
        if what == "linker" and name in predefined_optimizers:
            advice = (
                f" {name!r} is an optimizer, and the linker comes first: Mode(linker, optimizer)."
            )
        raise KeyError(f"no {what} is named {name!r}; known {what}s: {', '.join(names)}.{advice}")
    return table[name]


#: names and tags of rewrites that some Theano had and opwise does not; naming them is no mistake
_LEGACY_TAGS = frozenset(
    """
    Canonizer CheckStackTrace OpRemove Print1.21 Print1.51 UnShapeOpt all_pushout_opt batchnorm_opts
    blas_c c_blas_destructive constant_folding_for_scan2 conv3d2d conv_dnn conv_fft conv_fft_full
    conv_fft_valid conv_gemm conv_groupopt conv_meta conv_metaopt conv_opts cudnn cxx_only dnn
    gpu_after_fusion gpu_elemwise_fusion gpu_inplace_opt gpu_local_optimizations gpu_opt gpuarray
    gpuarray_opt inplace_allocempty inplace_elemwise inplace_ger inplace_gpu_elemwise_opt
    local_abstractconv3d_gemm local_abstractconv3d_gradinputs local_abstractconv3d_gradinputs_gemm
    local_abstractconv3d_gradweight_gemm local_abstractconv3d_gradweights_gemm
    local_abstractconv_check local_abstractconv_cudnn local_abstractconv_dnn local_abstractconv_gemm
    local_abstractconv_gemmm local_abstractconv_gi_cudnn local_abstractconv_gi_dnn
    local_abstractconv_gradinputs local_abstractconv_gradinputs_gemm
    local_abstractconv_gradweight_gemm local_abstractconv_gradweights_gemm
    local_abstractconv_gw_cudnn local_abstractconv_gw_dnn local_conv2d_cpu
    local_conv2d_gradinputs_cpu local_conv2d_gradweight_cpu local_conv_dnn
    local_conv_dnn_alternative local_conv_fft_full local_conv_fft_valid local_conv_gemm
    local_dnn_convi_output_merge local_gpu_conv local_inplace_incsubtensor1 local_inv_canon
    local_pool_dnn local_pool_dnn_alternative local_pool_dnn_grad_stride local_softmax_dnn
    local_useless_composite local_useless_tile local_useless_topk make_scipy_blas_destructive
    no_cpu_op pool_opts random scan_eqopt1 scan_eqopt2 scan_pushout_add scipy_blas sparse stable
    """.split()
)


def _warn_of_unknown(tags: Iterable[Any], where: str, registered: Iterable[str] = ()) -> None:
    """Warn of tags that no rewrite has. registered: the names of rewrites that the mode adds."""
    unknown = [tag for tag in tags if isinstance(tag, str) and tag and tag not in _LEGACY_TAGS]
    if not unknown:
        return
    words = optdb.vocabulary() | set(registered)
    if not words.issuperset(unknown):
        importlib.import_module("opwise.loops")  # its rules are there when it is loaded
        words |= optdb.vocabulary()
    effect = "no rewrite runs" if where.endswith("requiring") else "it has no effect"
    for tag in unknown:
        if tag not in words:
            provenance.warn(
                f"No rewrite has the name or tag {tag!r} given to {where}: {effect}."
                f"{similar(tag, words | _LEGACY_TAGS)}"
            )


class Mode:
    """An optimizer and a linker.

    linker: a linker or the name of one (default: config.linker). optimizer: the name of an
    optimizer, a Query, an optimizer, or a function of the graph (default: config.optimizer); None
    for no rewrites.
    """

    #: whether functions can be profiled
    has_profiles = True
    #: whether the mode times the calls of every function
    times_calls = False

    def __init__(self, linker: Any = None, optimizer: Any = "default") -> None:
        self.provided_linker = linker
        self.provided_optimizer = optimizer
        self._set(linker, optimizer)

    def _set(self, linker: Any, optimizer: Any) -> None:
        self.linker = find_linker(linker)
        self._optimizer = find_optimizer(optimizer)
        if isinstance(optimizer, str | type(None)):
            self.provided_optimizer = self._optimizer
        self.call_time = 0.0
        self.fn_time = 0.0
        self.optimizer_time = 0.0
        self.linker_time = 0.0

    @property
    def optimizer(self) -> Any:
        """The optimizer; a Query finds its rewrites anew at each access."""
        if isinstance(self._optimizer, Query):
            return optdb.query(self.effective_query)
        return self._optimizer

    def get_linker_optimizer(self, linker: Any, optimizer: Any) -> tuple[Any, Any]:
        """Return the linker and the optimizer that texts name; others stay as they are."""
        return find_linker(linker), find_optimizer(optimizer)

    @property
    def used_linker(self) -> Any:
        """The linker for functions: with the flag device=cuda, the device's replaces c|py.

        ``mode.excluding("gpu")`` keeps the CPU's.
        """
        linker, query = self.linker, self._optimizer
        device = target.device_name()
        if device == "cpu" or type(linker) not in (OpWiseCLinker, VM_Linker):
            return linker
        if isinstance(query, Query) and "gpu" in query.exclude:
            return linker
        return _load("opwise.gpu.linker:under_flag")(linker)

    @property
    def effective_query(self) -> Query:
        """The query, with the tags that the linker requires, without those that it cannot run."""
        linker = self.used_linker
        query: Query = self._optimizer
        required = getattr(linker, "required", ())
        incompatible = getattr(linker, "incompatible", ())
        if required:
            query = query.including(*required)
        if incompatible:
            query = query.excluding(*incompatible)
        return query

    def optimize(self, fgraph: FunctionGraph) -> OptimizationProfile:
        """Rewrite a graph in place; return the record of the rewrites and their times."""
        how = self.effective_query if isinstance(self._optimizer, Query) else self._optimizer
        if not isinstance(how, Query) and not hasattr(how, "optimize") and not callable(how):
            raise TypeError(f"'{type(how).__name__}' object is not callable")
        return optimize(fgraph, how)

    def bound_linker(self, fgraph: FunctionGraph) -> Any:
        """Return a linker that has accepted a graph.

        Under FAST_COMPILE it calls no C compiler, to compile quickly, except for Ops of users that
        have C code alone.
        """
        used = self.used_linker
        if not hasattr(used, "accept"):
            raise ValueError(
                "'linker' parameter of FunctionMaker should be a Linker with an accept method or "
                f"one of {list(predefined_linkers)}."
            )
        if isinstance(used, Linker):
            used = used.clone(generate_kernels=self.generates_kernels)
        return used.accept(fgraph)

    @property
    def generates_kernels(self) -> bool:
        """Whether a C compiler makes kernels for its functions."""
        query = self._optimizer
        return not (isinstance(query, Query) and "fast_compile" in query.include)

    def on_compiled(self, function: Any) -> None:
        """Called with every function after it is compiled under this mode."""

    def inside(self) -> Mode:
        """Return the mode under which graphs inside Ops of a function are compiled."""
        return self

    # --- variants ---------------------------------------------------------------------------------

    def clone(
        self, link_kwargs: Mapping[str, Any] | None = None, optimizer: Any = "", **kwargs: Any
    ) -> Self:
        """Return a copy of the mode.

        link_kwargs: arguments for the ``clone`` of its linker. optimizer: that of the copy
        (default: the same).
        """
        new = self._variant(self._optimizer if optimizer == "" else optimizer)
        if link_kwargs:
            new.linker = new.provided_linker = new.linker.clone(**link_kwargs)
        return new

    def _variant(self, optimizer: Any) -> Self:
        new = copy.copy(self)
        new.provided_optimizer = optimizer
        new._set(self.linker, optimizer)
        new.provided_linker = self.provided_linker
        return new

    def _query(self, method: str, tags: Iterable[Any], warn: bool = False) -> Self:
        if not isinstance(self._optimizer, Query):
            raise AttributeError(
                f"'{type(self._optimizer).__name__}' object has no attribute '{method}': tags "
                "select rewrites only if the optimizer of the Mode is a name, such as 'fast_run', "
                "or a Query"
            )
        if warn:
            registered = [opt.name for opt, _ in self._optimizer.extra_optimizations if opt.name]
            _warn_of_unknown(tags, f"mode.{method}", registered)
        return self._variant(getattr(self._optimizer, method)(*tags))

    def including(self, *tags: str) -> Self:
        """Return a mode that also runs the rewrites with one of these tags."""
        return self._query("including", tags, warn=True)

    def excluding(self, *tags: str) -> Self:
        """Return a mode without the rewrites that have one of these tags."""
        return self._query("excluding", tags, warn=True)

    def requiring(self, *tags: str) -> Self:
        """Return a mode with only those rewrites that have all of these tags."""
        return self._query("requiring", tags, warn=True)

    def register(self, *optimizations: tuple[Any, float]) -> Self:
        """Return a mode with further rewrites, given as (optimizer, position) pairs."""
        return self._query("register", optimizations)

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}(linker = {self._linker_text()}, "
            f"optimizer = {self.provided_optimizer})"
        )

    def _linker_text(self) -> str:
        return self.provided_linker if isinstance(self.provided_linker, str) else str(self.linker)

    def __getstate__(self) -> dict[str, Any]:
        return {"linker": self.provided_linker, "optimizer": self.provided_optimizer}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.provided_linker = state["linker"]
        self.provided_optimizer = state["optimizer"]
        self._set(state["linker"], state["optimizer"])


FAST_COMPILE = Mode("c|py", "fast_compile")
FAST_RUN = Mode("c|py", "fast_run")
#: modes by name; a string "module:function" is replaced by its result at its first use
predefined_modes: dict[str, Any] = {
    "FAST_COMPILE": FAST_COMPILE,
    "FAST_RUN": FAST_RUN,
    "PROFILE_MODE": "opwise.modes.profilemode:registered_mode",
    "DEBUG_MODE": "opwise.modes.debugmode:registered_mode",
}
#: names for which ``get_mode`` returns a new mode each time
_CLASSES = {
    "Mode": "opwise.modes.mode:default_class",
    "ProfileMode": "opwise.modes.profilemode:mode_at_exit",
    "DebugMode": "opwise.modes.debugmode:DebugMode",
    "NanGuardMode": "opwise.modes.nanguardmode:NanGuardMode",
}


def default_class() -> Mode:
    """Return a new Mode of config.linker and config.optimizer."""
    return Mode()


def _load(path: str) -> Any:
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def register_mode(name: str, mode: Any) -> None:
    """Add a mode under a name; raise ValueError if the name is taken."""
    if name in predefined_modes:
        raise ValueError(f"Mode name already taken: {name}. Choose another.")
    predefined_modes[name] = mode
    register_mode_name(name)


def get_mode(mode: Any) -> Any:
    """Return the mode with a name; the default mode for None; another object as it is."""
    if mode is None:
        return get_default_mode()
    if not isinstance(mode, str):
        return mode
    if mode in _CLASSES:
        return _load(_CLASSES[mode])()
    found = predefined_modes.get(mode)
    if found is None:
        names = dict.fromkeys((*predefined_modes, *_CLASSES))
        raise Exception(
            f"No predefined mode exist for string: {mode} (known modes: {', '.join(names)})."
            f"{similar(mode, names)}"
        )
    if isinstance(found, str):
        found = predefined_modes[mode] = _load(found)()
    return found


def name_of(mode: Any) -> str:
    """Return the name that a mode is registered under, or that of its class."""
    for name, known in predefined_modes.items():
        if known is mode or (type(known) is type(mode) is Mode and _parts(known) == _parts(mode)):
            return name
    return type(mode).__name__


def _parts(mode: Mode) -> tuple[Any, str]:
    """Return what two modes that do the same have in common."""
    return type(mode.linker), str(mode.provided_optimizer)


#: default modes by the flags that they depend on
_default_cache: dict[tuple[Any, ...], Any] = {}


def get_default_mode() -> Any:
    """Return the mode of the current flags: mode, linker, optimizer and the optimizer_* tags."""
    if not isinstance(config.mode, str):
        return config.mode
    key = (
        config.mode, config.linker, config.optimizer, config.optimizer_excluding,
        config.optimizer_including, config.optimizer_requiring,
    )  # fmt: skip
    found = _default_cache.get(key)
    if found is None:
        mode = get_mode(config.mode)
        for method, tags in (
            ("excluding", config.optimizer_excluding),
            ("including", config.optimizer_including),
            ("requiring", config.optimizer_requiring),
        ):
            if tags:
                tags = tags.split(":")
                _warn_of_unknown(tags, f"the flag optimizer_{method}")
                mode = mode._query(method, tags)
        found = _default_cache[key] = mode
    return found
