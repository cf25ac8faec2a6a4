"""The flags that do something in opwise, by subject: name, kind with its default, description.

Marks behind the description: LOCKED, a program cannot change it, only the environment and the
configuration files can; KEY, generated C code depends on it.
"""

from __future__ import annotations

from opwise.config.folders import (
    FORMAT_KEYS,
    FolderParam,
    FormatParam,
    default_base_compiledir,
    default_compiledir,
)
from opwise.config.registry import AddConfigVar
from opwise.config.values import (
    BoolParam,
    ConfigParam,
    EnumStr,
    FloatParam,
    IntParam,
    ModeParam,
    StrParam,
    at_least,
    is_device,
    not_negative,
    up_to,
)

TYPE_CHECKING = False  # importing typing for it would take longer than all of this package
if TYPE_CHECKING:
    from typing import Any

LOCKED, KEY = "locked", "key"

_IF_BAD = ("warn", "raise", "pdb")
_TEST_VALUE = ("off", "ignore", *_IF_BAD)

# fmt: off
_VALUES = (
    ("floatX", EnumStr("float64", "float32", "float16"),
     "The dtype of Python floats and of matrix(), vector() and the like.", KEY),
    ("warn_float64", EnumStr("ignore", *_IF_BAD),
     "What to do when a tensor variable of dtype float64 is created."),
    ("cast_policy", EnumStr("custom", "numpy+floatX"),
     "The rule for dtypes of results. custom: numpy's, and a Python number has the smallest dtype "
     "that is exact. numpy+floatX: integers with floats give at most floatX, unless an operand is "
     "wider; a Python integer is int64, a Python float floatX.", KEY),
    ("int_division", EnumStr("int", "raise", "floatX"),
     "The result of / between integer variables in programs for Python 2 (opwise run --py2): the "
     "floor, an error, or a quotient of dtype floatX. In Python 3, / is true division."),
    ("pickle_test_value", BoolParam(True),
     "Keep tag.test_value when a variable is pickled."),
    ("pickle_shared_values", BoolParam(True),
     "Keep the values of shared variables when they are pickled, alone or in a function. Without "
     "them a variable that is unpickled has no value until set_value gives it one."),
    ("reoptimize_unpickled_function", BoolParam(False),
     "Optimize functions again when they are unpickled, even if the cache has the optimized "
     "graph."),
    ("tensor.cmp_sloppy", IntParam(0, up_to(2)),
     "The tolerance of comparisons for approximate equality: 0 the usual one, 1 ten times and "
     "2 a hundred times as large.", LOCKED),
)

_DEVICE = (
    ("device", StrParam("cpu", is_device),
     "The device that functions run on.", LOCKED),
    ("force_device", BoolParam(False),
     "Raise an error if the device cannot be used, instead of computing on the CPU.", LOCKED),
    ("print_active_device", BoolParam(True),
     "Print the name of the GPU when it is first used.", LOCKED),
    ("cuda.graphs", BoolParam(True),
     "Launch successive kernels of a function together, as one CUDA graph."),
    ("cuda.tf32", BoolParam(False),
     "Use TF32 tensor cores for float32 matrix products (10-bit mantissa, several times faster)."),
)

_COMPILATION = (
    ("mode", ModeParam("Mode"),
     "The mode of functions that are compiled without one: a name or a Mode."),
    ("linker", EnumStr("c|py", "py", "c", "c|py_nogc", "c&py", "vm", "vm_nogc", "cvm", "cvm_nogc",
                       "cupy"),
     "The linker of modes that are made without one."),
    ("optimizer", EnumStr("fast_run", "fast_compile", "o4", "o3", "o2", "o1", "unsafe", "stabilize",
                          "fast_run_stable", "merge", "None"),
     "The optimizer of modes that are made without one; o4 is fast_run, o1 is fast_compile."),
    ("optimizer_excluding", StrParam(""),
     "Tags of rewrites that the default mode leaves out, separated by colons.", LOCKED),
    ("optimizer_including", StrParam(""),
     "Tags of rewrites that the default mode adds, separated by colons.", LOCKED),
    ("optimizer_requiring", StrParam(""),
     "The default mode uses only rewrites with all of these tags, separated by colons.", LOCKED),
    ("optimizer_verbose", BoolParam(False),
     "Print each rewrite."),
    ("tensor.local_elemwise_fusion", BoolParam(True),
     "Fuse elementwise Ops."),
    ("optdb.position_cutoff", FloatParam(float("inf")),
     "The position in the sequence of rewrites at which optimization stops."),
    ("optdb.max_use_ratio", FloatParam(8),
     "How many times per Apply of the graph one rewrite may act before it is stopped."),
    ("on_opt_error", EnumStr(*_IF_BAD, "ignore"),
     "What to do when a rewrite raises an exception."),
    ("show_progress", BoolParam(True),
     "Show on a terminal how far a compilation, a tune or a search is if it takes longer than a "
     "second."),
    ("on_unused_input", EnumStr("raise", "warn", "ignore"),
     "What to do about an input that no output depends on."),
    ("on_shape_error", EnumStr("warn", "raise"),
     "What to do when the infer_shape of an Op fails."),
    ("keep_shape_checks", BoolParam(False),
     "Keep every shape check of the graph as written. Without it x * 0 + v may be computed as v, "
     "without comparing the lengths of x and v."),
)

