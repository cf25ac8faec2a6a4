"""Builds opwise.linkers.opwise_c: Cython, plain C beside it, generated kernels; and one file of C.

All other metadata is in pyproject.toml.
"""

import compileall
import hashlib
import importlib
import os
import shlex
import subprocess
import sys
import sysconfig
import types
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import Cython
import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent.resolve()
PACKAGES = ("opwise", "theano")
NAME = "opwise.linkers.opwise_c"
# The Cython modules of the extension: opwise_c loads the others from its own file.
CYTHON = ("opwise/linkers/opwise_c.pyx", "opwise/linkers/native/*.pyx")
# Those that every call of a function runs, which takes longer at -O2.
HOT = ("callpath", "loop", "slots", "vm")
CSUPPORT = ("opwise/linkers/csupport", "opwise/scalar/csupport")
# Each has a function that returns {file name: text}.
GENERATORS = ("opwise.scalar.kernelgen", "opwise.linkers.stepparams", "opwise.linkers.cystructs")
GENERATED = "build/generated"
# One folder of C text per Cython version: what another version wrote is not taken for current.
TRANSLATED = f"build/cython-{Cython.__version__}"

# No -march=native: the extension must run on any machine of the architecture it was built for.
# No -ffast-math: NaN, infinities and signed zeros keep their meaning. -ffp-contract=off: a * b + c
# rounds twice everywhere, so that the same expression gives the same bits on every machine.
# -fno-math-errno, -fno-trapping-math: nobody reads errno or catches floating-point traps; without
# them the compiler may use vector instructions for sqrt, floor and selections. -fwrapv: integers
# wrap. -fopenmp-simd: sums that say so are added up in another order. The generated loops need all
# but -O3: they are csource.FLAGS, which has no import here.
CFLAGS = (
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-ffp-contract=off", "-fopenmp-simd",
)  # fmt: skip
# For gcc and files of loops: a path for each outcome of a comparison would keep loops from being
# vectorised. The VM is faster with such paths.
LOOP_FLAGS = ("-fno-thread-jumps",) if sys.platform == "linux" else ()
# Python's own flags ask for debug information, which takes a quarter of the time and most of the
# file. CFLAGS=-g asks for it again.
if "-g" not in os.environ.get("CFLAGS", ""):
    CFLAGS += ("-g0",)

# Kernels of vectors are compiled for each of these kinds of processors: gcc's names of what they
# have. They are in parts, so that compilers work side by side: see csupport/simd_<part>.h.
VECTORS = {
    "avx512": ("avx512f", "avx512dq", "avx512vl", "avx512bw", "fma"),
    "avx2": ("avx2", "fma"),
}
PARTS = ("products", "images", "sums", "loops", "rows")


# ======================================================================================
# GENERATED FILES: the only place that knows of code generation at build time.
# ======================================================================================
def generate() -> list[str]:
    """Write the files that generators make; the paths of those that are C."""
    # Importing the package needs the extension that is about to be built. An empty package of that
    # name, which knows the folder, lets generators import what they need and nothing above it.
    bare = types.ModuleType("opwise")
    bare.__path__ = [str(ROOT / "opwise")]
    sys.modules["opwise"] = bare
    # Nor is the other extension built: nobody asks who makes what generators make.
    stacks = types.ModuleType("opwise.graph.callstack")
    stacks.capture = lambda is_internal: ()
    sys.modules[stacks.__name__] = stacks
    files = {}
    try:
        for name in GENERATORS:
            files |= importlib.import_module(name).generate()
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "opwise"]:
            del sys.modules[name]
    write_generated(files)
    return [f"{GENERATED}/{name}" for name in sorted(files) if name.endswith(".c")]


def write_generated(files: dict[str, str]) -> None:
    """Write generated files. Those whose text is as before stay untouched."""
    folder = ROOT / GENERATED
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


