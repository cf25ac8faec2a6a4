"""The names of ``theano.compat`` and its copy of six, for programs written for Python 2 and 3."""

import builtins
import collections.abc
import io
import itertools
import os
import pickle
import sys
from collections import OrderedDict
from functools import partial, reduce

PY2, PY3 = False, True
string_types = (str,)
integer_types = (int,)
class_types = (type,)
text_type = unicode = str
binary_type = bytes
MAXSIZE = maxsize = sys.maxsize
Iterator = collections.abc.Iterator
defaultdict = collections.defaultdict
Counter = collections.Counter
Callable = collections.abc.Callable
DefaultOrderedDict = collections.defaultdict
cPickle = pickle
StringIO = cStringIO = io.StringIO
BytesIO = io.BytesIO
xrange, range, zip, map, filter, input, next = (
    range, builtins.range, builtins.zip, builtins.map, builtins.filter, builtins.input,
    builtins.next,
)  # fmt: skip
izip, imap, ifilter, izip_longest = zip, map, filter, itertools.zip_longest


def iteritems(d):
    return iter(d.items())


def itervalues(d):
    return iter(d.values())


def iterkeys(d):
    return iter(d.keys())


def exc_message(e):
    """Return the message of an exception: its first argument, or the exception itself."""
    return e.args[0] if e.args else e


def cmp(a, b):
    """Return -1, 0 or 1 if a is smaller than b, equal to it, or greater."""
    return (a > b) - (a < b)


def decode(x):
    """Return bytes as a text."""
    return x.decode()


def decode_iter(itr):
    """Return the texts of several bytes."""
    return map(decode, itr)


def decode_with(x, encoding):
    """Return bytes in an encoding as a text."""
    return x.decode(encoding)


def maybe_add_to_os_environ_pathlist(var, newpath):
    """Put a folder first in a list of folders such as PATH, unless it is there already."""
    folders = os.environ.get(var, "").split(os.pathsep)
    if os.path.isabs(newpath) and newpath not in folders:
        os.environ[var] = os.pathsep.join([newpath, *filter(None, folders)])


def get_unbound_function(method):
    return method


def b(text):
    """Return text as bytes, one per character."""
    return text.encode("latin-1")


def with_metaclass(meta, *bases):
    """Return a base class with the metaclass ``meta``."""
    return meta("temporary", bases or (object,), {})


def add_metaclass(metaclass):
    """Return a decorator that makes a class again, with the given metaclass."""

    def wrap(cls):
        namespace = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        return metaclass(cls.__name__, cls.__bases__, namespace)

    return wrap


def reraise(tp, value, tb=None):
    """Raise an exception with a traceback."""
    raise (value if value is not None else tp()).with_traceback(tb)


__all__ = ["OrderedDict", "partial", "reduce"]
