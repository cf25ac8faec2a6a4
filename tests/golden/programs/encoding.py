"""Turns what a golden program returns into plain JSON values, and back into arrays.

Runs unchanged under the old Python that records and under the one that tests.
"""

import json
import re

import numpy as np

ARRAY_TEXT = re.compile(r"^(bool|u?int\d+|float\d+|complex\d+) \(([\d, ]*)\):(.*)$")

ERROR_MARK = "!! "

# Lines that name files of the machine that recorded, and the source lines below them.
_BACKTRACE = re.compile(
    r'^Backtrace when that variable is created:|^  File "[^\n]*|^    [^\n]*', re.MULTILINE
)

# The default name of a function: the file and line that made it.
_FUNCTION_NAME = re.compile(r'"[^"\s]*\.py:\d+"')

_MESSAGE_LIMIT = 400

# Between the labels of cases with equal results, in the recorded text.
AND = " || "


def encode(value):
    """Return `value` as JSON data: arrays become one line of text, containers keep their shape."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return encode_array(np.asarray(value))
    if isinstance(value, float):
        return encode_array(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    raise TypeError(f"a golden program returned {type(value)}, which has no recorded form")


def encode_array(array):
    """Return `dtype (shape): values`, every value in the shortest text that reads back exactly."""
    if array.dtype.kind not in "biufc":
        raise TypeError(f"arrays of dtype {array.dtype} have no recorded form")
    shape = ", ".join(str(length) for length in array.shape)
    values = "".join(" " + str(item) for item in array.ravel())
    return f"{array.dtype} ({shape}):{values}"


def decode_array(text):
    """Return the array behind a text of `encode_array`, or None for any other text."""
    match = ARRAY_TEXT.match(text)
    if match is None:
        return None
    dtype, shape_text, values = match.groups()
    shape = tuple(int(length) for length in shape_text.replace(",", " ").split())
    if dtype == "bool":
        items = [item == "True" for item in values.split()]
    else:
        items = values.split()
        if dtype.startswith("complex"):
            items = [complex(item) for item in items]
    return np.array(items).astype(dtype).reshape(shape)


def encode_error(error):
    """Return `!! Class: message`; classes that are not Python's own also name their bases.

    The text that linkers append about the failing Apply, backtraces and addresses are left out.
    """
    message = " | ".join(str(argument) for argument in error.args)
    message = message.split("Apply node that caused the error")[0]
    message = _BACKTRACE.sub("", message)
    message = _FUNCTION_NAME.sub('"<line>"', message)
    message = re.sub(r"0x[0-9a-f]+", "0x", message)
    message = " ".join(message.split())[:_MESSAGE_LIMIT]
    return f"{ERROR_MARK}{_class_text(type(error))}: {message}"


def _class_text(cls):
    if cls.__module__ == "builtins":
        return cls.__name__
    bases = [base.__name__ for base in cls.__mro__[1:] if issubclass(base, Exception)]
    return f"{cls.__name__}({', '.join(bases)})"


def attempt(function, *args, **kwargs):
    """Return the encoded result of a call, or the encoded exception that it raised."""
    try:
        return encode(function(*args, **kwargs))
    except Exception as error:  # whatever is raised is the recorded result of the case
        return encode_error(error)


def attempt_each(cases):
    """Return {label: encoded result} for a table {label: function without arguments}."""
    return {label: attempt(function) for label, function in cases.items()}


def text_of(document):
    """Return the JSON text of a record: cases with equal results stand together, on a line."""
    return _lines(dict(document, programs=_joined(document["programs"]))) + "\n"


def document_of(text):
    """Return the record that a text of `text_of` stands for."""
    document = json.loads(text)
    return dict(document, programs=_apart(document["programs"]))


def _lines(value):
    """Return JSON text; each item of a dict that does not fit into a line has lines of its own."""
    text = json.dumps(value, sort_keys=True)
    if len(text) <= 100 or not isinstance(value, dict):
        return text
    items = [json.dumps(key) + ": " + _lines(each) for key, each in sorted(value.items())]
    return "{\n" + ",\n".join(items) + "\n}"


def _joined(results):
    if isinstance(results, list):
        return [_joined(each) for each in results]
    if not isinstance(results, dict):
        return results
    labels = {}
    for label, result in sorted(results.items()):
        if AND in label:
            raise ValueError(f"the label {label!r} has {AND!r}, which stands between labels")
        labels.setdefault(json.dumps(_joined(result), sort_keys=True), []).append(label)
    return {AND.join(found): json.loads(result) for result, found in labels.items()}


def _apart(results):
    if isinstance(results, list):
        return [_apart(each) for each in results]
    if not isinstance(results, dict):
        return results
    # each case gets a result of its own: tests change some
    return {label: _apart(each) for key, each in results.items() for label in key.split(AND)}
