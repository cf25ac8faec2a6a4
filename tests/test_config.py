"""The table of options: where values come from, what is refused and with which words."""

import copy
import importlib
import os
import pickle
import pwd
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import platformdirs.macos
import platformdirs.unix
import pytest

import opwise
from opwise.config import change_flags, config, local_bitwidth
from opwise.config.folders import _FORMAT_KEYS

pytestmark = pytest.mark.null

# opwise's attribute of this name is the object in the package, not the package itself.
config_module = sys.modules["opwise.config"]
FOLDER = Path(config_module.__file__).parent
VARIABLES = ("THEANO_FLAGS", "OPWISE_FLAGS", "THEANORC", "OPWISERC", "XDG_CACHE_HOME")
LOCKED = "Can't change the value of this config parameter after initialization!"


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Return a function that imports opwise.config anew, under the test's own variables and files.

    ``rc`` is the text of ``~/.theanorc``. The modules of the process are put back.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)

    def load(rc=None, **variables):
        if rc is not None:
            (tmp_path / ".theanorc").write_text(rc)
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        with monkeypatch.context() as changes:
            changes.setattr(opwise, "config", config)
            for name in [n for n in sys.modules if f"{n}.".startswith("opwise.config.")]:
                changes.delitem(sys.modules, name)
            try:
                return importlib.import_module("opwise.config")
            finally:
                for name in [n for n in sys.modules if f"{n}.".startswith("opwise.config.")]:
                    del sys.modules[name]

    return load


@pytest.fixture
def defaults(load):
    """A config on which nothing is set."""
    return load().config


