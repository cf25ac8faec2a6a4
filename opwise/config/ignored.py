"""Flags of Theano that programs may set and opwise ignores: what they did there, and why not here.

name, kind with Theano's default, what it does in Theano, the reason, marks as in ``flags``.
"""

from __future__ import annotations

from opwise.config.flags import KEY, LOCKED, add
from opwise.config.folders import FolderParam, default_gpu_cache_path
from opwise.config.registry import options
from opwise.config.values import (
    BoolParam,
    EnumStr,
    FloatParam,
    IntParam,
    MaybeParam,
    StrParam,
    at_least,
    is_accelerator_or_none,
)

TYPE_CHECKING = False  # importing typing for it would take longer than all of this package
if TYPE_CHECKING:
    from typing import Any

_NUMPY_ERRORS = ("ignore", "warn", "raise", "call", "print", "log")
_DNN_RUNTIME = ("guess_once", "guess_on_shape_change", "time_once", "time_on_shape_change")
_VERSIONS = (
    *("0.3", "0.4", "0.4.1", "0.5", "0.6", "0.7", "0.8", "0.8.1", "0.8.2", "0.9", "0.10"),
    *("1.0", "1.0.1", "1.0.2", "1.0.3", "1.0.4", "1.0.5"),
)

# Reasons that several flags share.
_NO_CUDNN = "opwise convolves without cuDNN"
_NO_TRIALS = "opwise does not time convolutions to choose one"
_NO_CYCLES = "opwise chooses in-place Applys for one fixed order, so no cycle can arise"
_KEPT_LINES = "a variable that a rewrite creates always keeps the source lines of what it replaces"
_OWN_CACHE = "opwise caches compiled kernels by a hash of their source; see compiledir_bytes"
_NO_WAITING = "processes that share that folder do not wait for each other"
_NUMPY_KEPT = "opwise leaves numpy's settings as the program set them"
_CUPY = "opwise uses GPUs through CuPy, not through libgpuarray"
_NO_SUCH_BUG = "opwise never had this bug of old Theano versions"