_RUNNING = (
    ("conv.assert_shape", BoolParam(False),
     "Check the shapes that a convolution was given by Applys of their own, which raise "
     "AssertionError. Without it the convolution checks them, and raises ValueError."),
    ("allow_gc", BoolParam(True),
     "Free intermediate results during a call, instead of keeping their memory for the next call."),
    ("scan.allow_gc", BoolParam(False),
     "Free intermediate results during each step of a loop, instead of at the end of the loop."),
    ("threads", IntParam(0, at_least(0)),
     "The number of threads of one kernel, and of each BLAS library in the process. 0: kernels use "
     "OMP_NUM_THREADS, else all processors of the process, and BLAS keeps its own setting."),
    ("strip_bytes", IntParam(-1, at_least(-1)),
     "Steps that hand large results to each other run in strips of rows, so that only so many "
     "bytes of such results exist at once for each thread. -1: half of a core's second-level "
     "cache; 0: every step computes its result as a whole."),
    ("recycle_bytes", IntParam(-1, at_least(-1)),
     "How many bytes of large freed arrays are kept for later results. -1: an eighth of the RAM, "
     "at most 1 GiB."),
)

_CONVOLUTION = (
    ("conv.algo", EnumStr("model", "image", "direct", "patches", "winograd", "fft", "scatter",
                          "measure"),
     "The algorithm of convolutions and of their gradients where it can be used; model: the one "
     "that should be fastest for the shapes of a call; measure: the one that is, when the first "
     "call of the process with these shapes tries each. Which one that is may differ between "
     "processes, and results in their rounding."),
    ("conv.winograd", BoolParam(True),
     "Let 3x3 convolutions of float32 and their gradients use Winograd's algorithm: a quarter of "
     "the multiplications, and errors of at most 1e-5 of the largest result. DebugMode never uses "
     "it."),
    ("conv.fft", BoolParam(True),
     "Let convolutions with kernels of 25 elements or more, and their gradients, use "
     "Fourier transforms: errors of at most 1e-5 (float64: 1e-14) of the largest result that the "
     "magnitudes of the images and kernels would give. DebugMode never uses them."),
)

_COMPILED_CODE = (
    ("cxx", StrParam("cc"),
     "The C compiler; empty: compile no C code."),
    ("gcc.cxxflags", StrParam(""),
     "Additional flags for the C compiler. -ffast-math and its parts have an effect on users' own "
     "C code alone. A function waits for its kernels if a flag may change bits of results."),
    ("base_compiledir", FolderParam(default_base_compiledir),
     "The folder for the compiled code of all platforms.", LOCKED),
    ("compiledir_format", FormatParam(
        "compiledir_%(short_platform)s-%(processor)s-%(python_version)s-%(python_bitwidth)s"),
     f"The pattern for the folder in base_compiledir. Its keys: {FORMAT_KEYS}.", LOCKED),
    ("compiledir", FolderParam(default_compiledir),
     "The folder for the compiled code of this platform.", LOCKED),
    ("compiledir_bytes", IntParam(1 << 29, at_least(-1)),
     "About how many bytes of compiled kernels and optimized graphs compiledir keeps; those used "
     "longest ago are deleted. 0: no new ones, -1: no limit."),
    ("background_compilation", BoolParam(True),
     "Let a function run on built-in loops while its kernels are compiled in the background, if "
     "both give the same bits. Functions that are profiled wait for the C compiler (see "
     "profiling.wait_for_kernels), and so do all functions if the flag is False."),
    ("cache_graphs", BoolParam(True),
     "Keep optimized graphs in compiledir: a function that was compiled before, in this process or "
     "another, is not rewritten again."),
)