@cache
def vectors() -> list[str]:
    """The kinds of processors, besides any, that kernels are compiled for: this one.

    OPWISE_VECTORS=all: all of them, for packages that others install. A library that lacks the
    kernels of its processor uses those of any. Files name their processor by a pragma of gcc, so
    other compilers make the kernels of any alone.
    """
    wanted = os.environ.get("OPWISE_VECTORS", "native")
    if wanted not in ("native", "all"):
        raise SystemExit(f"OPWISE_VECTORS must be 'native' or 'all', not {wanted!r}")

    def macros(*flags: str) -> set[str]:
        command = [*compiler_command(), *flags, "-dM", "-E", "-x", "c", os.devnull]
        done = subprocess.run(command, capture_output=True, text=True)
        return set(done.stdout.split())

    if "__x86_64__" not in macros() or "__clang__" in macros():
        return []
    if wanted == "all":
        return list(VECTORS)
    here = macros("-march=native")
    return [n for n, has in VECTORS.items() if here.issuperset(f"__{h.upper()}__" for h in has)][:1]


def compiler_command() -> list[str]:
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def kernels_of_vectors(chosen: list[str]) -> list[str]:
    """Write the C files of the kernels of each kind of processor; their paths."""
    files = {"built_vectors.h": "".join(f"#define OW_HAS_{n.upper()}\n" for n in chosen)}
    for target in [*chosen, "base"]:
        pragma = f'#pragma GCC target("{",".join(VECTORS[target])}")\n' if target in VECTORS else ""
        for part in PARTS:
            text = f'{pragma}#define OW_TARGET {target}\n#include "simd_{part}.h"\n'
            files[f"simd_{target}_{part}.c"] = text
    write_generated(files)
    return [f"{GENERATED}/{name}" for name in files if name.endswith(".c")]


def cython_files() -> list[str]:
    """The paths of the Cython modules."""
    return [path for pattern in CYTHON for path in found(*pattern.rsplit("/", 1))]


def translated(source: str) -> str:
    """The path of the C file that ``translate`` makes of a Cython file."""
    return f"{TRANSLATED}/{source.removesuffix('.pyx')}.c"


def translate(sources: list[str]) -> None:
    """Make C of the Cython files that changed. No object of theirs is pickled by its fields."""
    from Cython.Build import cythonize  # hooks of pip that compile nothing need no Cython

    names = [source.removesuffix(".pyx").replace("/", ".") for source in sources]
    cythonize(
        [Extension(name, [source]) for name, source in zip(names, sources, strict=True)],
        build_dir=TRANSLATED,
        include_path=[GENERATED],
        # comments in C with the lines of the source are a third of the text
        compiler_directives={"auto_pickle": False, "emit_code_comments": False},
    )


def extension() -> Extension:
    """The extension, compiled again when any of its C files or headers changes."""
    generated = generate()
    kernels = kernels_of_vectors(vectors())
    folders = [folder for folder in (*CSUPPORT, GENERATED) if (ROOT / folder).is_dir()]
    beside = [path for folder in CSUPPORT for path in found(folder, "*.c")]
    headers = [path for folder in (*CSUPPORT, GENERATED) for path in found(folder, "*.h")]
    cython = cython_files()
    folders_of_cython = dict.fromkeys(path.rpartition("/")[0] for path in cython)
    declarations = [path for folder in folders_of_cython for path in found(folder, "*.pxd")]
    return Extension(
        NAME,
        # what takes long comes first, behind kernels that are compiled while Cython translates
        sources=[*kernels, *map(translated, cython), *beside, *generated],
        include_dirs=[".", "opwise/linkers", *folders, numpy.get_include()],
        depends=["setup.py", *cython, *declarations, *headers],
        # NPY_TARGET_VERSION: the oldest numpy that is supported at run time; without it, the numpy
        # of the build decides what there is in numpy's structs.
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
        ],
        extra_compile_args=[*CFLAGS, "-pthread", "-MMD"],
        extra_link_args=["-pthread"],
    )


def call_stacks() -> Extension:
    """What graphs need of C: they know nothing of linkers."""
    sources = found("opwise/graph", "*.c")
    flags = ["-O2", "-pthread", "-MMD"]
    return Extension(
        "opwise.graph.callstack", sources, extra_compile_args=flags, extra_link_args=["-pthread"]
    )


