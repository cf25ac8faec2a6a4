"""The tables of legacy names: which modules of opwise have the names of which module of Theano."""

from __future__ import annotations

_GRAPH = ("variable", "apply", "op", "type", "fgraph", "features", "traversal", "null", "testvalue",
          "clinker", "enums", "params", "externalop")  # fmt: skip
_OPTIMIZERS = ("rule", "database", "passes", "navigators", "pattern", "merge", "stages")
_TENSOR_RULES = ("rule", "stages", "passes", "shapefeature", "folding", "rules.blas",
                 "rules.canonicalize", "rules.fusion", "rules.inplace", "rules.joins",
                 "rules.reductions", "rules.requested", "rules.shape", "rules.specialize",
                 "rules.stabilize", "rules.subtensor")  # fmt: skip
_NNET_RULES = ("rules.nnet", "rules.reductions", "rules.stabilize")


def _all(package, names):
    return tuple(f"opwise.{package}.{name}" for name in names)


_GOF = (
    *_all("graph", _GRAPH),
    *_all("optimizers", _OPTIMIZERS),
    "opwise.linkers.base",
    "opwise.linkers.wrap",
    "opwise.linkers.storage",
    "opwise.scalar.cdata",
    "opwise.errors",
)
_COMPILE = (
    *_all("compile", ("function", "maker", "executable", "io", "shared", "construct")),
    "opwise.compile.fromgraph",
    "opwise.graph.fromfunction",
    "opwise.legacy.module",
    *_all("modes", ("mode", "profilemode", "debugmode", "monitormode")),
    "opwise.profiling.stats",
    "opwise.optimizers.stages",
    "opwise.optimizers.passes",
    "opwise.tensor.convert",
    "opwise.tensor.shape",
    "opwise.names.ccode",
    "opwise.errors",
)

#: modules of theano: name -> the modules with its names; of equal names the first one counts
_NLINALG = _all("tensor.linalg", ("products", "inverse", "factor", "eigen"))
_SLINALG = _all("tensor.linalg", ("systems", "factor", "eigen", "products", "operands"))
_SPARSE = (*_all("sparse", ("variable", "type", "vectors", "compressed", "convert", "products")),
           "opwise.sparse")  # fmt: skip