def run(code, **variables):
    """Run a program with the variables given and none of ours; return its process."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment["PYTHONPATH"] = str(FOLDER.parents[1])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


# --- the table ------------------------------------------------------------------------------------


def test_defaults(defaults):
    expected = {
        "floatX": "float64",
        "mode": "Mode",
        "linker": "c|py",
        "optimizer": "fast_run",
        "cxx": "cc",
        "allow_gc": True,
        "on_unused_input": "raise",
        "openmp_elemwise_minsize": 200000,
        "profiling.n_apply": 20,
        "profiling.destination": "stdout",
        "optdb.max_use_ratio": 8.0,
        "ProfileMode.n_apply_to_print": 15,
        "ProfileMode.n_ops_to_print": 20,
        "DebugMode.check_strides": 0,
        "vm.lazy": None,
        "unittests.rseed": "666",
        "dnn.conv.algo_fwd": "small",
        "gpuarray.preallocate": 0.0,
        "warn.inc_subtensor1_opt": True,
    }
    values = {}
    for name in expected:
        value = defaults
        for part in name.split("."):
            value = getattr(value, part)
        values[name] = value
    assert values == expected
    assert all(type(values[name]) is type(expected[name]) for name in expected)


def test_every_flag_has_a_sentence_and_one_place(load):
    module = load()
    params = list(module._config_var_list)
    names = [param.fullname for param in params]
    assert len(names) == len(set(names))
    assert all(param.doc.strip() and param.source == "default" for param in params)
    # Those of Theano 1.0.5, four of 0.6 for ProfileMode, two that old programs still set, and
    # twenty-one of its own: background_compilation, threads, recycle_bytes, strip_bytes,
    # tuning.functions, tuning.budget, profiling.nvtx, profiling.nvtx_library, cuda.graphs,
    # cuda.tf32, compiledir_bytes, keep_shape_checks, conv.algo, conv.winograd, conv.fft,
    # profiling.signal, profiling.sampling, profiling.wait_for_kernels, show_progress,
    # traceback.internal and traceback.libraries.
    assert len(names) == 142 + 4 + 2 + 21


def test_flags_that_count_as_used_are_read_somewhere(defaults):
    unused = {param.fullname for param in defaults.unused()}
    assert {"lib.amdlibm", "dnn.enabled", "warn.round", "vm.lazy", "scan.debug"} <= unused
    sources = [path for path in FOLDER.parent.rglob("*.py") if path.parent != FOLDER]
    text = "".join(path.read_text() for path in sources)
    # where the cache lies is decided inside the table
    inside = {"base_compiledir", "compiledir_format", "home"}
    names = [p.fullname for p in config_module._config_var_list if p.used]
    unread = [n for n in names if not re.search(rf"\.{n.rpartition('.')[2]}\b", text)]
    assert set(unread) <= inside


def test_print_lists_each_flag_with_its_value(defaults):
    text = str(defaults)
    doc = "The dtype of Python floats and of matrix(), vector() and the like."
    assert text.startswith(
        f"floatX (('float64', 'float32', 'float16')) \n    Doc:  {doc}\n    Value:  float64\n\n"
    )
    assert "\nprofiling.n_apply (<class 'int'>) \n" in text
    assert text.count("    Value:  ") == 169
    assert str(defaults.dnn.conv).count("    Value:  ") == 7


# --- where a value comes from ---------------------------------------------------------------------


def test_precedence_of_the_sources(load, tmp_path):
    own = tmp_path / "own.rc"
    own.write_text("[global]\nfloatX = float16\nlinker = vm\n[profiling]\nn_apply = 2\n")
    module = load(
        rc="[global]\nfloatX=float32\nlinker=py\nallow_gc=False\n[profiling]\nn_apply=1\nn_ops=1\n",
        OPWISERC=str(own),
        THEANO_FLAGS="linker=cvm,profiling.n_apply=3,exception_verbosity=high",
        OPWISE_FLAGS="profiling.n_apply=4",
    )
    fresh = module.config
    assert fresh.allow_gc is False  # ~/.theanorc
    assert fresh.floatX == "float16"  # OPWISERC
    assert fresh.linker == "cvm"  # THEANO_FLAGS
    assert fresh.profiling.n_apply == 4  # OPWISE_FLAGS
    fresh.profiling.n_apply = 5
    assert (fresh.profiling.n_apply, fresh.profiling.n_ops) == (5, 1)
    sources = {param.fullname: param.source for param in module._config_var_list}
    assert sources["allow_gc"] == str(tmp_path / ".theanorc")
    assert sources["floatX"] == str(own)
    assert sources["linker"] == "THEANO_FLAGS"
    assert sources["profiling.n_apply"] == "code"
    assert sources["mode"] == "default"


def test_theanorc_lists_files_and_the_last_one_wins(load, tmp_path):
    (tmp_path / "a.rc").write_text("[global]\nmode = FAST_COMPILE\nlinker = c\n")
    (tmp_path / "b.rc").write_text("[global]\nlinker = py\n[DebugMode]\npatience = 3\n")
    files = os.pathsep.join(["~/a.rc", str(tmp_path / "b.rc"), str(tmp_path / "missing.rc")])
    module = load(rc="[global]\nfloatX = float16\n", THEANORC=files)
    fresh = module.config
    assert (fresh.mode, fresh.linker, fresh.DebugMode.patience) == ("FAST_COMPILE", "py", 3)
    assert fresh.floatX == "float64"  # ~/.theanorc is not read then
    assert module.config_files_from_theanorc()[0] == str(tmp_path / "a.rc")
    assert module.config_files[-1] == str(tmp_path / ".opwiserc")


def test_a_file_takes_names_of_any_case_nested_sections_and_user(load, monkeypatch):
    monkeypatch.setenv("USER", "ada")
    fresh = load(
        rc="[global]\nFLOATX = float32\nbase_compiledir = /somewhere/%(USER)s\n"
        "compiledir_format = on-%(python_bitwidth)s\n[dnn.conv]\nalgo_fwd = fft\n"
    ).config
    assert (fresh.floatX, fresh.dnn.conv.algo_fwd) == ("float32", "fft")
    assert fresh.base_compiledir == "/somewhere/ada"
    assert fresh.compiledir == f"/somewhere/ada/on-{local_bitwidth()}"


def test_flags_may_have_blanks_repetitions_and_quotes(load):
    fresh = load(
        THEANO_FLAGS=' floatX = float16 ,mode=FAST_COMPILE,,floatX=float32,gcc.cxxflags="-O1,-g #x"'
    ).config
    assert (fresh.floatX, fresh.mode) == ("float32", "FAST_COMPILE")
    assert fresh.gcc.cxxflags == "-O1,-g #x"


def test_an_empty_value_is_a_value(load):
    assert load(THEANO_FLAGS="cxx=").config.cxx == ""


@pytest.mark.parametrize("variable", ["THEANO_FLAGS", "OPWISE_FLAGS"])
def test_unknown_flags_warn(load, variable):
    with pytest.warns(UserWarning) as record:
        load(**{variable: "zork=1,floatx=float32"})
    first, second = (str(warning.message) for warning in record)
    who = {"THEANO_FLAGS": "Theano", "OPWISE_FLAGS": "opwise"}[variable]
    assert first.startswith(f"{who} does not recognise this flag: floatx")
    assert variable in first and "Did you mean floatX?" in first
    assert second.startswith(f"{who} does not recognise this flag: zork")


def test_unknown_flags_of_a_file_warn(load, tmp_path):
    with pytest.warns(UserWarning, match=r"recognise this flag: profiling\.n_aply") as record:
        load(rc="[profiling]\nn_aply = 1\nn_ops = 2\n")
    assert len(record) == 1
    assert str(tmp_path / ".theanorc") in str(record[0].message)


def test_a_flag_without_a_value_is_ignored_with_a_warning(load):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        fresh = load(THEANO_FLAGS="profile,floatX=float32").config
    assert [warning.category.__name__ for warning in record] == ["TheanoConfigWarning"]
    text = str(record[0].message)
    assert text.startswith("Config key 'profile' has no value, ignoring it in THEANO_FLAGS")
    assert (fresh.profile, fresh.floatX) == (False, "float32")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (
            "floatX=float99",
            'Invalid value ("float99") for configuration variable "floatX". '
            "Valid options are ('float64', 'float32', 'float16') (It is set in OPWISE_FLAGS.)",
        ),
        ("profile=yes", 'Invalid value (yes) for configuration variable "profile".'),
        ("profiling.n_ops=abc", "invalid literal for int() with base 10: 'abc'"),
        ("device=GPU", 'Invalid value (GPU) for configuration variable "device".'),
        ("vm.lazy=maybe", "Valid values are None, True and False."),
        ("compiledir_format=%(zork)s", "python_bitwidth, python_int_bitwidth, python_version"),
        ("mode=MonitorMode", "'PROFILE_MODE', 'DEBUG_MODE' or an instance of Mode."),
        ('floatX="float32', "Cannot split the flags in OPWISE_FLAGS: No closing quotation"),
    ],
)
def test_a_bad_value_outside_the_program_names_its_source(load, flags, text):
    with pytest.raises(ValueError, match="OPWISE_FLAGS") as error:
        load(OPWISE_FLAGS=flags)
    assert text in str(error.value)


def test_a_bad_value_in_a_file_names_the_file(load, tmp_path):
    with pytest.raises(ValueError, match=r"DebugMode\.patience") as error:
        load(rc="[DebugMode]\npatience = 0\n")
    assert "integers >= 1" in str(error.value)
    assert str(tmp_path / ".theanorc") in str(error.value)


def test_a_file_that_is_no_ini_file_is_named(load, tmp_path):
    with pytest.raises(ValueError, match=r"Write \[global\]") as error:
        load(rc="floatX = float32\n")
    assert str(tmp_path / ".theanorc") in str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("true", True), ("1", True), ("False", False), ("false", False), ("0", False)],
)
def test_spellings_of_bools(load, text, value):
    assert load(THEANO_FLAGS=f"profile={text}").config.profile is value


def test_the_import_is_light_and_reads_the_environment(tmp_path):
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "parent = sys.modules['opwise'] = type(sys)('opwise')\n"  # opwise without its imports
        f"parent.__path__ = [{str(FOLDER.parent)!r}]\n"
        "import opwise.config; m = sys.modules['opwise.config']\n"
        "heavy = {'numpy', 'configparser', 'subprocess', 'platform', 'difflib'} - before\n"
        "print(sorted(heavy & set(sys.modules)), m.config.floatX)\n"
        "print(m.config.compiledir)\n"
    )
    done = run(code, HOME=str(tmp_path), THEANO_FLAGS="floatX=float32")
    assert done.returncode == 0, done.stderr
    first, compiledir = done.stdout.splitlines()
    assert first == "[] float32"
    assert Path(compiledir).parent == tmp_path / ".cache" / "opwise"
    assert list(tmp_path.iterdir()) == []


# --- folders --------------------------------------------------------------------------------------


def test_compiledir_lies_in_the_cache_folder_of_the_user(load, tmp_path):
    fresh = load(XDG_CACHE_HOME=str(tmp_path / "cache")).config
    assert fresh.base_compiledir == str(tmp_path / "cache" / "opwise")
    assert os.path.dirname(fresh.compiledir) == fresh.base_compiledir
    assert os.path.basename(fresh.compiledir).startswith("compiledir_")
    assert fresh.gpuarray.cache_path == os.path.join(fresh.compiledir, "gpuarray_kernels")
    assert not (tmp_path / "cache").exists()
    assert load(XDG_CACHE_HOME="relative").config.base_compiledir == str(
        tmp_path / ".cache" / "opwise"
    )


@pytest.mark.parametrize(
    ("system", "variable"),
    [(platformdirs.unix.Unix, None), (platformdirs.unix.Unix, "/var/caches"),
     (platformdirs.macos.MacOS, None)],
)  # fmt: skip
def test_the_cache_folder_is_that_of_platformdirs(load, monkeypatch, tmp_path, system, variable):
    monkeypatch.setattr(sys, "platform", "darwin" if "MacOS" in system.__name__ else "linux")
    given = {} if variable is None else {"XDG_CACHE_HOME": variable}
    assert load(**given).config.base_compiledir == system("opwise").user_cache_dir


def test_base_compiledir_format_and_compiledir_are_respected(load, tmp_path):
    keys = list(_FORMAT_KEYS)
    pattern = "+".join(f"%({key})s" for key in keys)
    fresh = load(THEANO_FLAGS=f"base_compiledir=~/base,compiledir_format=x-{pattern},cxx=").config
    folder, values = fresh.compiledir.rsplit("/x-", 1)
    assert folder == str(tmp_path / "base")
    values = dict(zip(keys, values.split("+"), strict=True))
    assert values["device"] == "cpu"
    assert values["gxx_version"] == "no_compiler"
    assert values["python_version"].startswith("{}.{}.".format(*sys.version_info))
    assert load(THEANO_FLAGS="compiledir=~/here").config.compiledir == str(tmp_path / "here")


@pytest.mark.parametrize("home", [None, "", "relative/home"])
def test_without_a_usable_HOME_the_user_database_gives_the_home(load, monkeypatch, home):
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", home)
    known = pwd.getpwuid(os.getuid()).pw_dir
    assert load().config.base_compiledir == os.path.realpath(f"{known}/.cache/opwise")


def test_a_user_whom_the_system_does_not_know_has_a_cache_and_no_files(load, monkeypatch, tmp_path):
    """Not a folder or a file called ~ in the working directory, which others may have made."""

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / ".theanorc").write_text("[global]\nfloatX = float32\n")
    fresh = load()
    assert fresh.config_files == [] and fresh.config.floatX == "float64"
    assert fresh.config.base_compiledir == str(tmp_path / "tmp" / f"opwise-{os.getuid()}")
    with pytest.raises(ValueError, match=r"There is no home folder for ~: write the whole path"):
        load(OPWISE_FLAGS="base_compiledir=~/kernels")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "It is empty: name a folder, or leave the flag out."),
        (" ", "It is empty"),
        ("~nosuchuser/x", "There is no home folder for ~nosuchuser: write the whole path."),
    ],
)
@pytest.mark.parametrize("flag", ["base_compiledir", "compiledir", "gpuarray.cache_path"])
def test_invalid_folders_are_refused(load, flag, value, reason):
    with pytest.raises(ValueError, match="OPWISE_FLAGS") as error:
        load(OPWISE_FLAGS=f"{flag}='{value}'")
    assert f'"{flag}". {reason}' in str(error.value)


def test_a_relative_folder_is_found_once(load, tmp_path, monkeypatch):
    """It is within the working directory at the start of the program."""
    monkeypatch.chdir(tmp_path)
    fresh = load(OPWISE_FLAGS="base_compiledir=kernels")
    monkeypatch.chdir("/")
    assert fresh.config.base_compiledir == str(tmp_path / "kernels")


# --- reading and setting in the program -----------------------------------------------------------


def test_setting_is_seen_at_once_also_through_a_held_section(defaults):
    section = defaults.profiling
    defaults.profiling.n_apply = "7"
    assert section.n_apply == 7
    section.n_ops = 0
    assert defaults.profiling.n_ops == 0
    defaults.dnn.conv.algo_fwd = "winograd"
    assert defaults.dnn.conv.algo_fwd == "winograd"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (
            "floatX",
            "float99",
            'Invalid value ("float99") for configuration variable "floatX". '
            "Valid options are ('float64', 'float32', 'float16')",
        ),
        (
            "profile",
            "maybe",
            'Invalid value (maybe) for configuration variable "profile". It is neither true nor '
            "false. Valid values are True, true, 1, False, false and 0.",
        ),
        (
            "openmp_elemwise_minsize",
            -1,
            'Invalid value (-1) for configuration variable "openmp_elemwise_minsize". '
            "Valid values are integers >= 0.",
        ),
        ("linker", "C|PY", "'cvm', 'cvm_nogc', 'cupy')"),
    ],
)
def test_bad_values(defaults, name, value, text):
    before = getattr(defaults, name)
    with pytest.raises(ValueError) as error:
        setattr(defaults, name, value)
    assert text in str(error.value)
    assert getattr(defaults, name) == before


def test_names_of_linkers_and_optimizers(defaults):
    for linker in "py c c|py c|py_nogc c&py vm vm_nogc cvm cvm_nogc cupy".split():
        defaults.linker = linker
        assert defaults.linker == linker
    names = "fast_run fast_compile merge o1 o2 o3 o4 unsafe stabilize fast_run_stable None"
    for optimizer in [*names.split(), None]:
        defaults.optimizer = optimizer
        assert defaults.optimizer == str(optimizer)


def test_names_of_devices(defaults, load):
    for device in ("cpu", "cuda", "cuda1", "gpu", "gpu0"):
        assert load(THEANO_FLAGS=f"device={device}").config.device == device


def test_modes(load):
    module = load()

    class Mode:
        def __init__(self):
            self.linker = "py"

        @property
        def optimizer(self):
            raise AssertionError("config looked at the optimizer")

    mode = Mode()
    for value in (mode, "FAST_RUN", "PROFILE_MODE", "ProfileMode", "NanGuardMode", "DEBUG_MODE"):
        module.config.mode = value
        assert module.config.mode is value
    for value in ("fast_run", "mine", 42, None, Mode):
        with pytest.raises(ValueError, match="Expected one of those string 'Mode', 'ProfileMode'"):
            module.config.mode = value
    module.register_mode_name("mine")
    module.config.mode = "mine"
    assert module.config.mode == "mine"


def test_unknown_attributes(defaults):
    with pytest.raises(AttributeError) as error:
        _ = defaults.zork
    assert str(error.value).startswith("'TheanoConfigParser' object has no attribute 'zork'")
    assert "there is no flag zork." in str(error.value)
    with pytest.raises(AttributeError, match=r"no flag floatx\. Did you mean floatX\?"):
        _ = defaults.floatx
    with pytest.warns(UserWarning, match=r"no flag floatx, .* no effect\. Did you mean floatX\?"):
        defaults.floatx = "float32"
    assert not hasattr(defaults.profiling, "zork")
    defaults.zork = 3
    assert defaults.zork == 3
    del defaults.zork
    assert not hasattr(defaults, "zork")


def test_flags_and_sections_cannot_be_deleted(defaults):
    with pytest.raises(AttributeError, match="floatX cannot be deleted"):
        del defaults.floatX
    with pytest.raises(AttributeError, match="profiling cannot be deleted"):
        del defaults.profiling
    assert (defaults.floatX, defaults.profiling.n_apply) == ("float64", 20)


def test_a_section_cannot_be_replaced(defaults):
    with pytest.warns(UserWarning, match=r"dnn\.conv is a section.*dnn\.conv\.algo_fwd"):
        defaults.dnn.conv = "deterministic"
    assert defaults.dnn.conv.algo_fwd == "small"


@pytest.mark.parametrize("name", ["device", "optimizer_including", "base_compiledir", "compiledir"])
def test_locked_flags(defaults, name):
    before = getattr(defaults, name)
    with pytest.raises(Exception) as error:
        setattr(defaults, name, before)
    assert type(error.value) is Exception
    assert str(error.value).startswith(LOCKED)
    assert f"Set {name} in OPWISE_FLAGS" in str(error.value)
    assert getattr(defaults, name) == before


def test_there_is_one_config_in_a_process():
    assert pickle.loads(pickle.dumps(config)) is config
    assert copy.deepcopy(config.dnn.conv) is config.dnn.conv


def test_dir_names_flags_and_sections(defaults):
    assert {"floatX", "compiledir", "profiling"} <= set(dir(defaults))
    assert "n_apply" in dir(defaults.profiling)


# --- change_flags ---------------------------------------------------------------------------------


def test_change_flags_as_a_block_and_after_an_exception(load):
    module = load(THEANO_FLAGS="floatX=float16")
    fresh, n_apply = module.config, {"profiling.n_apply": 5}
    with module.change_flags(n_apply, floatX="float32"):
        assert (fresh.floatX, fresh.profiling.n_apply) == ("float32", 5)
    with pytest.raises(KeyError), module.change_flags([("floatX", "float32")]):
        assert fresh.floatX == "float32"
        raise KeyError
    assert (fresh.floatX, fresh.profiling.n_apply) == ("float16", 20)
    param = next(iter(module._config_var_list))
    assert (param.fullname, param.source) == ("floatX", "THEANO_FLAGS")


def test_change_flags_as_a_decorator_of_a_recursive_function():
    @change_flags(compute_test_value="warn")
    def count(depth):
        if depth:
            count(depth - 1)
        return config.compute_test_value

    before = config.compute_test_value
    assert count(2) == "warn"
    assert config.compute_test_value == before
    assert count.__name__ == "count"


def test_one_change_flags_may_be_entered_twice():
    before = config.traceback.limit
    change = change_flags({"traceback.limit": before + 1})
    for _ in range(2):
        with change, change:
            assert config.traceback.limit == before + 1
        assert config.traceback.limit == before


def test_change_flags_that_fails_changes_nothing():
    before = config.exception_verbosity, config.print_test_value
    good = {"exception_verbosity": "high", "print_test_value": True}
    with pytest.raises(AssertionError, match=r"no flag 'floatx'.*floatX"):
        change_flags(floatx="float32")
    for bad, error in ({"floatX": "zz"}, ValueError), ({"optimizer_excluding": "x"}, Exception):
        with pytest.raises(error):
            change_flags({**good, **bad}).__enter__()
        assert (config.exception_verbosity, config.print_test_value) == before


# --- flags that programs add ----------------------------------------------------------------------


def test_add_config_var(load):
    with pytest.warns(UserWarning, match=r"mine\.set"):
        module = load(THEANO_FLAGS="mine.set=4")
    for name in ("mine.plain", "mine.set", "mine.deep.later"):
        default = (lambda: 6) if name.endswith("later") else 3
        module.AddConfigVar(name, "Some doc.", module.IntParam(default, lambda value: value > 0))
    mine = module.config.mine
    assert (mine.plain, mine.set, mine.deep.later) == (3, 4, 6)
    with pytest.raises(ValueError, match=r'\(-1\) for configuration variable "mine\.plain"'):
        mine.plain = -1
    with module.change_flags({"mine.plain": 9}):
        assert mine.plain == 9
    assert mine.plain == 3
    assert "mine.deep.later (<class 'int'>) \n    Doc:  Some doc.\n    Value:  6" in str(
        module.config
    )


def test_add_config_var_refuses_bad_names_and_defaults(load):
    module = load()
    for name in ("floatX", "profiling", "profiling.n_apply", "unused"):
        with pytest.raises(AttributeError, match="This name is already taken"):
            module.AddConfigVar(name, "doc", module.StrParam("x"))
    with pytest.raises(TypeError, match=r"config\.floatX has the value"):
        module.AddConfigVar("floatX.inner", "doc", module.StrParam("x"))
    with pytest.raises(ValueError, match=r'\(0\) for configuration variable "mine\.bad"'):
        module.AddConfigVar("mine.bad", "doc", module.IntParam(0, lambda value: value > 0))
    assert not hasattr(module.config.mine, "bad")
    with pytest.raises(ValueError, match="are strings"):
        module.EnumStr("a", 1)


def test_own_filters_and_locked_flags(load):
    module = load(OPWISE_FLAGS="profile=1")
    module.AddConfigVar("double", "doc", module.ConfigParam(2, lambda value: value * 2))
    module.AddConfigVar("fixed", "doc", module.BoolParam(False, allow_override=False))
    module.AddConfigVar("kind", "doc", module.EnumStr("a", "b", convert=str.lower))
    module.config.kind = "B"
    module.config.double = 5
    assert (module.config.double, module.config.kind) == (10, "b")
    with pytest.raises(Exception, match=LOCKED.replace("(", r"\(")):
        module.config.fixed = True


def test_programs_that_use_the_parameters_themselves(load):
    # Some find a flag in the list and read and write through it.
    module = load()
    (param,) = [p for p in module._config_var_list if p.fullname == "compute_test_value"]
    assert param.__get__(True, None) == "off"
    param.__set__(None, "raise")
    assert module.config.compute_test_value == "raise"
    assert (param.default, param.allow_override, param.in_c_key) == ("off", True, False)


def test_config_hash_depends_on_the_keyed_flags_alone(load):
    module = load()
    before = module.get_config_hash()
    with module.change_flags(profile=True):
        assert module.get_config_hash() == before
    with module.change_flags(floatX="float32"):
        assert module.get_config_hash() != before
    module.AddConfigVar("keyed", "doc", module.StrParam("x"), in_c_key=True)
    assert module.get_config_hash() != before


def test_a_missing_device_brings_one_warning_and_the_cpu_computes():
    script = (
        "import theano, theano.tensor as T\n"
        "x = T.scalar('x')\n"
        "for _ in range(2): f = theano.function([x], x * 2)\n"
        "print(f(4))"
    )
    flags = os.environ.get("OPWISE_FLAGS", "")
    env = {**os.environ, "OPWISE_FLAGS": ",".join(filter(None, (flags, "device=gpu0")))}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "8.0"
    assert done.stderr.count("gpu0 cannot be used; functions run on the CPU") == 1
