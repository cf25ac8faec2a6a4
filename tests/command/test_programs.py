"""Programs under the command: scripts and modules, Ctrl-C in a terminal, signals, full disks."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opwise.command import programs, run
from opwise.hardware import cpu
from opwise.linkers import kernelcache
from opwise.profiling.process import send_status
from opwise.profiling.profile import Profile

pytestmark = pytest.mark.skipif(not hasattr(os, "openpty"), reason="the system has no terminals")


def _beside(name):
    """Import a module that lies beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


terminal = _beside("terminal")

FUNCTION = """
import sys, time
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
f = theano.function([x], T.exp(x) * 2, name="f")
for _ in range(3):
    f(np.ones(1000))
"""
WAITS = f"{FUNCTION}\nprint('ready', flush=True)\ntime.sleep(100)\n"


@pytest.fixture
def script(tmp_path, monkeypatch):
    """``script(text, name)``: the path of a program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPWISE_PROFILE_OWNER", raising=False)

    def write(text, name="program.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def opwise(*args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "opwise", *map(str, args)], capture_output=True, text=True, **kwargs
    )


def in_terminal(*words):
    return terminal.Terminal("-m", "opwise", *words)


# --- Ctrl-C ---------------------------------------------------------------------------------------


def test_ctrl_c_keeps_the_profile(script):
    shown = in_terminal("run", "--no-limits", script(WAITS))
    shown.until("ready")
    shown.press(terminal.CTRL_C)
    assert shown.end() == 130
    assert "interrupted; the profile up to then was written" in shown.shown
    assert "1 function, 3 calls" in shown.shown and "Aborted" not in shown.shown
    assert Profile.load("program.profile.json").functions[0].calls == 3


def test_a_program_that_handles_ctrl_c_goes_on(script):
    waits = "try:\n    print('ready', flush=True)\n    time.sleep(100)\n"
    handles = "except KeyboardInterrupt:\n    f(x0)\n"
    path = script(
        f"import numpy\n{FUNCTION}\nx0 = numpy.ones(5)\n{waits}{handles}print('cleaned up')\n"
    )
    shown = in_terminal("run", "--no-limits", path)
    shown.until("ready")
    shown.press(terminal.CTRL_C)
    assert shown.end() == 0, shown.shown
    assert "cleaned up" in shown.shown
    assert Profile.load("program.profile.json").functions[0].calls == 4


def test_ctrl_c_twice_keeps_the_profile_too(script):
    """The second comes while the file is written."""
    slow = "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
    path = script(WAITS.replace("import sys, time\n", "import sys, time\n" + slow))
    shown = in_terminal("run", "--no-limits", path)
    shown.until("ready")
    shown.press(terminal.CTRL_C)
    assert shown.end() in (130, 1)
    assert Profile.load("program.profile.json").functions[0].calls == 3


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_command_ends_the_program(script, tmp_path, number, code):
    path = script(WAITS.replace("print('ready', flush=True)", "open('ready', 'w').close()"))
    process = subprocess.Popen(
        [sys.executable, "-m", "opwise", "run", "--no-limits", str(path)],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    terminal.wait_for((tmp_path / "ready").exists)
    process.send_signal(number)
    _, said = process.communicate(timeout=100)
    assert process.returncode == code, said
    how = {signal.SIGINT: "interrupted", signal.SIGTERM: "ended by SIGTERM"}[number]
    assert f"{how}; the profile up to then was written" in said
    assert Profile.load("program.profile.json").functions[0].calls == 3


TUNED = """
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
f = theano.function([x], T.extra_ops.Unique()(x).sum(), name="slow")
f(np.ones(3_000_000))
print("ready", flush=True)
"""


def test_tune_gives_what_it_has_found(script):
    """Ctrl-C during the program and again during the trials."""
    path = script(f"{TUNED}\nimport time\ntime.sleep(100)\n")
    shown = in_terminal("tune", "--budget", 300, "--flags", "cxx=", path)
    shown.until("ready")
    shown.press(terminal.CTRL_C)
    shown.until("the program was interrupted; trying changes that may make it faster")
    shown.until("%")  # the progress of the trials
    shown.press(terminal.CTRL_C)
    assert shown.end() == 130
    assert "s in calls of slow: " in shown.shown or "nothing was tried on: slow" in shown.shown
    assert "interrupted" in shown.shown.split("s; Ctrl-C ends that too)")[1]


def test_versus_shows_what_was_measured(script, tmp_path):
    path = script(f"{FUNCTION}\nimport pathlib\npathlib.Path('runs').open('a').write('x')\n"
                  "if len(pathlib.Path('runs').read_text()) > 6: time.sleep(100)\n")  # fmt: skip
    shown = in_terminal("versus", "--after-flags", "mode=FAST_COMPILE", "--runs", 50, path)
    terminal.wait_for(lambda: len((tmp_path / "runs").read_text()) > 6
                      if (tmp_path / "runs").exists() else False)  # fmt: skip
    shown.press(terminal.CTRL_C)
    assert shown.end() == 130
    assert "interrupted after 2 of 50 runs" in shown.shown
    assert "all Applys" in shown.shown and "Traceback" not in shown.shown


def test_ctrl_c_prints_no_traceback(script, tmp_path, build):
    """As while a profile is read: no traceback, no `Aborted!`."""
    code = ("from opwise.command import main, files\n"
            "def one(paths): raise KeyboardInterrupt\n"
            "files.one = one\nmain.main(['report', '.'])")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


# --- modules --------------------------------------------------------------------------------------


@pytest.fixture
def package(script):
    """A package with a module, an entry and a relative import."""
    script("", "package/__init__.py")
    script("WORD = 'from beside'", "package/beside.py")
    body = f"from .beside import WORD\n{FUNCTION}\nprint(WORD, __name__, sys.argv[1:])\n"
    script(body, "package/module.py")
    script(body, "package/__main__.py")


@pytest.mark.parametrize(("name", "stem"), [("package.module", "module"), ("package", "package")])
def test_run_a_module(package, name, stem):
    done = opwise("run", "--no-limits", "-m", name, "-m", "x", "--mode=y")
    assert done.stdout == "from beside __main__ ['-m', 'x', '--mode=y']\n", done.stderr
    assert Profile.load(f"{stem}.profile.json").functions[0].calls == 3


def test_tune_and_versus_run_modules(package):
    done = opwise("tune", "--budget", 0.1, "-m", "package.module", "a")
    assert "from beside __main__ ['a']" in done.stdout and "in calls of f:" in done.stdout
    done = opwise("versus", "--runs", 1, "--after-flags", "mode=FAST_COMPILE", "-m", "package")
    assert done.returncode == 0 and "all Applys" in done.stdout


def test_a_module_that_is_not_there(script):
    done = opwise("run", "--no-limits", "-m", "no.such.module")
    assert done.returncode == 1 and "No module named" in done.stderr
    assert "no profile was written: the program ended early, with exit status 1" in done.stderr


def test_a_missing_program(call):
    for command in ("run", "tune"):
        result = call(command)
        assert result.exit_code == 2 and "Missing argument 'SCRIPT'" in result.output
        assert call(command, "-m").exit_code == 2


# --- what became of the profile -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print(1)", "the program imported neither theano nor opwise, or ended by os._exit"),
        ("import theano", "the program compiled no function, or only under DebugMode"),
        ("import opwise", "the program compiled no function, or only under DebugMode"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
         "the program was ended by SIGKILL"),
    ],
)  # fmt: skip
def test_why_there_is_no_profile(script, text, why):
    done = opwise("run", "--no-limits", script(text))
    assert done.stderr.splitlines()[-1] == f"no profile was written: {why}"


def test_a_program_under_debugmode_runs(script):
    text = "import theano; x = theano.tensor.dscalar(); print(theano.function([x], x + 1)(2))"
    done = opwise("run", "--no-limits", "--mode", "DEBUG_MODE", script(text))
    assert done.returncode == 0 and done.stdout == "3.0\n"
    assert done.stderr.endswith("compiled no function, or only under DebugMode\n")


def full(path):
    """Mount a file system on a folder, and fill it."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    (path / "all").write_bytes(b"x" * 4096)