MADE = {
    "theano": ("opwise", "opwise.names.logs"),
    "theano.d3viz": ("opwise.profiling.html.graphpage",),
    "theano.d3viz.d3viz": ("opwise.profiling.html.graphpage", "opwise.graph.dotgraph"),
    "theano.d3viz.formatting": ("opwise.graph.dotgraph",),
    "theano.errors": ("opwise.errors",),
    "theano.gradient": ("opwise.gradient",),
    "theano.scalar": ("opwise.scalar", "opwise.names.scalar"),
    "theano.sandbox.cuda": ("opwise.names.sandbox_cuda", "opwise.gpu.legacy"),
    "theano.sandbox.cuda.basic_ops": ("opwise.names.sandbox_cuda", "opwise.gpu.legacy"),
    "theano.sandbox.cuda.blas": ("opwise.names.sandbox_cuda_blas",),
    "theano.sandbox.cuda.dnn": ("opwise.names.sandbox_cuda_dnn", "opwise.names.cudnn",
                                "opwise.gpu.legacy"),
    "theano.sandbox.cuda.fftconv": ("opwise.names.fftconv",),
    "theano.sandbox.cuda.var": ("opwise.names.sandbox_cuda",),
    "theano.gpuarray": ("opwise.gpu.legacy",),
    "theano.gpuarray.basic_ops": ("opwise.names.gpuarray", "opwise.gpu.legacy"),
    "theano.gpuarray.dnn": ("opwise.names.cudnn", "opwise.gpu.legacy"),
    "theano.gof.compilelock": ("opwise.names.compilelock",),
    "theano.compile.debugmode": ("opwise.modes.debugmode",),
    "theano.compile.mode": ("opwise.modes.mode", "opwise.optimizers.passes"),
    "theano.compile.module": ("opwise.legacy.module", "opwise.legacy.components",
                              "opwise.legacy.structures"),
    "theano.compile.monitormode": ("opwise.modes.monitormode",),
    "theano.compile.nanguardmode": ("opwise.modes.nanguardmode",),
    "theano.compile.profilemode": ("opwise.modes.profilemode",),
    "theano.compile.profiling": ("opwise.profiling.stats",),
    "theano.compat": ("opwise.names.py2",),
    "theano.compat.python2x": ("opwise.names.py2",),
    "theano.compat.six": ("opwise.names.py2",),
    "theano.compat.six.moves": ("opwise.names.py2",),
    "theano.compile": (*_COMPILE, "opwise.names.aliasing"),
    "theano.compile.builders": ("opwise.compile.fromgraph", *_COMPILE),
    "theano.compile.function": _COMPILE,
    "theano.compile.function_module": (*_COMPILE, "opwise.names.aliasing"),
    "theano.compile.io": ("opwise.compile.io",),
    "theano.compile.ops": ("opwise.graph.fromfunction", "opwise.tensor.convert",
                           "opwise.names.ccode", "opwise.tensor.shape", "opwise.compile.shared"),
    "theano.compile.pfunc": _COMPILE,
    "theano.compile.sharedvalue": ("opwise.compile.shared",),
    "theano.configdefaults": ("opwise.config",),
    "theano.configparser": ("opwise.config",),
    "theano.gof": _GOF,
    "theano.gof.cc": _GOF,
    "theano.gof.destroyhandler": _GOF,
    "theano.gof.fg": _GOF,
    "theano.gof.graph": ("opwise.names.aliasing", *_GOF),
    "theano.gof.link": _GOF,
    "theano.gof.null_type": ("opwise.graph.null",),
    "theano.gof.op": _GOF,
    "theano.gof.opt": ("opwise.names.premerge", *_GOF),
    "theano.gof.optdb": _GOF,
    "theano.gof.params_type": ("opwise.graph.params", "opwise.graph.enums"),
    "theano.gof.sched": _GOF,
    "theano.gof.toolbox": (*_GOF, "opwise.names.printlistener"),
    "theano.gof.type": _GOF,
    "theano.gof.utils": ("opwise.names.gof_utils", *_GOF),
    "theano.gof.vm": _GOF,
    "theano.gof.wrapper": ("opwise.graph.params",),
    "theano.misc": (),
    "theano.misc.frozendict": ("opwise.names.frozendict",),
    "theano.misc.pkl_utils": ("opwise.py2.archives",),
    "theano.misc.strutil": ("opwise.names.strutil",),
    "theano.misc.safe_asarray": ("opwise.names.safe_asarray",),
    "theano.printing": ("opwise.graph.printing", "opwise.graph.drawing", "opwise.tensor.printers",
                        "opwise.names.drawing"),
    "theano.sandbox": (),
    "theano.sandbox.multinomial": ("opwise.tensor.random.multinomial",),
    "theano.sandbox.rng_mrg": ("opwise.tensor.random.mrg", "opwise.compile.mrg_streams"),
    "theano.ifelse": ("opwise.tensor.ifelse", "opwise.optimizers.rules.conditions"),
    "theano.scan_module": ("opwise.loops",),
    "theano.scan_module.scan": ("opwise.loops.build",),
    "theano.scan_module.scan_checkpoints": ("opwise.loops.checkpoints",),
    "theano.scan_module.scan_op": ("opwise.loops.op",),
    "theano.scan_module.scan_utils": ("opwise.loops.returned", "opwise.names.scan_utils"),
    "theano.scan_module.scan_views": ("opwise.loops.views",),
    "theano.scalar.basic": ("opwise.scalar", "opwise.names.scalar"),
    "theano.sandbox.fourier": ("opwise.tensor.linalg.frames",),
    "theano.sandbox.linalg": (*_NLINALG, *_SLINALG, "opwise.tensor.linalg.hint"),
    "theano.sandbox.linalg.ops": (*_NLINALG, *_SLINALG, "opwise.tensor.linalg.hint",
                                  "opwise.optimizers.rules.linalg", "opwise.optimizers.rule",
                                  "opwise.optimizers.stages", "opwise.optimizers.passes"),
    "theano.sandbox.solve": _SLINALG,
    "theano.sandbox.softsign": ("opwise.tensor.nnet.nnet",),
    "theano.scalar.basic_scipy": ("opwise.scalar",),
    "theano.scalar.basic_sympy": ("opwise.scalar",),
    "theano.tensor": ("opwise.tensor", "opwise.names.dtypes"),
    "theano.sparse": ("opwise.sparse", "opwise.compile.sparseshared"),
    "theano.sparse.basic": (*_SPARSE, "opwise.names.sparse"),
    "theano.sparse.opt": ("opwise.optimizers.rules.sparse", *_SPARSE),
    "theano.sparse.sandbox": (),
    "theano.sparse.sandbox.sp": ("opwise.sparse.convolution", *_SPARSE),
    "theano.sparse.sandbox.sp2": ("opwise.sparse.sampling", "opwise.optimizers.rules.sparse",
                                  *_SPARSE),
    "theano.sparse.sandbox.truedot": _SPARSE,
    "theano.sparse.sharedvar": ("opwise.compile.sparseshared",),
    "theano.sparse.type": ("opwise.sparse.type",),
    "theano.sparse.utils": ("opwise.sparse.variable",),
    "theano.tensor.basic": ("opwise.tensor", "opwise.tensor.variable", "opwise.tensor.creation",
                            "opwise.tensor.knownvalues", "opwise.tensor.deprecated",
                            "opwise.errors", "opwise.names.dtypes"),
    "theano.tensor.blas": ("opwise.names.blas", "opwise.tensor.blas",
                           "opwise.optimizers.rules.blas", "opwise.optimizers.rule"),
    "theano.tensor.blas_c": ("opwise.tensor.blas",),
    "theano.tensor.elemwise": ("opwise.tensor.elemwise", "opwise.tensor.dimshuffle",
                               "opwise.tensor.reduce"),
    "theano.tensor.extra_ops": ("opwise.tensor.extra_ops", "opwise.tensor"),
    "theano.tensor.inplace": ("opwise.names.inplace",),
    "theano.tensor.fft": ("opwise.tensor.linalg.fft",),
    "theano.tensor.fourier": ("opwise.tensor.linalg.fourier",),
    "theano.tensor.nlinalg": (*_NLINALG, "opwise.names.blas"),
    "theano.tensor.nnet": ("opwise.tensor.nnet", "opwise.optimizers.rules.nnet",
                           "opwise.optimizers.rules.stabilize", "opwise.tensor.conv.functions"),
    "theano.tensor.nnet.abstract_conv": ("opwise.names.conv", "opwise.tensor.conv.functions",
                                         "opwise.tensor.conv.ops", "opwise.tensor.conv.shapes"),
    "theano.tensor.nnet.conv3d2d": ("opwise.tensor.conv.conv3d2d",),
    "theano.tensor.nnet.neighbours": ("opwise.tensor.conv.neighbours",),
    "theano.tensor.nnet.spatialtf": ("opwise.tensor.conv.spatial",),
    "theano.tensor.nnet.bn": ("opwise.tensor.nnet.bn", "opwise.tensor.nnet.bnops",
                              "opwise.optimizers.rules.nnet", "opwise.tensor.nnet"),
    "theano.tensor.nnet.nnet": ("opwise.tensor.nnet.nnet", "opwise.tensor.nnet",
                                *_all("optimizers", _NNET_RULES), "opwise.graph.null",
                                "opwise.tensor.nnet.blocksparse", "opwise.tensor.type"),
    "theano.tensor.nnet.sigm": ("opwise.tensor.nnet.sigm", "opwise.tensor.nnet", "opwise.scalar",
                                "opwise.optimizers.rules.stabilize",
                                "opwise.optimizers.rules.requested", "opwise.tensor.type"),
    "theano.tensor.nnet.blocksparse": ("opwise.tensor.nnet.blocksparse",),
    "theano.tensor.nnet.ctc": ("opwise.tensor.nnet.ctc", "opwise.optimizers.rules.blocks"),
    "theano.tensor.opt": (*_all("optimizers", _TENSOR_RULES), "opwise.tensor.creation",
                          "opwise.tensor.knownvalues", "opwise.tensor.join",
                          "opwise.tensor.assertion", "opwise.tensor.shape"),
    "theano.tensor.opt_uncanonicalize": _all("optimizers.rules", ("shape", "subtensor",
                                                                  "reductions")),
    "theano.tensor.io": ("opwise.tensor.io",),
    "theano.tensor.randomstreams": ("opwise.compile.streams",),
    "theano.tensor.raw_random": ("opwise.tensor.random.raw_random",),
    "theano.tensor.shared_randomstreams": ("opwise.compile.streams",),
    "theano.tensor.signal.downsample": ("opwise.tensor.conv.pool",),
    "theano.tensor.signal.pool": ("opwise.tensor.conv.pool",),
    "theano.tensor.sharedvar": ("opwise.compile.shared",),
    "theano.tensor.slinalg": _SLINALG,
    "theano.tensor.sort": ("opwise.tensor.sort",),
    "theano.tensor.subtensor": ("opwise.tensor.subtensor", "opwise.tensor.advanced_subtensor",
                                "opwise.tensor.slices", "opwise.tensor"),
    "theano.tensor.type": ("opwise.tensor.type",),
    "theano.tensor.type_other": ("opwise.tensor.slices", "opwise.graph.type"),
    "theano.tensor.utils": ("opwise.tensor",),
    "theano.tensor.var": ("opwise.tensor.operators", "opwise.tensor.variable"),
    "theano.tensor.xlogx": ("opwise.tensor.functions",),
    "theano.tests": (),
    "theano.tests.breakpoint": ("opwise.tensor.breakpoint",),
    "theano.tests.record": ("opwise.names.replay",),
    "theano.tests.unittest_tools": ("opwise.names.unittest_tools",),
    "theano.tests.disturb_mem": ("opwise.names.unittest_tools",),
    "theano.typed_list": ("opwise.tensor.lists",),
    "theano.typed_list.basic": ("opwise.tensor.lists",),
    "theano.typed_list.opt": ("opwise.optimizers.rules.lists", "opwise.tensor.lists"),
    "theano.typed_list.type": ("opwise.tensor.lists",),
    "theano.updates": ("opwise.compile.updates",),
    "theano.version": ("opwise.names.release",),
}  # fmt: skip


