"""What linkers append to the exception of a failing Apply, the user's lines left out."""

import re

from .register import program

# Where it was made; what the inputs are and what to do about it, which opwise alone says.
_BACKTRACE = re.compile(
    r"(?:\n\n(?:Backtrace when the node is created|Its inputs|What to do)[^\n]*"
    r"(?:\n(?:  |It computes the expressions)[^\n]*)*)+\n"
)


def appended(function, *values):
    """Return the text from `Apply node that caused the error` on, without the backtrace."""
    try:
        function(*values)
    except Exception as error:  # any class may fail; the text is what is recorded
        _, mark, after = str(error).partition("Apply node that caused the error")
        return (mark + _BACKTRACE.sub("", after)).strip()
    return "no exception"


@program("failures.appended_text")
def appended_text(theano, T, np):
    """Failing products, sums, indices and shapes under several linkers."""
    x, y, v, i = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.ivector("i")
    s = theano.shared(np.ones((2, 2)), name="s")
    ones = np.ones
    cases = {
        "dot": ([x, y], T.dot(x, y), (ones((2, 3)), ones((2, 3)))),
        "dot + 1": ([x, y], T.dot(x, y) + 1, (ones((2, 3)), ones((2, 3)))),
        "add": ([x, y], x + y, (ones((2, 3)), ones((4, 3)))),
        "index": ([v], v[5], (ones(3),)),
        "advanced index": ([v, i], v[i] * 2, (ones(3), np.array([7], "int32"))),
        "reshape": ([v], v.reshape((2, 2)), (ones(3),)),
        "shared": ([x], T.dot(s, x), (ones((3, 3)),)),
        "two clients": ([x, y], [T.dot(x, y) + 1, T.dot(x, y) * 2], (ones((2, 3)), ones((2, 3)))),
        "transposed": ([x, y], T.dot(x.T, y), (ones((2, 3)), ones((3, 3)))),
        "join": ([x, y], T.concatenate([x, y]), (ones((2, 3)), ones((2, 2)))),
        "values shown": ([v], v.reshape((2, 2)), (np.array([1.0, 2.0, 3.0]),)),
    }
    results = {}
    for linker in ("py", "cvm", "c|py"):
        for label, (inputs, outputs, values) in cases.items():
            mode = theano.Mode(linker, "fast_run")
            results[f"{label} {linker}"] = appended(
                theano.function(inputs, outputs, mode=mode), *values
            )
    for label, optimizer in (("dot", "fast_compile"), ("add", None)):
        inputs, outputs, values = cases[label]
        mode = theano.Mode("py", optimizer)
        results[f"{label} {optimizer}"] = appended(
            theano.function(inputs, outputs, mode=mode), *values
        )
    return results


@program("failures.high_verbosity")
def high_verbosity(theano, T, np):
    """The longer text under exception_verbosity=high."""
    x, y = T.dmatrix("x"), T.dmatrix("y")
    with theano.change_flags(exception_verbosity="high"):
        mode = theano.Mode("cvm", "fast_run")
        function = theano.function([x, y], T.dot(x, y) + 1, mode=mode)
        text = appended(function, np.ones((2, 3)), np.ones((4, 3)))
    return text


@program("failures.state_after")
def state_after(theano, T, np):
    """A failing call leaves shared variables as they were, and the function usable."""
    v = T.dvector("v")
    s, n = theano.shared(np.zeros(3), name="s"), theano.shared(0, name="n")
    for_each = {}
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        s.set_value(np.zeros(3))
        n.set_value(0)
        step = theano.function([v], updates=[(n, n + 1), (s, s + v)], mode=mode)
        step(np.ones(3))
        try:
            step(np.ones(2))
        except ValueError as error:
            for_each[mode + " class"] = type(error).__name__
        step(np.ones(3))
        for_each[mode] = [s.get_value(), n.get_value()]
    return for_each
