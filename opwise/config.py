"""The options of opwise: one table, read from files and the environment, kept on ``config``.

What an option does is not here: it is in the module that reads it. Nothing here looks for a
compiler, a library or a device, and no folder is created.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping

TYPE_CHECKING = False  # importing typing for it would take longer than all of this module
if TYPE_CHECKING:
    from typing import Any

# --- sources: the configuration files and the environment -----------------------------------------


class TheanoConfigWarning(Warning):
    """An entry of the configuration that could not be read and is ignored."""


class _Source:
    """Settings as text from one place; the options of a file do not distinguish case."""

    def __init__(self, name: str, settings: dict[str, str], is_file: bool = False):
        self.name = name
        self.settings = settings
        self.is_file = is_file

    def key(self, fullname: str) -> str:
        if not self.is_file:
            return fullname
        section, dot, option = fullname.rpartition(".")
        return section + dot + option.lower()

    def unknown(self, known: Iterable[str]) -> list[str]:
        """Return the names set here that are not in ``known``."""
        if not self.settings:
            return []
        return sorted(self.settings.keys() - {self.key(name) for name in known})


def parse_config_string(text: str, issue_warnings: bool = True, source: str = "") -> dict[str, str]:
    """Split ``"name=value,section.name=value"`` into a dictionary; of equal names the last wins.

    Quotes keep commas inside a value. An entry without ``=`` is left out, with a
    TheanoConfigWarning. Raises ValueError when a quote is not closed.
    """
    if not text.strip():
        return {}
    import shlex  # most programs set no flags

    splitter = shlex.shlex(text, posix=True)
    splitter.whitespace = ","
    splitter.whitespace_split = True
    splitter.commenters = ""  # a value may hold a #
    where = f" in {source}" if source else ""
    try:
        entries = [entry.strip() for entry in splitter]
    except ValueError as error:
        raise ValueError(f"Cannot split the flags{where}: {error}. They read: {text}") from None
    settings = {}
    for entry in filter(None, entries):
        name, equals, value = entry.partition("=")
        if equals:
            settings[name.strip()] = value.strip()
        elif issue_warnings:
            warnings.warn(
                f"Config key '{name}' has no value, ignoring it{where}; write {name}=<value>",
                TheanoConfigWarning,
                stacklevel=2,
            )
    return settings


def _expanded(path: str) -> str | None:
    """Return a path with ``~`` or ``~user`` expanded, None if there is no such home folder."""
    if not path.startswith("~"):
        return path
    user, _, rest = path.partition(os.sep)
    home = _home() if user == "~" else os.path.expanduser(user)
    return os.path.join(home, rest) if os.path.isabs(home) else None


def _home() -> str:
    """Return HOME or, if it is not set, empty or relative, what the system knows; "" for neither.

    A relative one would be another folder wherever the program starts.
    """
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return ""


def _paths(variable: str, default: str) -> list[str]:
    """Return the files that an environment variable lists, with ``~`` expanded."""
    listed = os.environ.get(variable, default).split(os.pathsep)
    return [path for path in map(_expanded, filter(None, listed)) if path is not None]


def config_files_from_theanorc() -> list[str]:
    """Return the files of THEANORC, or ``~/.theanorc``; later files win over earlier ones."""
    files = _paths("THEANORC", "~/.theanorc")
    if "THEANORC" not in os.environ and sys.platform == "win32":
        files += _paths("THEANORC", "~/.theanorc.txt")
    return files


def _words_for_files() -> dict[str, str]:
    """Return what ``%(USER)s`` and the like stand for in a configuration file."""
    user = os.environ.get("USER", os.path.basename(os.path.expanduser("~")))
    words = {"USER": user, "PID": str(os.getpid())}
    for variable in ("LSCRATCH", "TMPDIR", "TEMP", "TMP"):
        words[variable] = os.environ.get(variable, "")
    return {word: value.replace("%", "%%") for word, value in words.items()}


def _read_file(path: str) -> dict[str, str]:
    """Return the settings of one ini file by full name; a file that is not there has none.

    Raises ValueError when the file is not an ini file.
    """
    if not os.path.isfile(path):
        return {}
    import configparser  # takes longer than the rest of this module, and few users have a file

    # No section can have the empty name, so that [DEFAULT] is a section like any other.
    parser = configparser.ConfigParser(_words_for_files(), strict=False, default_section="")
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except OSError as error:
        warnings.warn(f"Cannot read {path}: {error}", TheanoConfigWarning, stacklevel=2)
    except (configparser.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not a configuration file: {error}\n"
            "Write [global] above flags without a dot and [section] above those of a section."
        ) from None
    settings = {}
    for section in parser.sections():
        for option in parser.options(section):
            if option in parser.defaults():
                continue
            try:
                value = parser.get(section, option)
            except configparser.InterpolationError:
                value = parser.get(section, option, raw=True)  # a pattern like compiledir_format
            settings[option if section == "global" else f"{section}.{option}"] = value
    return settings


def _read_sources() -> list[_Source]:
    """Return the files and the environment, the ones that win last."""
    sources = [_Source(path, _read_file(path), is_file=True) for path in config_files]
    for variable in ("THEANO_FLAGS", "OPWISE_FLAGS"):
        text = os.environ.get(variable, "")
        sources.append(_Source(variable, parse_config_string(text, source=variable)))
    return sources


config_files = config_files_from_theanorc() + _paths("OPWISERC", "~/.opwiserc")
_sources = _read_sources()


def _find_setting(fullname: str) -> tuple[str, str] | None:
    """Return the text that the user set for a flag outside the program, and where; or None."""
    for source in reversed(_sources):
        value = source.settings.get(source.key(fullname))
        if value is not None:
            return value, source.name
    return None


# --- parameters: what a flag accepts --------------------------------------------------------------

_options: dict[str, ConfigParam] = {}
# The legacy name, which programs iterate to find a flag by its fullname.
_config_var_list = _options.values()


class ConfigParam:
    """One flag: its default, what it accepts and, once it is in ``config``, its current value.

    ``filter(value)`` returns the value to store or raises ValueError. A callable ``default`` is
    called at the first read. With ``allow_override=False`` the program cannot change the value.

    In ``config`` it also has ``fullname``, ``doc``, ``in_c_key``, ``used`` (False: the flag is
    accepted and has no meaning in opwise) and ``source`` ("default", "code", the variable or file).
    """

    fullname: str
    doc: str
    in_c_key: bool
    used: bool
    source: str
    _group: ConfigGroup
    _name: str

    def __init__(
        self,
        default: Any,
        filter: Callable[[Any], Any] | None = None,
        allow_override: bool = True,
    ):
        self.default = default
        self.allow_override = allow_override
        self._given_filter = filter

    def filter(self, value: Any) -> Any:
        return value if self._given_filter is None else self._given_filter(value)

    # Legacy programs call these two themselves, as __get__(True, None) and __set__(None, value).

    def __get__(self, instance: Any = None, owner: Any = None) -> Any:
        return getattr(self._group, self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        if not self.allow_override:
            raise Exception(
                "Can't change the value of this config parameter after initialization! "
                f"Set {self.fullname} in OPWISE_FLAGS, THEANO_FLAGS or a configuration file "
                "before the program starts."
            )
        self._store(self.filter(value), "code")

    def _store(self, value: Any, source: str) -> None:
        self._group.__dict__[self._name] = value
        self.source = source

    def _load_default(self) -> Any:
        """Store and return the default that was too early to compute when the flag was added."""
        self._store(self.filter(self.default()), "default")
        return self._group.__dict__[self._name]

    def _accepts(self) -> str:
        return "any value"

    def _refusal(self, value: Any, reason: str) -> ValueError:
        return ValueError(
            f'Invalid value ({value}) for configuration variable "{self.fullname}". {reason}'
        )

    def __str__(self) -> str:
        return f"{self.fullname} ({self._accepts()}) "


class EnumStr(ConfigParam):
    """One of several strings: the default or one of ``options``.

    ``convert``, where given, is applied to a value before its text is looked up.
    """

    def __init__(
        self,
        default: str,
        *options: str,
        allow_override: bool = True,
        convert: Callable[[Any], Any] | None = None,
    ):
        self.all = tuple(dict.fromkeys((default, *options)))
        for option in self.all:
            if not isinstance(option, str):
                raise ValueError(f"The values of an EnumStr are strings, not {option!r}")
        self.convert = convert
        super().__init__(default, allow_override=allow_override)

    def filter(self, value: Any) -> str:
        if self.convert is not None:
            value = self.convert(value)
        text = str(value)  # so that None and a dtype are as good as their names
        if text not in self.all:
            raise self._refusal(f'"{value}"', f"Valid options are {self.all}")
        return text

    def _accepts(self) -> str:
        return str(self.all)


class TypedParam(ConfigParam):
    """What ``mytype(value)`` makes of a value, where ``is_valid`` (if given) is true of that."""

    def __init__(
        self,
        default: Any,
        mytype: Callable[[Any], Any],
        is_valid: Callable[[Any], bool] | None = None,
        allow_override: bool = True,
    ):
        self.mytype = mytype
        self.is_valid = is_valid
        super().__init__(default, allow_override=allow_override)

    def filter(self, value: Any) -> Any:
        try:
            cast = self.mytype(value)
        except (TypeError, ValueError) as error:
            raise self._refusal(value, f"{error}. {self._allowed()}") from None
        if self.is_valid is not None and not self.is_valid(cast):
            raise self._refusal(value, self._allowed())
        return cast

    def _allowed(self) -> str:
        if isinstance(self.is_valid, _Condition):
            return f"Valid values are {self.is_valid.allowed}."
        name = getattr(self.mytype, "__name__", self.mytype)
        condition = "" if self.is_valid is None else " that pass its check"
        return f"Valid values are those of {name}{condition}."

    def _accepts(self) -> str:
        return str(self.mytype)


class StrParam(TypedParam):
    """Any text, where ``is_valid`` (if given) is true of it."""

    def __init__(self, default, is_valid=None, allow_override=True):
        super().__init__(default, str, is_valid, allow_override)


class IntParam(TypedParam):
    """An int, where ``is_valid`` (if given) is true of it."""

    def __init__(self, default, is_valid=None, allow_override=True):
        super().__init__(default, int, is_valid, allow_override)


class FloatParam(TypedParam):
    """A float, where ``is_valid`` (if given) is true of it."""

    def __init__(self, default, is_valid=None, allow_override=True):
        super().__init__(default, float, is_valid, allow_override)


class BoolParam(TypedParam):
    """A bool, also written ``True``, ``true``, ``1``, ``False``, ``false`` or ``0``."""

    def __init__(self, default, is_valid=None, allow_override=True):
        super().__init__(default, _to_bool, is_valid, allow_override)

    def _allowed(self) -> str:
        return "Valid values are True, true, 1, False, false and 0."

    def _accepts(self) -> str:
        return str(bool)


def _to_bool(value: Any) -> bool:
    if value in ("True", "true", "1", True):
        return True
    if value in ("False", "false", "0", False):
        return False
    raise ValueError("It is neither true nor false")


class _Condition:
    """A condition on a value that can say in words what it allows."""

    def __init__(self, allowed: str, holds: Callable[[Any], bool]):
        self.allowed = allowed
        self.holds = holds

    def __call__(self, value: Any) -> bool:
        return self.holds(value)


def _at_least(low: int) -> _Condition:
    return _Condition(f"integers from {low} on", lambda value: value >= low)


def _up_to(high: int) -> _Condition:
    return _Condition(f"integers from 0 to {high}", lambda value: 0 <= value <= high)


# --- the config object ----------------------------------------------------------------------------


class ConfigGroup:
    """The flags of one section as attributes.

    Values lie in the instance's dictionary, so that reading one costs what an attribute costs.
    """

    _prefix: str

    def __init__(self, prefix: str):
        self.__dict__["_prefix"] = prefix

    def __getattr__(self, name: str) -> Any:
        # Reached for flags whose default is computed at the first read, and for unknown names.
        param = _options.get(self._fullname(name))
        if param is None:
            if name.startswith("__"):  # of a protocol of Python's
                raise AttributeError(name, name=name, obj=self)
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}': there is no flag "
                f"{self._fullname(name)}.{_similar(self._fullname(name))} print(config) "
                "lists them all.",
                name=name,
                obj=self,
            )
        return param._load_default()

    def __setattr__(self, name: str, value: Any) -> None:
        fullname = self._fullname(name)
        param = _options.get(fullname)
        if param is not None:
            param.__set__(None, value)
        elif isinstance(self.__dict__.get(name), ConfigGroup):
            # Old programs do this; obeying would hide the flags of the section from opwise.
            warnings.warn(
                f"config.{fullname} is a section, not a flag: setting it to {value!r} is ignored. "
                f"Its flags are {', '.join(_names_under(fullname + '.'))}",
                UserWarning,
                stacklevel=2,
            )
        else:
            question = "" if name in self.__dict__ else _similar(fullname)
            if question:
                # Old programs keep values of their own here, but this is more likely a slip.
                warnings.warn(
                    f"There is no flag {fullname}, so setting it has no effect.{question}",
                    UserWarning,
                    stacklevel=2,
                )
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        fullname = self._fullname(name)
        if fullname in _options or isinstance(self.__dict__.get(name), ConfigGroup):
            raise AttributeError(f"config.{fullname} cannot be deleted, only set")
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        short = (name[len(self._prefix) :] for name in _names_under(self._prefix))
        return sorted({*super().__dir__(), *(name for name in short if "." not in name)})

    def __str__(self) -> str:
        lines: list[str] = []
        for name in _names_under(self._prefix):
            param = _options[name]
            lines += [f"{param}", f"    Doc:  {param.doc}", f"    Value:  {param.__get__()}", ""]
        return "\n".join(lines)

    def __reduce__(self):
        return _group_at, (self._prefix,)  # there is one config in a process

    def _fullname(self, name: str) -> str:
        return self.__dict__.get("_prefix", "") + name


class TheanoConfigParser(ConfigGroup):
    """All flags: ``config.floatX``, ``config.profiling.n_apply``; ``print(config)`` lists them.

    A value comes from the first of: the program, OPWISE_FLAGS, THEANO_FLAGS, the files of OPWISERC
    (default ``~/.opwiserc``), those of THEANORC (default ``~/.theanorc``), the table's default.
    """

    def unused(self) -> list[ConfigParam]:
        """Return the flags that are accepted and have no meaning in opwise, in the table's order.

        Those whose ``source`` is not "default" were set by the user, in vain.
        """
        return [param for param in _config_var_list if not param.used]

    def chosen(self) -> list[ConfigParam]:
        """Return the flags that the program, the environment or a file set."""
        return [param for param in _config_var_list if param.source != "default"]


config = TheanoConfigParser("")


def _names_under(prefix: str) -> list[str]:
    return [name for name in _options if name.startswith(prefix)]


def _group_at(prefix: str) -> ConfigGroup:
    """Return the group of a prefix like ``"dnn.conv."``, created where it is missing."""
    group: ConfigGroup = config
    for section in prefix.split(".")[:-1]:
        inner = group.__dict__.get(section)
        if inner is None:
            inner = group.__dict__[section] = ConfigGroup(f"{group._prefix}{section}.")
        elif not isinstance(inner, ConfigGroup):
            raise TypeError(
                f"config.{group._prefix}{section} has the value {inner!r} and cannot also be a "
                "section; choose another name for the section"
            )
        group = inner
    return group


def AddConfigVar(name: str, doc: str, configparam: ConfigParam, in_c_key: bool = True) -> None:
    """Add a flag to ``config`` under a name like ``"flag"`` or ``"section.flag"``.

    It starts with what the environment or a file sets for it, else with its default. ``in_c_key``
    says that generated C code depends on it. Raises AttributeError when the name is taken,
    TypeError when a part before a dot is not a section, ValueError for a bad value.
    """
    section, dot, short = name.rpartition(".")
    group = _group_at(section + dot)
    if name in _options or short in group.__dict__ or hasattr(type(group), short):
        raise AttributeError(f"This name is already taken: {name}. Choose another for the flag.")
    configparam.fullname = name
    configparam.doc = doc
    configparam.in_c_key = in_c_key
    configparam.used = True
    configparam._group = group
    configparam._name = short
    _load(configparam)
    _options[name] = configparam


def check_setting(name: str, text: str) -> None:
    """Raise ValueError if a text is no value of a flag; a flag that is not known takes any."""
    param = _options.get(name)
    if param is not None:
        param.filter(text)


def _load(param: ConfigParam) -> None:
    """Give a flag its first value, unless its default is to be computed at the first read."""
    param.source = "default"
    setting = _find_setting(param.fullname)
    if setting is not None:
        text, source = setting
        try:
            value = param.filter(text)
        except ValueError as error:
            raise ValueError(f"{error} (It is set in {source}.)") from None
        param._store(value, source)
    elif not callable(param.default):
        param._store(param.filter(param.default), "default")


class change_flags:
    """Give flags other values within a ``with`` block or, as a decorator, within a function.

    ``change_flags(floatX="float32")`` or ``change_flags({"profiling.n_apply": 5})``. The old values
    come back at the end, also after an exception. Raises AssertionError for an unknown flag.
    """

    def __init__(self, args: Mapping[str, Any] | Iterable = (), **kwargs: Any):
        self.values = {**dict(args), **kwargs}
        self._saved: list[list[tuple[ConfigParam, Any, str]]] = []
        for name in self.values:
            if name not in _options:
                raise AssertionError(f"There is no flag {name!r} to change.{_similar(name)}")

    def __enter__(self) -> change_flags:
        self._saved.append([])
        try:
            for name, value in self.values.items():
                param = _options[name]
                self._saved[-1].append((param, param.__get__(), param.source))
                param.__set__(None, value)
        except BaseException:  # KeyboardInterrupt too: what was changed is put back
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: Any) -> None:
        for param, value, source in reversed(self._saved.pop()):
            param._store(value, source)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def with_changed_flags(*args, **kwargs):
            with change_flags(self.values):
                return function(*args, **kwargs)

        return with_changed_flags


def get_config_hash() -> str:
    """Return a digest of the flags that generated C code depends on, equal for equal values."""
    import hashlib  # only compiling needs it

    keyed = sorted((p.fullname, str(p.__get__())) for p in _config_var_list if p.in_c_key)
    return hashlib.sha256(repr(keyed).encode()).hexdigest()


# --- flags that accept something of their own -----------------------------------------------------

_mode_names = [
    *("Mode", "ProfileMode", "DebugMode", "NanGuardMode"),
    *("FAST_RUN", "FAST_COMPILE", "PROFILE_MODE", "DEBUG_MODE"),
]


def register_mode_name(name: str) -> None:
    """Let the flag ``mode`` take ``name`` too, for a mode that a program registers."""
    if name not in _mode_names:
        _mode_names.append(name)


class _ModeParam(ConfigParam):
    def filter(self, value: Any) -> Any:
        if isinstance(value, str):
            if value in _mode_names:
                return value
        elif not isinstance(value, type) and _has(value, "linker") and _has(value, "optimizer"):
            return value  # a Mode; its class is above this layer
        names = ", ".join(repr(name) for name in _mode_names)
        raise self._refusal(
            f'"{value}"', f"Expected one of those string {names} or an instance of Mode."
        )

    def _accepts(self) -> str:
        return f"{tuple(_mode_names)} or a Mode"


def _has(value: Any, name: str) -> bool:
    """Whether an object has an attribute; unlike hasattr this does not run a property."""
    return name in getattr(value, "__dict__", ()) or hasattr(type(value), name)


class _MaybeParam(ConfigParam):
    def filter(self, value: Any) -> bool | None:
        if value is None or value == "None":
            return None
        try:
            return _to_bool(value)
        except ValueError:
            raise self._refusal(value, "Valid values are None, True and False.") from None

    def _accepts(self) -> str:
        return "None, True, False"


# gpu, gpu0, ... are the names that programs older than the cuda ones use.
_ACCELERATORS = ("cuda", "gpu", "opencl")
_is_device = _Condition(
    "cpu, cuda, cuda0, cuda1, ... (also gpu, gpu0, ..., opencl...), in lower case",
    lambda value: value == "cpu" or value.startswith(_ACCELERATORS),
)
_is_accelerator_or_none = _Condition(
    "cuda, cuda0, cuda1, ... (also gpu, gpu0, ..., opencl...), in lower case, and nothing",
    lambda value: not value or value.startswith(_ACCELERATORS),
)


# --- where compiled code is kept ------------------------------------------------------------------


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
    """Return system, kernel release and machine; the release without what each update changes."""
    import platform

    release = platform.release().partition("-")[0]
    return f"{platform.system()}-{'.'.join(release.split('.')[:2])}-{platform.machine()}"


def _from_platform(function: str) -> Callable[[], str]:
    def call() -> str:
        import platform

        return getattr(platform, function)()

    return call


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


class _FormatValues(dict):
    """The values for ``compiledir_format``; only those that it names are computed."""

    def __missing__(self, key: str) -> Any:
        return _FORMAT_KEYS[key]()


class _FormatParam(ConfigParam):
    def filter(self, value: Any) -> str:
        try:
            str(value) % dict.fromkeys(_FORMAT_KEYS, "")
        except (KeyError, TypeError, ValueError) as error:
            keys = ", ".join(_FORMAT_KEYS)
            raise self._refusal(
                value,
                f"It cannot be filled in: {error!r}. It may hold %(key)s for the keys {keys}.",
            ) from None
        return str(value)

    def _accepts(self) -> str:
        return "a pattern with %(key)s"


class _FolderParam(ConfigParam):
    def filter(self, value: Any) -> str:
        try:
            text = os.fspath(value)
        except TypeError:
            raise self._refusal(value, "It must be the name of a folder.") from None
        if not text.strip():
            raise self._refusal(value, "It is empty: name a folder, or leave the flag out.")
        path = _expanded(text)
        if path is None:
            raise self._refusal(
                value,
                f"There is no home folder for {text.partition(os.sep)[0]}: write the whole path.",
            )
        return os.path.realpath(path)

    def _accepts(self) -> str:
        return "a folder"


def _default_base_compiledir() -> str:
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache is None or not os.path.isabs(cache):
        # a relative one is to be ignored, says the XDG Base Directory Specification
        cache = _expanded(os.path.join("~", ".cache"))
    if cache is None:
        import tempfile  # only where there is no home

        return os.path.join(tempfile.gettempdir(), f"opwise-{os.getuid()}")
    return os.path.join(cache, "opwise")


def _default_compiledir() -> str:
    return os.path.join(config.base_compiledir, config.compiledir_format % _FormatValues())


def _default_gpu_cache_path() -> str:
    return os.path.join(config.compiledir, "gpuarray_kernels")


# --- the table ------------------------------------------------------------------------------------

_IF_BAD = ("warn", "raise", "pdb")
_TEST_VALUE = ("off", "ignore", *_IF_BAD)
_NUMPY_ERRORS = ("ignore", "warn", "raise", "call", "print", "log")
_DNN_RUNTIME = ("guess_once", "guess_on_shape_change", "time_once", "time_on_shape_change")
_VERSIONS = (
    *("0.3", "0.4", "0.4.1", "0.5", "0.6", "0.7", "0.8", "0.8.1", "0.8.2", "0.9", "0.10"),
    *("1.0", "1.0.1", "1.0.2", "1.0.3", "1.0.4", "1.0.5"),
)

# One row a flag: name, what it accepts with the default first, marks, what it does. Marks:
#   used    it has a meaning in opwise; without the mark it is accepted and does nothing
#   locked  a program cannot change it, only the environment and the files can
#   key     generated C code depends on it
# fmt: off
_TABLE: tuple[tuple[str, ConfigParam, str, str], ...] = (
    # what values are
    ("floatX", EnumStr("float64", "float32", "float16"), "used key",
     "The dtype of Python floats and of matrix(), vector() and the like."),
    ("warn_float64", EnumStr("ignore", *_IF_BAD), "used",
     "What to do when a tensor variable of dtype float64 is created."),
    ("cast_policy", EnumStr("custom", "numpy+floatX"), "used key",
     "How the dtype of a Python number in an expression is chosen."),
    ("int_division", EnumStr("int", "raise", "floatX"), "",
     "What dividing an integer by an integer gives where it is not a true division."),
    ("pickle_test_value", BoolParam(True), "used",
     "Whether a pickled variable keeps its tag.test_value."),
    # where it runs
    ("device", StrParam("cpu", _is_device), "used locked",
     "The device that functions run on."),
    ("force_device", BoolParam(False), "used locked",
     "Whether it is an error that the device cannot be used."),
    ("cuda.graphs", BoolParam(True), "used",
     "Whether kernels that a function launches one after the other become one launch."),
    ("cuda.tf32", BoolParam(False), "used",
     "Whether products of float32 may round their factors to 10 bits: many times as fast."),
    ("init_gpu_device", StrParam("", _is_accelerator_or_none), "locked",
     "A GPU to initialise although functions run on the CPU."),
    ("contexts", StrParam(""), "locked", "Names for several GPUs, as name->device;name->device."),
    ("print_active_device", BoolParam(True), "locked", "Whether the GPU in use is announced."),
    ("deterministic", EnumStr("default", "more"), "",
     "Whether slower kernels are taken when they give the same bits each time."),
    ("assert_no_cpu_op", EnumStr("ignore", *_IF_BAD), "",
     "What to do when a graph for the GPU holds an Op that runs on the CPU."),
    # how it is compiled
    ("mode", _ModeParam("Mode"), "used",
     "The mode of functions that are given none: a name or a Mode."),
    ("linker", EnumStr("c|py", "py", "c", "c|py_nogc", "c&py", "vm", "vm_nogc", "cvm", "cvm_nogc",
                       "cupy"), "used",
     "The linker of the modes that are given none."),
    ("optimizer", EnumStr("fast_run", "fast_compile", "o4", "o3", "o2", "o1", "unsafe", "stabilize",
                          "fast_run_stable", "merge", "None"), "used",
     "The optimizer of the modes that are given none; o4 is fast_run, o1 is fast_compile."),
    ("optimizer_excluding", StrParam(""), "used locked",
     "Tags of rewrites that the default mode leaves out, separated by colons."),
    ("optimizer_including", StrParam(""), "used locked",
     "Tags of rewrites that the default mode adds, separated by colons."),
    ("optimizer_requiring", StrParam(""), "used locked",
     "Tags without which the default mode takes no rewrite, separated by colons."),
    ("optimizer_verbose", BoolParam(False), "used", "Whether each rewrite is printed."),
    ("on_opt_error", EnumStr(*_IF_BAD, "ignore"), "used",
     "What to do when a rewrite raises an exception."),
    ("on_unused_input", EnumStr("raise", "warn", "ignore"), "used",
     "What to do about an input that the outputs do not depend on."),
    ("on_shape_error", EnumStr("warn", "raise"), "used",
     "What to do when the infer_shape of an Op fails."),
    ("keep_shape_checks", BoolParam(False), "used",
     "Whether optimized functions raise where lengths differ although the result needs one of them "
     "alone, as in x * 0 + v, as the graph as written does."),
    ("allow_gc", BoolParam(True), "used",
     "Whether intermediate results are freed during a call, or kept to be reused by the next."),
    ("cxx", StrParam("cc"), "used", "The C compiler; nothing: no C code is compiled."),
    ("gcc.cxxflags", StrParam(""), "used", "More flags for the C compiler."),
    ("threads", IntParam(0, _at_least(0)), "used",
     "How many threads one kernel may use, and each BLAS library of the process; 0: "
     "OMP_NUM_THREADS, or one for each processor that this process may run on, and BLAS as it is."),
    ("recycle_bytes", IntParam(-1, _at_least(-1)), "used",
     "At most how many bytes of large freed arrays are kept to hold later results; "
     "-1: an eighth of the machine's memory, and 1 GiB at most."),
    ("openmp", BoolParam(False), "", "Legacy: see threads."),
    ("openmp_elemwise_minsize", IntParam(200_000, _at_least(0)), "",
     "Legacy: what a loop costs decides whether it uses several threads."),
    ("tensor.local_elemwise_fusion", BoolParam(True), "used",
     "Whether elementwise Ops are fused."),
    ("optdb.position_cutoff", FloatParam(float("inf")), "used",
     "The position in the sequence of rewrites to stop at."),
    ("optdb.max_use_ratio", FloatParam(8), "used",
     "How often, per Apply of the graph, one rewrite may act before it is stopped."),
    ("base_compiledir", _FolderParam(_default_base_compiledir), "used locked",
     "The folder that holds the compiled code of all platforms."),
    ("compiledir_format", _FormatParam(
        "compiledir_%(short_platform)s-%(processor)s-%(python_version)s-%(python_bitwidth)s"),
     "used locked",
     "The pattern of the folder within base_compiledir; its keys: " + ", ".join(_FORMAT_KEYS)),
    ("compiledir", _FolderParam(_default_compiledir), "used locked",
     "The folder that holds the compiled code of this platform."),
    ("compiledir_bytes", IntParam(1 << 29, _at_least(-1)), "used",
     "At most about how many bytes of compiled kernels compiledir keeps, those used last; "
     "0: no new ones, -1: any number."),
    # how it is debugged
    ("compute_test_value", EnumStr(*_TEST_VALUE), "used",
     "Whether the graph is run on tag.test_value while it is built, and what to do without one."),
    ("compute_test_value_opt", EnumStr(*_TEST_VALUE), "used",
     "As compute_test_value, for what the rewrites build."),
    ("print_test_value", BoolParam(False), "used",
     "Whether the repr of a variable shows its test value."),
    ("exception_verbosity", EnumStr("low", "high"), "used",
     "Whether error messages show the graph and all values."),
    ("traceback.limit", IntParam(8), "used",
     "How many lines of the user's program a variable remembers; -1: all."),
    ("traceback.compile_limit", IntParam(0), "",
     "How many lines the variables that rewrites make remember."),
    ("check_stack_trace", EnumStr("off", "log", *_IF_BAD[:2]), "",
     "What to do when a rewrite loses the line of the user's program."),
    ("DebugMode.patience", IntParam(10, _at_least(1)), "used",
     "How often a graph is optimized to see that the result is the same each time."),
    ("DebugMode.check_c", BoolParam(True), "used", "Whether C implementations are run."),
    ("DebugMode.check_py", BoolParam(True), "used", "Whether Python implementations are run."),
    ("DebugMode.check_finite", BoolParam(True), "used",
     "Whether a NaN or an infinity is an error."),
    ("DebugMode.check_strides", IntParam(0, _up_to(2)), "used",
     "Different strides from C and Python: 0 is ignored, 1 warns, 2 is an error."),
    ("DebugMode.warn_input_not_reused", BoolParam(True), "used",
     "Whether to warn when an Op says that it works in place, and does not."),
    ("DebugMode.check_preallocated_output", StrParam(""), "used",
     "Kinds of output storage to try: initial, previous, c_contiguous, f_contiguous, strided, "
     "wrong_size, ALL, separated by colons."),
    ("DebugMode.check_preallocated_output_ndim", IntParam(4, _at_least(0)), "used",
     "For how many of the last dimensions all combinations of strides are tried."),
    ("NanGuardMode.nan_is_error", BoolParam(True), "used", "Whether a NaN is an error."),
    ("NanGuardMode.inf_is_error", BoolParam(True), "used", "Whether an infinity is an error."),
    ("NanGuardMode.big_is_error", BoolParam(True), "used",
     "Whether a value beyond 1e10 is an error."),
    ("NanGuardMode.action", EnumStr("raise", "warn", "pdb"), "used",
     "What to do about such an error."),
    ("tensor.cmp_sloppy", IntParam(0, _up_to(2)), "locked",
     "How far approximately equal values may differ: 0 not more, 1 a bit more, 2 more."),
    # how it is measured
    ("profile", BoolParam(False), "used", "Whether all functions are profiled."),
    ("profile_optimizer", BoolParam(False), "used", "Whether a profile includes the rewrites."),
    ("profile_memory", BoolParam(False), "used", "Whether a profile includes memory."),
    ("print_global_stats", BoolParam(False), "used",
     "Whether the times of the whole process are printed at its end."),
    ("profiling.time_thunks", BoolParam(True), "used", "Whether each Apply is timed."),
    ("profiling.n_apply", IntParam(20, _at_least(0)), "used",
     "How many Apply nodes a profile shows."),
    ("profiling.n_ops", IntParam(20, _at_least(0)), "used",
     "How many Ops and classes of Ops a profile shows."),
    ("profiling.output_line_width", IntParam(512, _at_least(1)), "used",
     "From which column on the lines of a profile are cut."),
    ("profiling.min_memory_size", IntParam(1024, _at_least(0)), "used",
     "The smallest outputs of an Apply, in bytes, that a memory profile shows."),
    ("profiling.min_peak_memory", BoolParam(False), "used",
     "Whether a memory profile includes the order of Apply nodes with the lowest peak."),
    ("profiling.destination", StrParam("stdout"), "used",
     "Where profiles are printed at the end: stdout, stderr or the name of a file."),
    ("profiling.debugprint", BoolParam(False), "used",
     "Whether the graphs of functions, with times, follow their profile at the end."),
    ("profiling.ignore_first_call", BoolParam(False), "used",
     "Whether a profile leaves out the first call of a function."),
    ("tuning.functions", IntParam(0, _at_least(0)), "used",
     "For how many functions, those that took most time, tips are tried and printed at the end."),
    ("tuning.budget", FloatParam(20), "used", "How many seconds that may take for all of them."),
    ("profiling.nvtx", BoolParam(False), "used",
     "Whether calls and Apply nodes are marked for system profilers, as Nsight Systems."),
    ("profiling.nvtx_library", StrParam(""), "used",
     "The NVTX library that takes the marks; by default the one that is installed."),
    ("ProfileMode.n_apply_to_print", IntParam(15, _at_least(0)), "used",
     "How many Apply nodes the summary of a ProfileMode shows."),
    ("ProfileMode.n_ops_to_print", IntParam(20, _at_least(0)), "used",
     "How many Ops the summary of a ProfileMode shows."),
    ("ProfileMode.min_memory_size", IntParam(1024, _at_least(0)), "",
     "The smallest outputs of an Apply, in bytes, that a ProfileMode shows."),
    ("ProfileMode.profile_memory", BoolParam(False), "used",
     "Whether a ProfileMode measures memory too."),
    # accepted only: pickling, shapes, scan
    ("unpickle_function", BoolParam(True), "", "Whether a function is unpickled, or None."),
    ("reoptimize_unpickled_function", BoolParam(False), "",
     "Whether a function that is unpickled is optimized again."),
    ("experimental.unpickle_gpu_on_cpu", BoolParam(False), "",
     "Whether arrays of a GPU are unpickled as those of numpy."),
    ("conv.assert_shape", BoolParam(False), "",
     "Whether a convolution checks the shapes that it was told."),
    ("scan.allow_gc", BoolParam(False), "", "As allow_gc, for the steps of a scan."),
    ("scan.allow_output_prealloc", BoolParam(True), "",
     "Whether a scan computes straight into its outputs."),
    ("scan.debug", BoolParam(False), "", "Whether scan prints what it does."),
    ("vm.lazy", _MaybeParam("None"), "",
     "Whether Apply nodes run only when needed; None: where an Op asks for it."),
    # accepted only: rewrites
    ("gpu.local_elemwise_fusion", BoolParam(True), "", "Whether elementwise GPU Ops are fused."),
    ("cache_optimizations", BoolParam(False), "", "Whether optimized graphs are kept on disk."),
    ("cycle_detection", EnumStr("regular", "fast"), "",
     "How thoroughly Ops that work in place are checked for cycles."),
    ("tensor.insert_inplace_optimizer_validate_nb", IntParam(-1), "",
     "After how many changes Ops that work in place are validated; -1: by the graph's size."),
    ("experimental.local_alloc_elemwise", BoolParam(True), "",
     "Whether an alloc before an elementwise Op is removed."),
    ("experimental.local_alloc_elemwise_assert", BoolParam(True), "",
     "Whether removing such an alloc leaves a check of the shape."),
    ("metaopt.verbose", IntParam(0), "", "How much the choice of convolutions by timing prints."),
    ("metaopt.optimizer_excluding", StrParam(""), "", "Tags that this choice leaves out."),
    ("metaopt.optimizer_including", StrParam(""), "", "Tags that this choice adds."),
    # accepted only: the C compiler and libraries
    ("nocleanup", BoolParam(False), "", "Whether sources that did not compile are kept."),
    ("check_input", BoolParam(True), "key", "Whether C code checks its inputs."),
    ("lib.amdlibm", BoolParam(False), "", "Whether AMD's mathematical library is linked."),
    ("cmodule.warn_no_version", BoolParam(False), "",
     "Whether C code without a version, which cannot be kept, brings a warning."),
    ("cmodule.remove_gxx_opt", BoolParam(False), "key", "Whether -O flags are left out."),
    ("cmodule.compilation_warning", BoolParam(False), "",
     "Whether warnings of the compiler are shown."),
    ("cmodule.preload_cache", BoolParam(False), "locked",
     "Whether all compiled code is loaded at import."),
    ("cmodule.age_thresh_use", IntParam(2_073_600), "locked",
     "The age in seconds from which on compiled code is not used again."),
    ("cmodule.debug", BoolParam(False), "key", "Whether C code is compiled with -DDEBUG."),
    ("compile.wait", IntParam(5), "locked", "Seconds between two attempts to lock the folder."),
    ("compile.timeout", IntParam(120), "locked", "Seconds after which a lock is broken."),
    ("blas.ldflags", StrParam(""), "", "Linker flags for BLAS; opwise uses the one of scipy."),
    ("blas.check_openmp", BoolParam(True), "",
     "Whether two libraries for threads in one process are looked for."),
    # accepted only: floating-point errors and old faults
    ("numpy.seterr_all", EnumStr(*_NUMPY_ERRORS, "None"), "locked",
     "What numpy does about floating-point errors; None: its own choice."),
    ("numpy.seterr_divide", EnumStr("None", *_NUMPY_ERRORS), "locked",
     "What numpy does about a division by zero; None: as seterr_all."),
    ("numpy.seterr_over", EnumStr("None", *_NUMPY_ERRORS), "locked",
     "What numpy does about an overflow; None: as seterr_all."),
    ("numpy.seterr_under", EnumStr("None", *_NUMPY_ERRORS), "locked",
     "What numpy does about an underflow; None: as seterr_all."),
    ("numpy.seterr_invalid", EnumStr("None", *_NUMPY_ERRORS), "locked",
     "What numpy does about an invalid operation like 0 / 0; None: as seterr_all."),
    ("unittests.rseed", StrParam("666"), "", "The seed of Theano's own tests, or random."),
    ("warn.ignore_bug_before", EnumStr("0.9", "None", "all", *_VERSIONS), "locked",
     "The version of Theano before which faults bring no warning."),
    ("warn.argmax_pushdown_bug", BoolParam(False), "", "Warn of a fault in argmax of softmax."),
    ("warn.gpusum_01_011_0111_bug", BoolParam(False), "", "Warn of a fault in GPU sums."),
    ("warn.sum_sum_bug", BoolParam(False), "", "Warn of a fault in the sum of a sum."),
    ("warn.sum_div_dimshuffle_bug", BoolParam(False), "",
     "Warn of a fault in the sum of a quotient with a broadcast operand."),
    ("warn.subtensor_merge_bug", BoolParam(False), "",
     "Warn of a fault in indexing twice with a negative step."),
    ("warn.gpu_set_subtensor1", BoolParam(False), "", "Warn of a fault in set_subtensor on GPUs."),
    ("warn.vm_gc_bug", BoolParam(False), "", "Warn of a fault in freeing intermediate results."),
    ("warn.signal_conv2d_interface", BoolParam(False), "",
     "Warn that the arguments of signal.conv2d changed."),
    ("warn.reduce_join", BoolParam(False), "", "Warn of a fault in reducing a join."),
    ("warn.inc_set_subtensor1", BoolParam(False), "",
     "Warn of a fault in inc_subtensor and set_subtensor with lists of indices."),
    ("warn.round", BoolParam(False), "", "Warn that round() rounds halves to even."),
    ("warn.inc_subtensor1_opt", BoolParam(True), "",
     "Warn of a fault in reading back what inc_subtensor added at repeated indices."),
    ("warn.identify_1pexp_bug", BoolParam(False), "", "Warn of a fault in log(1 + exp(x))."),
    # accepted only: the GPU libraries of Theano
    ("gpuarray.sync", BoolParam(False), "locked", "Whether each GPU Op is waited for."),
    ("gpuarray.preallocate", FloatParam(0), "locked",
     "GPU memory taken at the start: a fraction up to 1, else megabytes."),
    ("gpuarray.sched", EnumStr("default", "multi", "single"), "key",
     "How the CPU waits for the GPU."),
    ("gpuarray.single_stream", BoolParam(True), "", "Whether a GPU uses a single stream."),
    ("gpuarray.cache_path", _FolderParam(_default_gpu_cache_path), "locked",
     "The folder that holds compiled GPU kernels."),
    ("gpuelemwise.sync", BoolParam(True), "", "Whether elementwise GPU Ops are waited for."),
    ("cuda.root", StrParam("/usr/local"), "", "The folder of CUDA."),
    ("cuda.include_path", StrParam("/usr/local/include"), "", "The folder of CUDA's headers."),
    ("dnn.enabled", EnumStr("auto", "True", "False", "no_check"), "", "Whether cuDNN is used."),
    ("dnn.base_path", StrParam(""), "", "The folder of cuDNN."),
    ("dnn.include_path", StrParam(""), "", "The folder of cuDNN's headers."),
    ("dnn.library_path", StrParam(""), "", "The folder of cuDNN's library to link."),
    ("dnn.bin_path", StrParam(""), "", "The folder of cuDNN's library to load."),
    ("dnn.conv.workmem", StrParam(""), "locked", "The older name of dnn.conv.algo_fwd."),
    ("dnn.conv.workmem_bwd", StrParam(""), "locked", "The older name of the two algo_bwd_ flags."),
    ("dnn.conv.algo_bwd", StrParam(""), "locked", "The older name of the two algo_bwd_ flags."),
    ("dnn.conv.algo_fwd", EnumStr("small", "none", "large", "fft", "fft_tiling", "winograd",
                                  "winograd_non_fused", *_DNN_RUNTIME), "",
     "How cuDNN convolves."),
    ("dnn.conv.algo_bwd_data", EnumStr("none", "deterministic", "fft", "fft_tiling", "winograd",
                                       "winograd_non_fused", *_DNN_RUNTIME), "",
     "How cuDNN computes the gradient of a convolution by its inputs."),
    ("dnn.conv.algo_bwd_filter", EnumStr("none", "deterministic", "fft", "small", "fft_tiling",
                                         "winograd_non_fused", *_DNN_RUNTIME), "",
     "How cuDNN computes the gradient of a convolution by its filters."),
    ("dnn.conv.precision", EnumStr("as_input_f32", "as_input", "float16", "float32", "float64"), "",
     "The precision that cuDNN convolves in."),
    ("magma.enabled", BoolParam(False), "", "Whether MAGMA is used."),
    ("magma.include_path", StrParam(""), "", "The folder of MAGMA's headers."),
    ("magma.library_path", StrParam(""), "", "The folder of MAGMA's library."),
    ("ctc.root", StrParam(""), "locked", "The folder of warp-ctc."),
    # accepted only: gone before Theano 1.0, and still set by programs
    ("lib.cnmem", FloatParam(0), "", "The older name of gpuarray.preallocate."),
    ("nvcc.fastmath", BoolParam(False), "", "Whether CUDA code trades precision for speed."),
)
# fmt: on


def _add_table() -> None:
    for name, param, marks, doc in _TABLE:
        words = marks.split()
        param.allow_override = "locked" not in words
        AddConfigVar(name, doc, param, in_c_key="key" in words)
        param.used = "used" in words


def _similar(name: str) -> str:
    """Return a question that names the flags spelled like ``name``, or nothing."""
    from opwise.errors import similar  # this module stands alone until a name is wrong

    return similar(name, _options)


def _warn_of_unknown_settings() -> None:
    for source in _sources:
        for name in source.unknown(_options):
            warnings.warn(
                f"Theano does not recognise this flag: {name} (set in {source.name})."
                f"{_similar(name)}",
                UserWarning,
                stacklevel=2,
            )


_add_table()
_warn_of_unknown_settings()