# fmt: off
IGNORED: tuple[tuple[Any, ...], ...] = (
    # dtypes, pickling, shapes
    ("unpickle_function", BoolParam(True),
     "Unpickle functions; otherwise they become None.", "functions are always unpickled"),
    ("experimental.unpickle_gpu_on_cpu", BoolParam(False),
     "Unpickle arrays of a GPU as numpy arrays.", "arrays are always pickled as numpy arrays"),
    # devices
    ("init_gpu_device", StrParam("", is_accelerator_or_none),
     "A GPU to initialise although functions run on the CPU.",
     "a GPU is initialised when something first uses it", LOCKED),
    ("contexts", StrParam(""),
     "Names for several GPUs, as name->device;name->device.",
     "the flag device names one GPU for all functions", LOCKED),
    ("deterministic", EnumStr("default", "more"),
     "Prefer slower kernels that give the same bits in each run.",
     "opwise's own kernels always give the same bits"),
    ("assert_no_cpu_op", EnumStr("ignore", "warn", "raise", "pdb"),
     "What to do when a graph for the GPU holds an Op that runs on the CPU.",
     "profiles say which Applys stay on the CPU, and why"),
    # running
    ("vm.lazy", MaybeParam("None"),
     "Run Applys only when they are needed; None: if an Op asks for it.", "opwise has no lazy Ops"),
    ("openmp", BoolParam(False),
     "Use several threads for elementwise loops.", "set threads instead"),
    ("openmp_elemwise_minsize", IntParam(200_000, at_least(0)),
     "The number of elements from which a loop uses several threads.",
     "the estimated cost of a loop decides"),
    ("scan.allow_output_prealloc", BoolParam(True),
     "Compute the steps of a scan directly into its outputs.",
     "the rewrite scanOp_make_inplace does so where it can"),
    ("scan.debug", BoolParam(False),
     "Print what scan does.", "an error in a step names the loop and the step"),
    # rewrites
    ("gpu.local_elemwise_fusion", BoolParam(True),
     "Fuse elementwise GPU Ops.", "tensor.local_elemwise_fusion is for both devices"),
    ("cache_optimizations", BoolParam(False),
     "Keep optimized graphs on disk.", "opwise keeps compiled kernels only"),
    ("cycle_detection", EnumStr("regular", "fast"),
     "How to check in-place Ops for cycles.", _NO_CYCLES),
    ("tensor.insert_inplace_optimizer_validate_nb", IntParam(-1),
     "After how many changes to validate in-place Ops; -1: by the size of the graph.", _NO_CYCLES),
    ("check_stack_trace", EnumStr("off", "log", "warn", "raise"),
     "What to do when a rewrite loses the user's lines.", _KEPT_LINES),
    ("traceback.compile_limit", IntParam(0),
     "How many stack frames a variable that a rewrite creates records.", _KEPT_LINES),
    ("experimental.local_alloc_elemwise", BoolParam(True),
     "Remove an alloc before an elementwise Op.",
     "exclude the rewrite local_elemwise_alloc instead"),
    ("experimental.local_alloc_elemwise_assert", BoolParam(True),
     "Check the shape when an alloc before an elementwise Op is removed.",
     "shapes that are not known to agree are always checked"),
    ("metaopt.verbose", IntParam(0),
     "How much to print while convolutions are chosen by timing.", _NO_TRIALS),
    ("metaopt.optimizer_excluding", StrParam(""),
     "Tags of convolutions to leave out when they are chosen by timing.", _NO_TRIALS),
    ("metaopt.optimizer_including", StrParam(""),
     "Tags of convolutions to add when they are chosen by timing.", _NO_TRIALS),
    # the C compiler and libraries
    ("nocleanup", BoolParam(False),
     "Keep sources that do not compile.", "the error contains the source"),
    ("check_input", BoolParam(True),
     "Check the inputs of C code.", "inputs are always checked", KEY),
    ("lib.amdlibm", BoolParam(False),
     "Link AMD's mathematical library.", "opwise has vectorised functions of its own"),
    ("cmodule.warn_no_version", BoolParam(False),
     "Warn of C code without a version, which cannot be kept.", _OWN_CACHE),
    ("cmodule.remove_gxx_opt", BoolParam(False),
     "Leave -O flags out.", "set gcc.cxxflags instead", KEY),
    ("cmodule.compilation_warning", BoolParam(False),
     "Show the compiler's warnings.", "the compiler's messages are shown only when it fails"),
    ("cmodule.preload_cache", BoolParam(False),
     "Load all compiled code at import.", _OWN_CACHE, LOCKED),
    ("cmodule.age_thresh_use", IntParam(2_073_600),
     "The age in seconds from which compiled code is not used again.", _OWN_CACHE, LOCKED),
    ("cmodule.debug", BoolParam(False),
     "Compile C code with -DDEBUG.", "opwise's C code does not depend on DEBUG", KEY),
    ("compile.wait", IntParam(5),
     "Seconds between two attempts to lock the folder of compiled code.", _NO_WAITING, LOCKED),
    ("compile.timeout", IntParam(120),
     "Seconds after which a lock on the folder of compiled code is broken.", _NO_WAITING, LOCKED),
    ("blas.ldflags", StrParam(""),
     "Linker flags for BLAS.", "opwise uses scipy's BLAS"),
    ("blas.check_openmp", BoolParam(True),
     "Look for two OpenMP libraries in one process.", "opwise uses scipy's BLAS"),
    # floating-point errors, tests
    ("numpy.seterr_all", EnumStr(*_NUMPY_ERRORS, "None"),
     "numpy's action on floating-point errors; None: unchanged.", _NUMPY_KEPT, LOCKED),
    ("numpy.seterr_divide", EnumStr("None", *_NUMPY_ERRORS),
     "numpy's action on a division by zero; None: as seterr_all.", _NUMPY_KEPT, LOCKED),
    ("numpy.seterr_over", EnumStr("None", *_NUMPY_ERRORS),
     "numpy's action on an overflow; None: as seterr_all.", _NUMPY_KEPT, LOCKED),
    ("numpy.seterr_under", EnumStr("None", *_NUMPY_ERRORS),
     "numpy's action on an underflow; None: as seterr_all.", _NUMPY_KEPT, LOCKED),
    ("numpy.seterr_invalid", EnumStr("None", *_NUMPY_ERRORS),
     "numpy's action on an invalid operation like 0 / 0; None: as seterr_all.",
     _NUMPY_KEPT, LOCKED),
    ("unittests.rseed", StrParam("666"),
     "The seed of Theano's own tests, or random.", "opwise has its own tests"),
    # warnings of old bugs
    ("warn.ignore_bug_before", EnumStr("0.9", "None", "all", *_VERSIONS),
     "Do not warn of bugs that were fixed before this version of Theano.", _NO_SUCH_BUG, LOCKED),
    ("warn.argmax_pushdown_bug", BoolParam(False),
     "Warn of a bug in argmax of softmax.", _NO_SUCH_BUG),
    ("warn.gpusum_01_011_0111_bug", BoolParam(False),
     "Warn of a bug in GPU sums.", _NO_SUCH_BUG),
    ("warn.sum_sum_bug", BoolParam(False),
     "Warn of a bug in the sum of a sum.", _NO_SUCH_BUG),
    ("warn.sum_div_dimshuffle_bug", BoolParam(False),
     "Warn of a bug in the sum of a quotient with a broadcast operand.", _NO_SUCH_BUG),
    ("warn.subtensor_merge_bug", BoolParam(False),
     "Warn of a bug in indexing twice with a negative step.", _NO_SUCH_BUG),
    ("warn.gpu_set_subtensor1", BoolParam(False),
     "Warn of a bug in set_subtensor on GPUs.", _NO_SUCH_BUG),
    ("warn.vm_gc_bug", BoolParam(False),
     "Warn of a bug in freeing intermediate results.", _NO_SUCH_BUG),
    ("warn.signal_conv2d_interface", BoolParam(False),
     "Warn that the arguments of signal.conv2d changed.",
     "the arguments are those of Theano 1.0.5"),
    ("warn.reduce_join", BoolParam(False),
     "Warn of a bug in reducing a join.", _NO_SUCH_BUG),
    ("warn.inc_set_subtensor1", BoolParam(False),
     "Warn of a bug in inc_subtensor and set_subtensor with lists of indices.", _NO_SUCH_BUG),
    ("warn.round", BoolParam(False),
     "Warn that round() rounds halves to even.", "opwise always rounds halves to even"),
    ("warn.inc_subtensor1_opt", BoolParam(True),
     "Warn of a bug in reading back what inc_subtensor added at repeated indices.", _NO_SUCH_BUG),
    ("warn.identify_1pexp_bug", BoolParam(False),
     "Warn of a bug in log(1 + exp(x)).", _NO_SUCH_BUG),
    # ProfileMode
    ("ProfileMode.min_memory_size", IntParam(1024, at_least(0)),
     "The size in bytes from which a ProfileMode shows an Apply's outputs.",
     "set profiling.min_memory_size instead"),
    # Theano's GPU libraries
    ("gpuarray.sync", BoolParam(False),
     "Wait for each GPU Op.", _CUPY, LOCKED),
    ("gpuarray.preallocate", FloatParam(0),
     "GPU memory to allocate at the start: a fraction up to 1, else megabytes.", _CUPY, LOCKED),
    ("gpuarray.sched", EnumStr("default", "multi", "single"),
     "How the CPU waits for the GPU.", _CUPY, KEY),
    ("gpuarray.single_stream", BoolParam(True),
     "Use a single stream on a GPU.", _CUPY),
    ("gpuarray.cache_path", FolderParam(default_gpu_cache_path),
     "The folder for compiled GPU kernels.", _CUPY, LOCKED),
    ("gpuelemwise.sync", BoolParam(True),
     "Wait for elementwise GPU Ops.", _CUPY),
    ("cuda.root", StrParam("/usr/local"),
     "The folder of CUDA.", "CuPy finds CUDA"),
    ("cuda.include_path", StrParam("/usr/local/include"),
     "The folder of CUDA's headers.", "CuPy finds CUDA"),
    ("dnn.enabled", EnumStr("auto", "True", "False", "no_check"),
     "Use cuDNN.", _NO_CUDNN),
    ("dnn.base_path", StrParam(""),
     "The folder of cuDNN.", _NO_CUDNN),
    ("dnn.include_path", StrParam(""),
     "The folder of cuDNN's headers.", _NO_CUDNN),
    ("dnn.library_path", StrParam(""),
     "The folder of cuDNN's library to link.", _NO_CUDNN),
    ("dnn.bin_path", StrParam(""),
     "The folder of cuDNN's library to load.", _NO_CUDNN),
    ("dnn.conv.workmem", StrParam(""),
     "The older name of dnn.conv.algo_fwd.", _NO_CUDNN, LOCKED),
    ("dnn.conv.workmem_bwd", StrParam(""),
     "The older name of both algo_bwd_ flags.", _NO_CUDNN, LOCKED),
    ("dnn.conv.algo_bwd", StrParam(""),
     "The older name of both algo_bwd_ flags.", _NO_CUDNN, LOCKED),
    ("dnn.conv.algo_fwd", EnumStr("small", "none", "large", "fft", "fft_tiling", "winograd",
                                  "winograd_non_fused", *_DNN_RUNTIME),
     "cuDNN's algorithm for convolutions.", _NO_CUDNN),
    ("dnn.conv.algo_bwd_data", EnumStr("none", "deterministic", "fft", "fft_tiling", "winograd",
                                       "winograd_non_fused", *_DNN_RUNTIME),
     "cuDNN's algorithm for the gradient of a convolution by its inputs.", _NO_CUDNN),
    ("dnn.conv.algo_bwd_filter", EnumStr("none", "deterministic", "fft", "small", "fft_tiling",
                                         "winograd_non_fused", *_DNN_RUNTIME),
     "cuDNN's algorithm for the gradient of a convolution by its filters.", _NO_CUDNN),
    ("dnn.conv.precision", EnumStr("as_input_f32", "as_input", "float16", "float32", "float64"),
     "The precision that cuDNN convolves in.", _NO_CUDNN),
    ("magma.enabled", BoolParam(False),
     "Use MAGMA.", "opwise has no linear algebra that MAGMA would compute"),
    ("magma.include_path", StrParam(""),
     "The folder of MAGMA's headers.", "opwise does not use MAGMA"),
    ("magma.library_path", StrParam(""),
     "The folder of MAGMA's library.", "opwise does not use MAGMA"),
    ("ctc.root", StrParam(""),
     "The folder of warp-ctc.", "opwise computes the CTC loss itself", LOCKED),
    # gone before Theano 1.0, and still set by programs
    ("lib.cnmem", FloatParam(0),
     "The older name of gpuarray.preallocate.", _CUPY),
    ("nvcc.fastmath", BoolParam(False),
     "Trade precision for speed in CUDA code.", "see cuda.tf32"),
)
# fmt: on


def add_all() -> None:
    """Add all flags of this table to ``config``, as unused."""
    for name, param, doc, reason, *marks in IGNORED:
        add(name, param, f"{doc} Ignored: {reason}.", *marks)
        options[name].used = False
