"""Expressions of numpy, traced and compiled many at a time, and compared with numpy itself."""

import linecache
import warnings

import numpy as np

import opwise
from opwise.errors import TracingError


class Case:
    """One expression over arrays, its result by numpy, and by a compiled function."""

    def __init__(self, text, names):
        self.text = text
        self.code = compile(text, f"<{text}>", "eval")
        self.names = names
        self.expected = self.error = self.trace_error = None

    def by_numpy(self, values):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.expected = evaluate(
                    self.code,
                    [np.copy(v) if isinstance(v, np.ndarray) else v for v in values],
                    self.names,
                )
        except Exception as error:
            self.error = error


def evaluate(code, values, names):
    return eval(code, {"np": np, **dict(zip(names, values, strict=True))})


def check(texts, mode="FAST_COMPILE", untraceable=(), rtol=None, **arrays):
    """Compare all expressions for these arrays; return a list of differences."""
    names, values = list(arrays), list(arrays.values())
    cases = [Case(text, names) for text in texts]
    for case in cases:
        case.by_numpy(values)
    found = []
    _compare(cases, values, mode, found, rtol)
    return found


def _compare(cases, values, mode, found, rtol):
    """Trace all cases as one function; if its call fails, try them one by one."""

    def everything(*args):
        results = {}
        for case in cases:
            case.trace_error = None
            try:
                with warnings.catch_warnings():  # that numpy gives in its own functions
                    warnings.simplefilter("ignore")
                    results[case.text] = evaluate(case.code, args, case.names)
            except Exception as error:
                case.trace_error = error
        return results

    results, failure = {}, None
    try:
        results = opwise.jit(everything, mode=mode)(
            *[np.copy(v) if isinstance(v, np.ndarray) else v for v in values]
        )
    except Exception as error:
        failure = error
    if failure is not None and len(cases) > 1:
        for case in cases:
            _compare([case], values, mode, found, rtol)
        return
    for case in cases:
        text = difference(case, results.get(case.text), case.trace_error or failure, rtol)
        if text:
            found.append(f"{case.text}: {text}")


def check_converted(texts, mode="FAST_COMPILE", **arrays):
    """Compare expressions, as parts of a function with source; return a list of differences."""
    names, values = list(arrays), list(arrays.values())
    found, cases = [], [Case(text, names) for text in texts]
    for case in cases:
        case.by_numpy(values)
    good = [case for case in cases if case.error is None]
    for some in (good, *[[case] for case in cases if case.error is not None]):
        _compare_converted(some, values, mode, found)
    return found


def _compare_converted(cases, values, mode, found):
    """Compare cases as one function; if its call fails, one by one."""
    results = failure = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = opwise.jit(_with_source(cases), mode=mode)(*map(np.copy, values))
    except Exception as error:
        failure = error
    if failure is not None and len(cases) > 1:
        for case in cases:
            _compare_converted([case], values, mode, found)
        return
    for case, result in zip(cases, results or [None] * len(cases), strict=True):
        text = difference(case, result, failure)
        if text:
            found.append(f"{case.text}: {text}")


def _with_source(cases):
    """Return a function that returns the values of expressions, and whose source is known."""
    lines = [f"def program({', '.join(cases[0].names)}):", "    return ["]
    lines += [f"        {case.text}," for case in cases]
    text = "\n".join([*lines, "    ]\n"])
    file = f"<expressions {len(linecache.cache)}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    space = {"np": np}
    exec(compile(text, file, "exec"), space)
    return space["program"]


def difference(case, result, error, rtol=None):
    if error is not None:
        if isinstance(error, TracingError):
            return None if case.error is not None else f"untraceable: {str(error)[:300]}"
        if case.error is not None:
            return None
        return f"raised {type(error).__name__}: {str(error)[:600]}; numpy gives {case.expected!r}"
    if case.error is not None:
        return f"gives {result!r}; numpy raises {case.error!r}"
    return unequal(case.expected, result, rtol)


def unequal(expected, result, rtol=None):
    """Return how two results differ, or None."""
    if isinstance(expected, list | tuple):
        if len(expected) != len(result):
            return f"{len(result)} results instead of {len(expected)}"
        for one, two in zip(expected, result, strict=True):
            text = unequal(one, two, rtol)
            if text:
                return text
        return None
    if isinstance(expected, np.generic) != isinstance(result, np.generic):
        return f"type {type(result)} instead of {type(expected)}: {result!r} {expected!r}"
    if isinstance(expected, np.ndarray | np.generic):
        if not isinstance(result, np.ndarray | np.generic):
            return f"type {type(result)} instead of {type(expected)}"
        if expected.dtype != result.dtype:
            return f"dtype {result.dtype} instead of {expected.dtype}"
        if expected.shape != result.shape:
            return f"shape {result.shape} instead of {expected.shape}"
    elif type(expected) is not type(result):
        return f"type {type(result)} instead of {type(expected)}"
    if not isinstance(expected, np.ndarray | np.generic | int | float | complex):
        return None if expected == result else f"{result!r} instead of {expected!r}"
    dtype = np.asarray(expected).dtype
    if dtype.kind in "fc":
        digits = {2: 5e-3, 4: 2e-5, 8: 1e-10}[np.zeros(0, dtype).real.dtype.itemsize]
        near = np.allclose(result, expected, rtol=rtol or digits, atol=digits, equal_nan=True)
    else:
        near = np.array_equal(result, expected)
    return None if near else f"{result!r} instead of {expected!r}"


def run_statements(text, arrays):
    """Run statements over copies of arrays; return what they made of them, or the error."""
    names = list(arrays)
    body = "\n".join(f"    {line}" for line in text.split("\n"))
    source = f"def program({', '.join(names)}):\n{body}\n    return ({', '.join(names)},)\n"
    space = {"np": np}
    exec(compile(source, f"<{text}>", "exec"), space)
    return space["program"]


def check_statements(texts, mode="FAST_COMPILE", **arrays):
    """Compare what statements change in their arguments with numpy; return a list of differences.

    Arguments are changed in place, and what is returned is the same arrays.
    """
    found = []
    for text in texts:
        program = run_statements(text, arrays)
        expected = {k: np.copy(v) for k, v in arrays.items()}
        error = None
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program(**expected)
        except Exception as raised:
            error = raised
        given = {k: np.copy(v) for k, v in arrays.items()}
        try:
            returned = opwise.jit(program, mode=mode)(*given.values())
        except Exception as raised:
            if error is None:
                found.append(f"{text}: raised {type(raised).__name__}: {str(raised)[:600]}")
            continue
        if error is not None:
            found.append(f"{text}: gives {returned!r}; numpy raises {error!r}")
            continue
        for name, value in given.items():
            if returned[list(given).index(name)] is not value:
                found.append(f"{text}: {name} is returned as another array")
            different = unequal(expected[name], value)
            if different:
                found.append(f"{text}: {name} is {different}")
    return found
