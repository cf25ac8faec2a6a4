"""The object ``config``, the flags added to it, and how programs add and change them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from opwise.config.sources import find_setting, read_again, sources
from opwise.config.values import ConfigParam

TYPE_CHECKING = False  # importing typing for it would take longer than all of this package
if TYPE_CHECKING:
    from typing import Any

#: every flag by its full name, in the order in which print(config) shows them
options: dict[str, ConfigParam] = {}
# The legacy name, which programs iterate to find a flag by its fullname.
_config_var_list = options.values()


class ConfigGroup:
    """The flags of one section as attributes.

    The values are in the instance's dictionary: reading one is a plain attribute lookup.
    """

    _prefix: str

    def __init__(self, prefix: str):
        self.__dict__["_prefix"] = prefix

    def __getattr__(self, name: str) -> Any:
        # Reached for flags whose default is computed at the first read, and for unknown names.
        param = options.get(self._fullname(name))
        if param is None:
            if name.startswith("__"):  # of a protocol of Python's
                raise AttributeError(name, name=name, obj=self)
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}': there is no flag "
                f"{self._fullname(name)}.{_similar(self._fullname(name))} print(config) "
                "lists all flags.",
                name=name,
                obj=self,
            )
        return param.load_default()

    def __setattr__(self, name: str, value: Any) -> None:
        fullname = self._fullname(name)
        param = options.get(fullname)
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
        if fullname in options or isinstance(self.__dict__.get(name), ConfigGroup):
            raise AttributeError(f"config.{fullname} cannot be deleted, only set")
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        short = (name[len(self._prefix) :] for name in _names_under(self._prefix))
        return sorted({*super().__dir__(), *(name for name in short if "." not in name)})

    def __str__(self) -> str:
        lines: list[str] = []
        for name in _names_under(self._prefix):
            param = options[name]
            lines += [f"{param}", f"    Doc:  {param.doc}", f"    Value:  {param.__get__()}", ""]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Callable[[str], ConfigGroup], tuple[str]]:
        return _group_at, (self._prefix,)  # there is one config in a process

    def _fullname(self, name: str) -> str:
        prefix: str = self.__dict__.get("_prefix", "")
        return prefix + name


#: the values that a thread has set for itself, by flag; None: the value of the process
_of_thread: dict[str, ContextVar[Any]] = {}


def _thread_flag(name: str) -> property:
    """Return a flag that ``thread_flags`` can change for one thread; it costs little to read."""
    changed: ContextVar[Any] = ContextVar(f"opwise_{name}", default=None)
    _of_thread[name] = changed
    get = changed.get

    def read(group: ConfigGroup) -> Any:
        value = get()
        return group.__dict__[name] if value is None else value

    return property(read)


class TheanoConfigParser(ConfigGroup):
    """All flags: ``config.floatX``, ``config.profiling.n_apply``; ``print(config)`` lists them.

    The first of these that sets a flag decides its value: the program, OPWISE_FLAGS, THEANO_FLAGS,
    the files of OPWISERC (default: ``~/.opwiserc``), the files of THEANORC (default:
    ``~/.theanorc``), the default in the table.
    """

    compute_test_value = _thread_flag("compute_test_value")
    on_opt_error = _thread_flag("on_opt_error")
    optimizer_verbose = _thread_flag("optimizer_verbose")
    warn_float64 = _thread_flag("warn_float64")

    def unused(self) -> list[ConfigParam]:
        """Return the flags that opwise accepts and ignores, in the order of the table.

        If the ``source`` of one is not "default", the user set it without effect.
        """
        return [param for param in _config_var_list if not param.used]

    def chosen(self) -> list[ConfigParam]:
        """Return the flags that the program, the environment or a file set."""
        return [param for param in _config_var_list if param.source != "default"]


config = TheanoConfigParser("")


def _names_under(prefix: str) -> list[str]:
    return [name for name in options if name.startswith(prefix)]


def _group_at(prefix: str) -> ConfigGroup:
    """Return the group of a prefix like ``"dnn.conv."``, creating it if it is missing."""
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

    Its first value is the one that the environment or a file sets, else its default. ``in_c_key``
    says that generated C code depends on it. Raises AttributeError if the name is taken,
    TypeError if a part before a dot is not a section, ValueError for a value it does not accept.
    """
    section, dot, short = name.rpartition(".")
    group = _group_at(section + dot)
    is_taken = hasattr(type(group), short) and name not in _of_thread
    if name in options or short in group.__dict__ or is_taken:
        raise AttributeError(f"This name is already taken: {name}. Choose another for the flag.")
    configparam.fullname = name
    configparam.doc = doc
    configparam.in_c_key = in_c_key
    configparam.used = True
    configparam._group = group
    configparam._name = short
    _load(configparam)
    options[name] = configparam


