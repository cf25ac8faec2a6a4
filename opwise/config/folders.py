"""Where compiled code is kept: the kinds and the defaults of the flags that name folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from opwise.config.registry import config
from opwise.config.sources import expand_home
from opwise.config.values import ConfigParam

TYPE_CHECKING = False  # importing typing for it would take longer than all of this package
if TYPE_CHECKING:
    from typing import Any


def local_bitwidth() -> int:
    """Return the size of a pointer in bits."""
    return 64 if sys.maxsize > 2**32 else 32


def python_int_bitwidth() -> int:
    """Return the size of the C type ``long`` in bits."""
    import struct

    return struct.calcsize("l") * 8


def _installed_version(distribution: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


def _compiler_version() -> str:
    import shlex
    import subprocess

    command = [*shlex.split(config.cxx), "-dumpversion"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "no_compiler"
    return result.stdout.strip()


def _short_platform() -> str:
    """Return the system, the kernel's major.minor release and the architecture.

    The rest of the release changes with each update of the system.
    """
    import platform

    release = platform.release().partition("-")[0]
    return f"{platform.system()}-{'.'.join(release.split('.')[:2])}-{platform.machine()}"


def _from_platform(function: str) -> Callable[[], str]:
    def call() -> str:
        import platform

        return str(getattr(platform, function)())

    return call


#: what computes the value of each key of compiledir_format
_FORMAT_KEYS: dict[str, Callable[[], Any]] = {
    "device": lambda: config.device,
    "gxx_version": _compiler_version,
    "hostname": _from_platform("node"),
    "numpy_version": lambda: _installed_version("numpy"),
    "platform": _from_platform("platform"),
    "processor": _from_platform("machine"),  # platform.processor() starts a program to find less
    "python_bitwidth": local_bitwidth,
    "python_int_bitwidth": python_int_bitwidth,
    "python_version": _from_platform("python_version"),
    "short_platform": _short_platform,
    "theano_version": lambda: _installed_version("opwise"),
}

FORMAT_KEYS = ", ".join(_FORMAT_KEYS)


class _FormatValues(dict):  # type: ignore[type-arg]
    """The values for ``compiledir_format``, each computed only if the pattern contains its key."""

    def __missing__(self, key: str) -> Any:
        return _FORMAT_KEYS[key]()


class FormatParam(ConfigParam):
    """A pattern with ``%(key)s`` for keys of ``compiledir_format``."""

    def filter(self, value: Any) -> str:
        try:
            str(value) % dict.fromkeys(_FORMAT_KEYS, "")
        except (KeyError, TypeError, ValueError) as error:
            raise self.refusal(
                value,
                f"It cannot be filled in: {error!r}. "
                f"It may contain %(key)s for the keys {FORMAT_KEYS}.",
            ) from None
        return str(value)

    def accepts(self) -> str:
        return "a pattern with %(key)s"


class FolderParam(ConfigParam):
    """The path of a folder; a relative one is made absolute when it is set."""

    def filter(self, value: Any) -> str:
        try:
            text = os.fspath(value)
        except TypeError:
            raise self.refusal(value, "It must be the name of a folder.") from None
        if not text.strip():
            raise self.refusal(value, "It is empty: name a folder, or leave the flag out.")
        path = expand_home(text)
        if path is None:
            raise self.refusal(
                value,
                f"There is no home folder for {text.partition(os.sep)[0]}: write the whole path.",
            )
        return os.path.realpath(path)

    def accepts(self) -> str:
        return "a folder"


def default_base_compiledir() -> str:
    """Return ``opwise`` in the user's cache folder, or a temporary folder if there is no home.

    It is the folder that the package platformdirs gives, whose import would take longer than all
    of this package.
    """
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache is None or not os.path.isabs(cache):
        # The XDG Base Directory Specification says to ignore a relative one.
        own = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)
        cache = expand_home(os.path.join("~", *own))
    if cache is None:
        import tempfile

        return os.path.join(tempfile.gettempdir(), f"opwise-{os.getuid()}")
    return os.path.join(cache, "opwise")


def default_compiledir() -> str:
    """Return the folder of this platform within ``base_compiledir``."""
    name: str = config.compiledir_format % _FormatValues()
    return os.path.join(config.base_compiledir, name)


def default_gpu_cache_path() -> str:
    """Return the folder of GPU kernels within ``compiledir``."""
    return os.path.join(config.compiledir, "gpuarray_kernels")