#: modules that are not attributes of their parent, which has a function of the same name
HIDDEN = frozenset(
    """
    theano.compile.function theano.compile.pfunc theano.d3viz.d3viz theano.sandbox.linalg.kron
    theano.sandbox.scan_module.scan theano.scan_module.scan theano.scan_module.scan_checkpoints
    theano.tensor.inc_code theano.tensor.nnet.Conv3D theano.tensor.nnet.ConvGrad3D
    theano.tensor.nnet.ConvTransp3D theano.tensor.sort theano.tensor.var theano.tests.main
    """.split()
)

#: single names that opwise has elsewhere or spells differently
NAMES = {
    "theano.scan_module.scan_utils.equal_computations": (
        "opwise.graph.traversal.equal_computations"
    ),
    "theano.scan_module.scan_utils.clone": "opwise.compile.construct.clone",
    "theano.compile.pfunc": "opwise.names.pfunc.pfunc",
    "theano.sparse_grad": "opwise.tensor.subtensor.sparse_grad",
    "theano.compile.function.function_dump": "opwise.names.function_dump.function_dump",
    "theano.compile.function_module.orig_function": "opwise.compile.function.function",
    "theano.get_scalar_constant_value": "opwise.tensor.get_scalar_constant_value",
    "theano.gof.cmodule.get_lib_extension": "opwise.names.ccode.get_lib_extension",
    "theano.gof.graph.Node": "opwise.graph.variable.Tagged",
    "theano.misc.cpucount.cpuCount": "os.cpu_count",
    "theano.misc.may_share_memory.may_share_memory": (
        "opwise.names.may_share_memory.may_share_memory"
    ),
    "theano.misc.strutil.renderString": "opwise.names.strutil.render_string",
    "theano.gof.opt.check_stack_trace": "opwise.names.stacktrace.check_stack_trace",
    "theano.tensor.blas.local_gemm_to_ger": "opwise.optimizers.rules.blas.local_gemm_to_gemv",
    "theano.tensor.opt.add_canonizer": "opwise.names.canonizers.add_canonizer",
    "theano.tensor.opt.mul_canonizer": "opwise.names.canonizers.mul_canonizer",
    "theano.tensor.opt.topo_constant_folding": "opwise.optimizers.folding.constant_folding",
    "theano.tensor.utils.hash_from_ndarray": "opwise.names.gof_utils.hash_from_ndarray",
    "theano.tensor.basic.isinf_": "opwise.names.scalar.isinf_",
    "theano.tensor.basic.isnan_": "opwise.names.scalar.isnan_",
    "theano.tensor.basic._dot": "opwise.tensor.dot._dot",
    "theano.tensor.utils.shape_of_variables": "opwise.names.shapes.shape_of_variables",
    "theano.scalar.basic_scipy.imported_scipy_special": "opwise.names.scipy.imported_scipy_special",
    "theano.sparse.type.imported_scipy": "opwise.names.scipy.imported_scipy",
    "theano.tensor.nnet.abstract_conv2d": "opwise.names.conv.conv2d",
    "theano.tensor.nnet.abstract_conv.imported_scipy_signal": (
        "opwise.names.scipy.imported_scipy_signal"
    ),
    "theano.tensor.nnet.abstract_conv.BaseAbstractConv2d": (
        "opwise.tensor.conv.ops.BaseAbstractConv"
    ),
    "theano.tensor.nnet.conv.conv2d": "opwise.names.conv.old_conv2d",
    "theano.tensor.nnet.conv.ConvOp": "opwise.tensor.conv.older.ConvOp",
    "theano.tensor.nnet.Conv3D.computeH": "opwise.names.conv.computeH",
    "theano.tensor.nnet.ConvTransp3D.computeR": "opwise.names.conv.computeR",
    "theano.sandbox.cuda.rng_curand.CURAND_RandomStreams": (
        "opwise.compile.mrg_streams.MRG_RandomStreams"
    ),
    "theano.gpuarray.neighbours.GpuImages2Neibs": "opwise.tensor.conv.neighbours.Images2Neibs",
    "theano.sandbox.cuda.neighbours.GpuImages2Neibs": (
        "opwise.tensor.conv.neighbours.Images2Neibs"
    ),
    "theano.sandbox.cuda.neighbours.gpu_images2neibs": (
        "opwise.tensor.conv.neighbours.images2neibs"
    ),
    "theano.gpuarray.pygpu": "opwise.names.without_gpu.pygpu",
    "theano.gpuarray.type.pygpu": "opwise.names.without_gpu.pygpu",
    "theano.gpuarray.list_contexts": "opwise.names.without_gpu.list_contexts",
    "theano.gpuarray.type.list_contexts": "opwise.names.without_gpu.list_contexts",
    "theano.misc.cudamat_utils.cudamat_available": "opwise.names.without_gpu.cudamat_available",
    "theano.misc.gnumpy_utils.gnumpy_available": "opwise.names.without_gpu.gnumpy_available",
    "theano.misc.pycuda_init.pycuda_available": "opwise.names.without_gpu.pycuda_available",
    "theano.tensor.nnet.conv.imported_scipy_signal": "opwise.names.scipy.imported_scipy_signal",
    "theano.tensor.signal.conv.conv2d": "opwise.names.conv.signal_conv2d",
    "theano.tensor.signal.downsample.max_pool2D": "opwise.tensor.conv.pool.max_pool_2d",
    "theano.tensor.signal.downsample.DownsampleFactorMax": "opwise.tensor.conv.pool.Pool",
    "theano.tensor.signal.downsample.DownsampleFactorMaxGrad": (
        "opwise.tensor.conv.pool.MaxPoolGrad"
    ),
    "theano.tensor.slinalg.imported_scipy": "opwise.names.scipy.imported_scipy",
    "theano._asarray": "opwise.names.safe_asarray._asarray",
    "theano.compile.pfunc.pfunc": "opwise.names.pfunc.pfunc",
    "theano.gradient.tensor": "theano.tensor",
    "theano.gradient.jacobian": "opwise.loops.jacobians.jacobian",
    "theano.sandbox.scan.scan": "opwise.loops.buffers.scan",
    "theano.sandbox.scan_module.scan.scan": "opwise.loops.build.scan",
    "theano.gradient.hessian": "opwise.loops.jacobians.hessian",
}

