"""The golden programs with the word theano replaced by opwise, as a package of its own."""

import importlib
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

NAME = "replaced_programs"
FOLDER = Path(__file__).resolve().parent / "programs"


def replaced(value):
    """Return a text, or recorded results, with the word replaced.

    Not where the word alone is between quotes: a script measures its edit distance from others.
    """
    if isinstance(value, str):
        return re.sub(r'(?<!")\btheano\b|\btheano\b(?!")', "opwise", value)
    if isinstance(value, dict):
        return {replaced(key): replaced(each) for key, each in value.items()}
    return [replaced(each) for each in value] if isinstance(value, list) else value


class _Loader(importlib.machinery.SourceFileLoader):
    """Replaces the word in a module's source."""

    def get_code(self, fullname):
        """Compile the source; no file keeps the result."""
        return compile(replaced(Path(self.path).read_text(encoding="utf-8")), self.path, "exec")


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        """Find a module of the package."""
        first, *rest = name.split(".")
        if first != NAME:
            return None
        file = FOLDER.joinpath(*rest)
        file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        if not file.exists():
            return None
        loader = _Loader(name, str(file))
        return importlib.util.spec_from_file_location(name, file, loader=loader)


def programs():
    """Return {name: program}."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)  # before the one that finds the files as they are
    return importlib.import_module(NAME).PROGRAMS