def _load(param: ConfigParam) -> None:
    """Give a flag its first value, unless its default is computed at the first read."""
    param.source = "default"
    setting = find_setting(param.fullname)
    if setting is not None:
        text, source = setting
        try:
            value = param.filter(text)
        except ValueError as error:
            raise ValueError(f"{error} (It is set in {source}.)") from None
        param.store(value, source)
    elif not callable(param.default):
        param.store(param.filter(param.default), "default")


def follow_environment() -> None:
    """Set flags anew if the environment has changed since, as if opwise were imported now.

    Those that the program has set stay. Raises ValueError for a value that a flag does not accept.
    """
    if not read_again():
        return
    for param in options.values():
        if param.source != "code":
            param._group.__dict__.pop(param._name, None)
            _load(param)
    warn_of_unknown_settings()


def check_setting(name: str, text: str) -> None:
    """Raise ValueError if a flag does not accept a text; an unknown flag accepts any."""
    param = options.get(name)
    if param is not None:
        param.filter(text)


class change_flags:
    """Set flags within a ``with`` block or, as a decorator, within a function.

    ``change_flags(floatX="float32")`` or ``change_flags({"profiling.n_apply": 5})``. The old values
    come back at the end, also after an exception. Raises AssertionError for an unknown flag.
    """

    def __init__(self, args: Mapping[str, Any] | Iterable[Any] = (), **kwargs: Any):
        self.values = {**dict(args), **kwargs}
        self._saved: list[list[tuple[ConfigParam, Any, str]]] = []
        for name in self.values:
            if name not in options:
                raise AssertionError(f"There is no flag {name!r} to change.{_similar(name)}")

    def __enter__(self) -> change_flags:
        self._saved.append([])
        try:
            for name, value in self.values.items():
                param = options[name]
                self._saved[-1].append((param, param.stored(), param.source))
                param.__set__(None, value)
        except BaseException:  # KeyboardInterrupt too: the flags that were changed are restored
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        for param, value, source in reversed(self._saved.pop()):
            param.store(value, source)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_changed_flags(*args: Any, **kwargs: Any) -> Any:
            with change_flags(self.values):
                return function(*args, **kwargs)

        return with_changed_flags


@contextmanager
def thread_flags(**values: Any) -> Iterator[None]:
    """Set flags within a ``with`` block for this thread alone, whatever others read meanwhile.

    Only flags that are a ``_thread_flag`` of ``TheanoConfigParser`` can be given.
    """
    changes = [(_of_thread[name], options[name].filter(value)) for name, value in values.items()]
    tokens = [(changed, changed.set(value)) for changed, value in changes]
    try:
        yield
    finally:
        for changed, token in reversed(tokens):
            changed.reset(token)


def get_config_hash() -> str:
    """Return a digest of the flags that generated C code depends on, equal for equal values."""
    import hashlib  # only compiling needs it

    keyed = sorted((p.fullname, str(p.__get__())) for p in _config_var_list if p.in_c_key)
    return hashlib.sha256(repr(keyed).encode()).hexdigest()


def _similar(name: str) -> str:
    """Return a question that names the flags spelled like ``name``, or an empty text."""
    from opwise.errors import similar  # this package stands alone until a name is wrong

    return similar(name, options)


def warn_of_unknown_settings() -> None:
    """Warn of each name that a file or variable sets and that is not a flag."""
    for source in sources:
        # programs know the sentence of Theano about its flags
        who = "opwise" if source.name == "OPWISE_FLAGS" else "Theano"
        for name in source.unknown(options):
            warnings.warn(
                f"{who} does not recognise this flag: {name} (set in {source.name})."
                f"{_similar(name)}",
                UserWarning,
                stacklevel=2,
            )