_OLDER = "opwise.tensor.conv.older"
NAMES |= {
    f"theano.tensor.nnet.{module}.{name}": f"{_OLDER}.{name}"
    for module, names in {
        "Conv3D": "Conv3D conv3D",
        "ConvGrad3D": "ConvGrad3D convGrad3D",
        "ConvTransp3D": "ConvTransp3D convTransp3D",
        "corr": "BaseCorrMM CorrMM CorrMM_gradInputs CorrMM_gradWeights",
        "corr3d": "BaseCorr3dMM Corr3dMM Corr3dMM_gradInputs Corr3dMM_gradWeights",
    }.items()
    for name in names.split()
} | {
    f"theano.gpuarray.blas.Gpu{name}": f"{_OLDER}.{name}"
    for name in ("CorrMM", "CorrMM_gradInputs", "CorrMM_gradWeights",
                 "Corr3dMM", "Corr3dMM_gradInputs", "Corr3dMM_gradWeights")
}  # fmt: skip

#: names that opwise has beside those of Theano's releases, and names in modules of layers above
NAMES |= {
    f"theano.{name}": f"opwise.legacy.{module}.{name}"
    for module, names in {
        "components": "Component External Member Method",
        "module": "FancyModule Module",
        "structures": "ComponentDict ComponentList Composite",
    }.items()
    for name in names.split()
} | {
    f"theano.{name}": f"opwise.notebook.extension.{name}"  # %load_ext opwise
    for name in ("load_ipython_extension", "unload_ipython_extension")
} | {
    f"theano.tensor.{name}": f"opwise.gradient.{name}"
    for name in ("Lop", "Rop", "consider_constant", "grad", "numeric_grad", "subgraph_grad",
                 "verify_grad")
} | {
    "theano.tensor.SharedVariable": "opwise.compile.shared.SharedVariable",
    "theano.tensor.shared": "opwise.compile.shared.shared",
    "theano.testing": "opwise.testing",
} | {
    f"theano.{name}": f"opwise.loops.{name}" for name in ("scan", "map", "reduce", "foldl", "foldr")
}  # fmt: skip

#: modules that cannot be imported without another package, as in Theano
NEEDS = {"theano.misc.pycuda_example": "pycuda", "theano.misc.pycuda_utils": "pycuda"}

#: modules and names of Python 2, and where today's Python has them
PYTHON_2 = {
    "ConfigParser": "configparser",
    "StringIO": "io",
    "__builtin__": "builtins",
    "__builtin__.unicode": "builtins.str",
    "__builtin__.xrange": "builtins.range",
    "__builtin__.long": "builtins.int",
    "cPickle": "pickle",
    "cStringIO": "io",
    "copy_reg": "copyreg",
    "itertools.ifilter": "builtins.filter",
    "itertools.imap": "builtins.map",
    "itertools.izip": "builtins.zip",
    "six": "opwise.names.py2",
    "six.moves": "opwise.names.py2",
}

#: names of the package opwise alone: functions of numpy, and functions of functions
TRACING = {
    name: f"opwise.tracing.{name}"
    for name in "jit value_and_grad jacobian hessian jvp vjp vmap".split()
} | {"numpy": "opwise.tracing.namespace"}
