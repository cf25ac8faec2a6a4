"""Where settings come from: the configuration files and the environment variables, as text."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from configparser import RawConfigParser


class TheanoConfigWarning(Warning):
    """An entry of the configuration cannot be read and is ignored."""


class Source:
    """The settings of one file or variable, as text; files ignore the case of option names."""

    def __init__(self, name: str, settings: dict[str, str], is_file: bool = False):
        self.name = name
        self.settings = settings
        self.is_file = is_file

    def key(self, fullname: str) -> str:
        """Return the name under which this source holds the flag ``fullname``."""
        if not self.is_file:
            return fullname
        section, dot, option = fullname.rpartition(".")
        return section + dot + option.lower()

    def unknown(self, known: Iterable[str]) -> list[str]:
        """Return the names set here that are not in ``known``, sorted."""
        if not self.settings:
            return []
        return sorted(self.settings.keys() - {self.key(name) for name in known})


def parse_config_string(text: str, issue_warnings: bool = True, source: str = "") -> dict[str, str]:
    """Split ``"name=value,section.name=value"`` into a dictionary; the last of equal names wins.

    A value in quotes may contain commas. An entry without ``=`` is skipped with a
    TheanoConfigWarning. Raises ValueError if a quote is not closed.
    """
    if not text.strip():
        return {}
    import shlex  # most programs set no flags

    splitter = shlex.shlex(text, posix=True)
    splitter.whitespace = ","
    splitter.whitespace_split = True
    splitter.commenters = ""  # a value may contain a #
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


def quoted(value: str) -> str:
    """Return a value as ``parse_config_string`` reads it; in quotes if something in it needs them.

    Spaces at its ends are lost.
    """
    if not set(value).intersection(",'\"\\"):
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"


def expand_home(path: str) -> str | None:
    """Return a path with ``~`` or ``~user`` expanded, or None if that user has no home folder."""
    if not path.startswith("~"):
        return path
    user, _, rest = path.partition(os.sep)
    home = _home() if user == "~" else os.path.expanduser(user)
    return os.path.join(home, rest) if os.path.isabs(home) else None


def _home() -> str:
    """Return HOME if it is an absolute path, else the home of the system's user database, else "".

    A relative HOME would name another folder wherever the program starts.
    """
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return ""


def _listed_paths(variable: str, default: str) -> list[str]:
    """Return the files that an environment variable lists, with ``~`` expanded."""
    listed = os.environ.get(variable, default).split(os.pathsep)
    return [path for path in map(expand_home, filter(None, listed)) if path is not None]


def config_files_from_theanorc() -> list[str]:
    """Return the files of THEANORC (default: ``~/.theanorc``); later files win."""
    files = _listed_paths("THEANORC", "~/.theanorc")
    if "THEANORC" not in os.environ and sys.platform == "win32":
        files += _listed_paths("THEANORC", "~/.theanorc.txt")
    return files


def _substitutions() -> dict[str, str]:
    """Return the values of ``%(USER)s`` and the like in a configuration file."""
    user = os.environ.get("USER", os.path.basename(os.path.expanduser("~")))
    values = {"USER": user, "PID": str(os.getpid())}
    for variable in ("LSCRATCH", "TMPDIR", "TEMP", "TMP"):
        values[variable] = os.environ.get(variable, "")
    return {name: value.replace("%", "%%") for name, value in values.items()}


def _read_file(path: str) -> dict[str, str]:
    """Return the settings of an ini file by full name; a missing file has none.

    Raises ValueError if the file is not an ini file.
    """
    if not os.path.isfile(path):
        return {}
    import configparser  # takes longer than the rest of this package, and few users have a file

    # No section can have the empty name, so [DEFAULT] is a section like any other.
    parser = configparser.ConfigParser(_substitutions(), strict=False, default_section="")
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except OSError as error:
        warnings.warn(f"Cannot read {path}: {error}", TheanoConfigWarning, stacklevel=2)
    except (configparser.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not a configuration file: {error}\n"
            "Write [global] above flags without a dot, and [section] above flags of a section."
        ) from None
    return {
        option if section == "global" else f"{section}.{option}": _read_option(
            parser, section, option
        )
        for section in parser.sections()
        for option in parser.options(section)
        if option not in parser.defaults()
    }


def _read_option(parser: RawConfigParser, section: str, option: str) -> str:
    from configparser import InterpolationError

    try:
        return parser.get(section, option)
    except InterpolationError:
        return parser.get(section, option, raw=True)  # a pattern like compiledir_format


def _read_sources() -> list[Source]:
    """Return the files and then the environment variables; later ones win."""
    found = [Source(path, _read_file(path), is_file=True) for path in config_files]
    for variable in ("THEANO_FLAGS", "OPWISE_FLAGS"):
        text = os.environ.get(variable, "")
        found.append(Source(variable, parse_config_string(text, source=variable)))
    return found


def _environment() -> list[str | None]:
    """Return the environment variables on which settings depend."""
    names = ("THEANO_FLAGS", "OPWISE_FLAGS", "THEANORC", "OPWISERC")
    return [os.environ.get(name) for name in names]


def _files() -> list[str]:
    return config_files_from_theanorc() + _listed_paths("OPWISERC", "~/.opwiserc")


def read_again() -> bool:
    """Read the settings again; return False, and do nothing, if the environment has not changed."""
    now = _environment()
    if now == _read:
        return False
    _read[:] = now
    config_files[:] = _files()
    sources[:] = _read_sources()
    return True


_read = _environment()
config_files = _files()
sources = _read_sources()


def find_setting(fullname: str) -> tuple[str, str] | None:
    """Return the text that a file or variable sets for a flag, and the source's name; or None."""
    for source in reversed(sources):
        value = source.settings.get(source.key(fullname))
        if value is not None:
            return value, source.name
    return None