def found(folder: str, pattern: str) -> list[str]:
    """Relative paths, sorted: setuptools refuses absolute ones, and builds shall be repeatable."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).glob(pattern))


class ParallelBuild(build_ext):
    """Compiles the C files of the extension that changed, several at the same time.

    Setuptools alone compiles all of them when any header changed. A build in place compiles the
    Python files to bytecode too, as pip does when it installs: where PYTHONDONTWRITEBYTECODE is
    set, or the folder is read-only, every process would compile them again.
    """

    def finalize_options(self):
        super().finalize_options()
        # pip's folder for object files is another one each time: nothing in it would be current.
        # numpy's headers are also in another folder, so that of the objects names their version.
        if getattr(self, "editable_mode", False):
            tag = f"{sys.implementation.cache_tag}-numpy-{numpy.__version__}"
            folder = f"temp.{self.plat_name}-{tag}"
            self.build_temp = str(Path("build", folder))

    def run(self):
        super().run()
        if self.inplace:
            for package in PACKAGES:
                compileall.compile_dir(ROOT / package, quiet=1, workers=usable_cores())

    def build_extension(self, ext):
        compile_in_turn = self.compiler.compile

        def compile_together(sources, *args, output_dir=None, extra_postargs=(), **kwargs):
            of_cython = {translated(path): path for path in cython_files()}
            of_cython = {made: of_cython[made] for made in sources if made in of_cython}

            def compile_one(source):
                if source in of_cython:
                    translation.result()
                flags = [*extra_postargs, *flags_of(source)]
                folder = objects_of(source, flags) or output_dir or ""
                (made,) = self.compiler.object_filenames([source], output_dir=folder)
                if not self.force and is_current(Path(made)):
                    return [made]
                # before: two compilers must not race to make the same folder
                Path(made).parent.mkdir(parents=True, exist_ok=True)
                return compile_in_turn(
                    [source], *args, output_dir=folder, extra_postargs=flags, **kwargs
                )

            with ThreadPoolExecutor(usable_cores()) as pool:
                if of_cython:
                    translation = pool.submit(translate, list(of_cython.values()))
                return [name for names in pool.map(compile_one, sources) for name in names]

        self.compiler.compile = compile_together
        try:
            super().build_extension(ext)
        finally:
            self.compiler.compile = compile_in_turn


def flags_of(source: str) -> tuple[str, ...]:
    """The further flags of a C file."""
    stem = Path(source).stem
    if source.startswith(TRANSLATED):
        return ("-O3",) if stem in HOT else ("-O1",)
    # headers hold functions of which a file uses some
    flags = (*LOOP_FLAGS, "-Wno-unused-function")
    if not (stem.startswith("simd_base_") and vectors()):
        return flags
    # Where there are kernels for this processor, those of any are there only to be right; in
    # packages, processors without kernels of their own run them.
    return (*flags, "-O1" if vectors() == list(VECTORS) else "-Og")


def objects_of(source: str, flags: list[str]) -> str | None:
    """The folder for the object of a C file that knows nothing of Python; None for other files.

    These files take most of the time. Every Python and numpy can use what is compiled by the same
    compiler with the same flags.
    """
    if Path(source).parent.as_posix() not in (GENERATED, *CSUPPORT):
        return None
    given = [os.environ.get(name, "") for name in ("CFLAGS", "CPPFLAGS")]
    command = [*compiler_command(), *given, *flags]
    name = hashlib.sha256(shlex.join(command).encode()).hexdigest()[:8]
    return f"build/objects-{sysconfig.get_platform()}-{name}"


def is_current(made: Path) -> bool:
    """Whether an object file is younger than all it was made of, which stands beside it (-MMD).

    Headers of packages may be gone: pip installs them for one build.
    """
    listed = made.with_suffix(".d")
    if not (made.exists() and listed.exists()):
        return False
    _, _, files = listed.read_text().replace("\\\n", " ").partition(": ")
    newest = made.stat().st_mtime
    sources = [Path(file).absolute() for file in (*files.split(), __file__)]
    return all(
        path.stat().st_mtime < newest if path.exists() else ROOT not in path.parents
        for path in sources
    )


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":  # processes that compile bytecode import this file too
    setup(
        ext_modules=[extension(), call_stacks()],
        cmdclass={"build_ext": ParallelBuild},
    )