def test_a_full_disk(script, tmp_path):
    path, disk = script(FUNCTION), tmp_path / "disk"
    full(disk)
    try:
        done = opwise("run", "--no-limits", "-o", disk / "p.json", path)
        assert done.returncode == 1
        reason = "cannot write the file: [Errno 28] No space left on device"
        assert done.stderr.splitlines()[-1] == f"no profile was written: {reason}"
        assert "Function profiling" in done.stderr  # it is not lost
        assert os.listdir(disk) == ["all"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_vanishes(script, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = opwise("run", "--no-limits", "-o", gone / "p.json",
                  script(f"import os\nos.rmdir({str(gone)!r})\n{FUNCTION}"))  # fmt: skip
    assert done.returncode == 1 and "no profile was written: cannot write the file:" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_exit_code_stays_the_programs(script, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    text = f"import os\nos.rmdir({str(gone)!r})\n{FUNCTION}\nsys.exit(7)"
    assert opwise("run", "--no-limits", "-o", gone / "p.json", script(text)).returncode == 7


CHILDREN = f"""
import multiprocessing, os, subprocess, sys
def work(number):
    exec({FUNCTION!r}, globals())
if __name__ == "__main__":
    work(0)
    child = multiprocessing.get_context("spawn").Process(target=work, args=(1,), name="the worker")
    child.start()
    child.join()
    subprocess.run([sys.executable, "beside.py"], check=True)
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_a_worker_that_compiles_first_has_a_file_of_its_own(script, how):
    text = CHILDREN.replace("    work(0)\n", "").replace('"spawn"', f'"{how}"')
    text = text.replace('subprocess.run([sys.executable, "beside.py"], check=True)', "work(0)")
    done = opwise("run", "--no-limits", script(text))
    assert done.returncode == 0, done.stderr
    own = Profile.load("program.profile.json")
    (file,) = re.findall(r"Applys: (program\.profile\.\d+\.json)$", done.stderr, re.M)
    assert own.environment["process"] != Profile.load(file).environment["process"]
    assert [f.calls for f in own.functions] == [3]


def test_files_below_the_folder_have_short_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"a.json": "a.json", "b/c d.json": "'b/c d.json'", "-o": str(tmp_path / "-o")}
    assert {name: run.shell_word(tmp_path / name) for name in names} == names
    assert run.shell_word(tmp_path.parent / "a.json") == f"{tmp_path.parent}/a.json"


def test_processes_are_named(script):
    script(FUNCTION, "beside.py")
    done = opwise("run", "--no-limits", script(CHILDREN))
    assert done.returncode == 0, done.stderr
    said = done.stderr
    assert re.search(r"^process \d+, the worker \(.*\):$", said, re.M)
    assert re.search(r"^process \d+ \(beside\.py\):$", said, re.M)
    files = re.findall(r"^  1 function, 3 calls, .* s in their Applys: (.*\.json)$", said, re.M)
    assert len(files) == 2
    for file in files:
        number = int(file.split(".")[-2])
        assert Profile.load(file).environment["process"] == number
        assert f"process {number}" in said
    all_files = " ".join(["program.profile.json", *files])
    assert f"all together: opwise report {all_files}\n" in said


ODD = [
    "o'brien",
    'say "hi"',
    "back\\slash",
    "a,b",
    "new\nline",
    "-dash",
    "100%s=1",
    "naïve \udcff",
    " #a",
]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_odd_names_of_programs_and_files(script, name, monkeypatch):
    monkeypatch.setenv("OPWISE_FLAGS", "mine='a,b'")
    text = f"{FUNCTION}\nassert theano.config.profiling.destination.endswith('.json')\n"
    path = script(text, f"{name}/{name}.py")
    monkeypatch.chdir(path.parent)
    done = opwise("run", "--no-limits", "--", f"{name}.py")
    assert done.returncode == 0, done.stderr
    kept = path.with_suffix(".profile.json")
    assert [f.calls for f in Profile.load(kept).functions] == [3]
    assert opwise("report", "--", kept.name).returncode == 0


MANY = f"""
import os
{FUNCTION}
for _ in range(6):
    process = os.fork()
    if not process:
        f(np.ones(3))
        sys.exit()
    os.waitpid(process, 0)
"""


@pytest.mark.parametrize("old", [False, True])
def test_the_files_of_a_run_are_named_and_no_others(script, old):
    path = script(MANY, "it's [1].py")
    (path.parent / "other.json").write_text("{}")
    if old:
        (path.parent / "it's [1].profile.1.json").write_text("{}")
    done = opwise("run", "--no-limits", path)
    (words,) = re.findall(r"^all together: opwise report (.*)$", done.stderr, re.M)
    assert ("*" in words) == (not old)
    listed = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {words}"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    names = sorted(Path(name).name for name in listed)
    assert len(names) == 7 and all(name.startswith("it's [1].profile.") for name in names)
    assert "it's [1].profile.1.json" not in names
    assert opwise("report", *listed).returncode == 0


# --- the pipe -------------------------------------------------------------------------------------


def test_messages_without_a_reader(monkeypatch):
    for value in ("", "no:number", "99999:1"):
        monkeypatch.setenv("OPWISE_STATUS_PIPE", value)
        assert send_status(event="written") is None


def test_another_file_of_the_same_number_is_left_alone(tmp_path, monkeypatch):
    with (tmp_path / "mine").open("wb") as mine:
        monkeypatch.setenv("OPWISE_STATUS_PIPE", f"{mine.fileno()}:1")
        send_status(event="written")
    assert (tmp_path / "mine").read_bytes() == b""


def test_other_bytes_in_the_pipe_are_ignored(script):
    text = ("import os\npipe = int(os.environ['OPWISE_STATUS_PIPE'].split(':')[0])\n"
            "os.write(pipe, b'no JSON\\n{\"event\": \"x\"}\\n' + b'y' * 20)\n")  # fmt: skip
    ended = programs.run([sys.executable, str(script(text))], dict(os.environ))
    assert (ended.returncode, ended.messages) == (0, ({"event": "x"},))
    assert json.dumps(ended.messages)


# --- limits of the hardware -----------------------------------------------------------------------


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """``measured(quiet)``: make measuring fast, with other programs at work; how often it ran."""
    measure = cpu.measure
    monkeypatch.setattr(kernelcache, "folder", lambda: str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()

    def prepare(quiet):
        runs = []

        def fake(*_):
            runs.append(quiet)
            return replace(measure(duration=0.01, largest=1 << 17), quiet=quiet)

        monkeypatch.setattr(cpu, "measure", fake)
        return runs

    return prepare


def test_a_program_without_opwise_measures_nothing(script, measured, call_apart):
    runs = measured(1.0)
    done = call_apart("run", script("print('no arrays')"))
    assert "measuring" not in done.stderr and not runs
    assert not call_apart("run", script("import sys; sys.exit(3)")).stderr.count("measuring")


@pytest.mark.parametrize(("quiet", "most"), [(1.0, 1), (0.1, 3)])
def test_limits_are_measured_a_few_times_at_most(script, measured, call_apart, quiet, most):
    runs, path = measured(quiet), script(FUNCTION)
    said = [call_apart("run", path).stderr for _ in range(most + 2)]
    assert len(runs) == most
    assert ["measuring" in text for text in said] == [True] * most + [False] * 2
    if most > 1:
        assert "FLOP/s again (2 of at most 3)..." in said[1]
        assert "the next `opwise run` measures again" in said[1]
        assert "`opwise report --limits` measures again" in said[2]
    assert cpu.known().times == most


def test_limits_that_were_measured_after_a_program_are_in_its_profile(script, measured, call):
    measured(1.0)
    call("run", script(FUNCTION))
    profile = Profile.load("program.profile.json")
    assert profile.machine == cpu.known() is not None


def test_limits_that_cannot_be_kept_say_so(script, measured, call_apart, monkeypatch):
    measured(1.0)
    monkeypatch.setattr(cpu, "write", lambda path, text: None)
    assert "they cannot be kept, because " in call_apart("run", script(FUNCTION)).stderr


def test_pytensor_is_needed_for_its_programs(script, call, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "pytensor" else find(name, *a)
    )
    result = call("run", "--pytensor", script("print(1)"))
    assert result.exit_code == 1
    assert "--pytensor needs PyTensor: pip install 'opwise[pytensor]'" in result.output
