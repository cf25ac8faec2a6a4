"""Which files of the packages an installation has: what is read at run time, and nothing else."""

import re
from pathlib import Path

import pytest
import setuptools

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.null

#: what only a build of the extension, or of the vendored files, reads
OF_BUILDS = re.compile(
    r"opwise/linkers/((native/)?\w+\.(pyx|pxd)|csupport/\w+\.[ch])|opwise/graph/\w+\.[ch]"
    r"|opwise/profiling/html/vendor/(\w+\.entry\.js|build\.sh|VERSIONS\.md)"
)


@pytest.fixture(scope="module")
def installed():
    """The files that setuptools puts into a wheel, the extension aside."""
    from setuptools.config.pyprojecttoml import apply_configuration

    distribution = setuptools.Distribution({"script_name": "setup.py", "src_root": str(ROOT)})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        apply_configuration(distribution, ROOT / "pyproject.toml")
        command = distribution.get_command_obj("build_py")
        command.build_lib = ""
        command.ensure_finalized()
        return {Path(name).as_posix() for name in command.get_outputs(include_bytecode=False)}


def files_of_the_packages():
    return {
        path.relative_to(ROOT).as_posix()
        for package in ("opwise", "theano") for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".so")
    }  # fmt: skip


def test_every_file_is_installed_or_for_builds(installed):
    of_builds = {name for name in files_of_the_packages() if OF_BUILDS.fullmatch(name)}
    assert installed == files_of_the_packages() - of_builds
    assert len(of_builds) > 100 and not any("test" in name.split("/") for name in installed)


def test_data_are_read_at_run_time(installed):
    """Each file that is no module is named by a module or template that is installed."""
    readers = [name for name in installed if name.endswith((".py", ".j2"))]
    words = {word for name in readers for word in
             re.findall(r"\w+", (ROOT / name).read_text(encoding="utf-8"))}  # fmt: skip
    data = {name for name in installed if not name.endswith((".py", ".pyi", ".typed"))}
    assert [name for name in data if Path(name).name.split(".")[0] not in words] == []
    assert any(name.endswith(".h") for name in data)
