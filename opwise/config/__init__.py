"""The options of opwise: ``config``, filled from files and the environment.

``flags`` and ``ignored`` are the tables of flags. What a flag does is in the modules that read it.
Importing this looks for no compiler, library or device, and creates no folder.
"""

from opwise.config import flags, ignored
from opwise.config.folders import local_bitwidth, python_int_bitwidth
from opwise.config.registry import (
    AddConfigVar,
    ConfigGroup,
    TheanoConfigParser,
    _config_var_list,
    _group_at,
    change_flags,
    check_setting,
    config,
    follow_environment,
    get_config_hash,
    thread_flags,
    warn_of_unknown_settings,
)
from opwise.config.sources import (
    TheanoConfigWarning,
    config_files,
    config_files_from_theanorc,
    parse_config_string,
    quoted,
)
from opwise.config.values import (
    BoolParam,
    ConfigParam,
    EnumStr,
    FloatParam,
    IntParam,
    StrParam,
    TypedParam,
    register_mode_name,
)

__all__ = [
    "AddConfigVar",
    "BoolParam",
    "ConfigGroup",
    "ConfigParam",
    "EnumStr",
    "FloatParam",
    "IntParam",
    "StrParam",
    "TheanoConfigParser",
    "TheanoConfigWarning",
    "TypedParam",
    "_config_var_list",
    "_group_at",
    "change_flags",
    "check_setting",
    "config",
    "config_files",
    "config_files_from_theanorc",
    "follow_environment",
    "get_config_hash",
    "local_bitwidth",
    "parse_config_string",
    "python_int_bitwidth",
    "quoted",
    "register_mode_name",
    "thread_flags",
]

flags.add_all()
ignored.add_all()
warn_of_unknown_settings()