_DEBUGGING = (
    ("compute_test_value", EnumStr(*_TEST_VALUE),
     "Compute test values while the graph is built; the flag says what to do about an "
     "input without tag.test_value."),
    ("compute_test_value_opt", EnumStr(*_TEST_VALUE),
     "As compute_test_value, for the variables that rewrites create."),
    ("print_test_value", BoolParam(False),
     "Show the test value in the repr of a variable."),
    ("exception_verbosity", EnumStr("low", "high"),
     "high: error messages show the graph and all values."),
    ("traceback.limit", IntParam(8),
     "How many frames of the user's program an error shows of where a variable was made; -1: "
     "all; 0: none is remembered, so profiles do not know lines either."),
    ("traceback.libraries", StrParam("installed"),
     "Folders whose code is no line of the user's program, separated as in PATH: profiles fold "
     "their frames. installed: those of installed packages."),
    ("traceback.internal", BoolParam(False),
     "Show the frames of opwise in the tracebacks of failing calls."),
    ("DebugMode.patience", IntParam(10, at_least(1)),
     "How many times a graph is optimized, to see that the result is the same each time."),
    ("DebugMode.check_c", BoolParam(True),
     "Run C implementations."),
    ("DebugMode.check_py", BoolParam(True),
     "Run Python implementations."),
    ("DebugMode.check_finite", BoolParam(True),
     "Treat NaN and infinity as errors."),
    ("DebugMode.check_strides", IntParam(0, up_to(2)),
     "What to do when C and Python return different strides: 0 ignore it, 1 warn, 2 raise."),
    ("DebugMode.warn_input_not_reused", BoolParam(True),
     "Warn when an Op declares that it works in place, but does not."),
    ("DebugMode.check_preallocated_output", StrParam(""),
     "Kinds of output storage to try: initial, previous, c_contiguous, f_contiguous, strided, "
     "wrong_size, ALL, separated by colons."),
    ("DebugMode.check_preallocated_output_ndim", IntParam(4, at_least(0)),
     "On how many trailing dimensions to try all combinations of strides."),
    ("NanGuardMode.nan_is_error", BoolParam(True),
     "Treat NaN as an error."),
    ("NanGuardMode.inf_is_error", BoolParam(True),
     "Treat infinity as an error."),
    ("NanGuardMode.big_is_error", BoolParam(True),
     "Treat a value beyond 1e10 as an error."),
    ("NanGuardMode.action", EnumStr("raise", "warn", "pdb"),
     "What to do when NanGuardMode finds such a value: NaN, infinity or a big value."),
)

_PROFILING = (
    ("profile", BoolParam(False),
     "Profile all functions."),
    ("profile_optimizer", BoolParam(False),
     "Include the rewrites in profiles."),
    ("profile_memory", BoolParam(False),
     "Include memory in profiles."),
    ("print_global_stats", BoolParam(False),
     "Print the times of the whole process when it ends."),
    ("profiling.time_thunks", BoolParam(True),
     "Time each Apply."),
    ("profiling.wait_for_kernels", BoolParam(True),
     "Let functions that are profiled wait for the C compiler. Otherwise their first calls may run "
     "on built-in loops, as those of other functions do, and the profile tells how many did."),
    ("profiling.n_apply", IntParam(20, at_least(0)),
     "How many Applys a profile shows."),
    ("profiling.n_ops", IntParam(20, at_least(0)),
     "How many Ops, and how many classes of Ops, a profile shows."),
    ("profiling.output_line_width", IntParam(512, at_least(1)),
     "The width in columns to which lines of a profile are cut."),
    ("profiling.min_memory_size", IntParam(1024, at_least(0)),
     "The size in bytes from which a memory profile shows an Apply's outputs."),
    ("profiling.min_peak_memory", BoolParam(False),
     "Add the lowest peak memory that any order of the Applys can reach to memory profiles."),
    ("profiling.destination", StrParam("stdout"),
     "Where profiles are printed when the process ends: stdout, stderr or the name of a file."),
    ("profiling.signal", EnumStr("none", "SIGUSR1", "SIGUSR2"),
     "The signal upon which the program writes its profile and goes on; opwise ask sends it. The "
     "file is profiling.destination if that ends in .json, else PROGRAM.PID.profile.json in the "
     "working directory."),
    ("profiling.sampling", FloatParam(0, not_negative()),
     "Look every so many milliseconds what the main thread of the program does, also outside "
     "compiled functions (0: never). opwise run does so every 10 ms, from the start of the "
     "program."),
    ("profiling.debugprint", BoolParam(False),
     "Print the graphs of functions, with times, after their profile when the process ends."),
    ("profiling.ignore_first_call", BoolParam(False),
     "Leave the first call of a function out of its profile."),
    ("profiling.nvtx", BoolParam(False),
     "Mark calls and Applys for system profilers such as Nsight Systems."),
    ("profiling.nvtx_library", StrParam(""),
     "The path of the NVTX library (default: the installed one)."),
    ("tuning.functions", IntParam(0, at_least(0)),
     "Try tips on this many functions, the slowest ones, when the process ends (0: none)."),
    ("tuning.budget", FloatParam(20),
     "The time in seconds for trying tips on all these functions."),
    ("ProfileMode.n_apply_to_print", IntParam(15, at_least(0)),
     "How many Applys the summary of a ProfileMode shows."),
    ("ProfileMode.n_ops_to_print", IntParam(20, at_least(0)),
     "How many Ops the summary of a ProfileMode shows."),
    ("ProfileMode.profile_memory", BoolParam(False),
     "Measure memory in a ProfileMode too."),
)
# fmt: on

FLAGS: tuple[tuple[Any, ...], ...] = (
    *_VALUES,
    *_DEVICE,
    *_COMPILATION,
    *_RUNNING,
    *_CONVOLUTION,
    *_COMPILED_CODE,
    *_DEBUGGING,
    *_PROFILING,
)


def add(name: str, param: ConfigParam, doc: str, *marks: str) -> None:
    """Add a flag of a table to ``config``."""
    param.allow_override = LOCKED not in marks
    AddConfigVar(name, doc, param, in_c_key=KEY in marks)


def add_all() -> None:
    """Add all flags of this table to ``config``."""
    for row in FLAGS:
        add(*row)
