"""Names and texts of users stay names: none breaks out into C, CUDA, HTML, JSON, DOT or a terminal.

Each output is made twice, with plain names and with hostile ones, and their structure is compared.
"""

import io
import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import opwise
import theano
import theano.tensor as T
from opwise import Apply, Op
from opwise.graph.drawing import dot_source
from opwise.linkers import cbuild, kernels
from opwise.profiling.html import page

HOSTILE = {
    "C string": '"; system("touch broken"); //',
    "C comment": "*/ #error broken /*",
    "C line": '\n#error broken\n#include "/dev/zero"\n',
    "trigraph": "??/\n??=error broken",
    "format": "%s%n{0}{x!r}{{7*7}}{% raise %}",
    "script": "</script><script>broken()</script>",
    "element": "<img src=x onerror=broken()>\"'><svg/onload=broken()>",
    "comment": "--><!--<script>]]>",
    "JSON": '"},{"broken":1,"a":"\\',
    "lines": "a\r\nb\u2028c\u2029d\x85e",
    "terminal": "\x1b[31m\x1b]0;broken\x07\x9b2J\b\b",
    "shell": "$(touch broken)`touch broken`;touch broken|&",
    "path": "../../../etc/passwd",
    "option": "--help",
    "null": "a\0b",
    "direction": "\u202eevil\u2066\u200b\ufeff",
    "surrogate": "\udc80\ud800",
    "DOT": '"]; broken [label="x\\',
    "long": "x" * 20_000,
    "spaces": " \t ",
}
PLAIN = "plain"


class Named(Op):
    """Its text is a name."""

    def __init__(self, name):
        self.name = name

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2

    def __str__(self):
        return self.name


def class_name(name):
    """Return a name without the characters that Python refuses in names of classes and files."""
    return name.replace("\0", "").encode("utf-8", "ignore").decode()


def compiled(name, mode="FAST_RUN", op=None):
    """Return a profiled function that has a name in every place where users can put one."""
    x, w = T.dvector(name), opwise.shared(np.ones(3), name=name)
    with opwise.scope(name.replace("/", "_") or "empty"):
        y = T.exp(x * w) if op is None else op(x * w)
        y = T.opt.Assert(name)(y, T.gt(y.sum(), 0))
    namespace = {"y": y, "T": T}
    place = f"/{class_name(name)}"  # the path of a module
    exec(compile("z = (T.tanh(y) + 1).sum()", place, "exec"), namespace)
    z = namespace["z"]
    z.name = name
    return opwise.function([x], [z], updates=[(w, w + 1)], name=name, mode=mode, profile=True)


@pytest.fixture
def texts(monkeypatch, use_cache, tmp_path):
    """The texts that the compiler gets."""
    use_cache(tmp_path / "cache")
    found, genuine = [], cbuild._run

    def run(recipe, text, *args):
        found.append(text)
        return genuine(recipe, text, *args)

    monkeypatch.setattr(cbuild, "_run", run)
    monkeypatch.setattr(cbuild, "_loaded", type(cbuild._loaded)())
    return found


@pytest.mark.c
def test_generated_c_has_none_of_them(texts, flags, monkeypatch):
    """All these functions have one C text, so it is compiled once."""
    flags(cache_graphs=False)
    monkeypatch.setattr(kernels, "SHARE", 10**6)  # a file is not divided among compilers
    for name in (PLAIN, *HOSTILE.values()):
        f = compiled(name)
        np.testing.assert_allclose(f([0.0] * 3), [3 * (np.tanh(1) + 1)])
    assert len(set(texts)) == 1


class CCode(Named):
    """Doubles its argument in C++."""

    def c_code(self, node, name, inputs, outputs, sub):
        (x,), (z,) = inputs, outputs
        return (
            f"Py_XDECREF({z}); {z} = (PyArrayObject *)PyArray_Copy({x}); if (!{z}) {sub['fail']}\n"
            f"double *p = (double *)PyArray_DATA({z});\n"
            f"for (npy_intp i = 0; i < PyArray_SIZE({z}); i++) p[i] *= 2;"
        )

    def c_code_cache_version(self):
        return (1,)


@pytest.mark.c
@pytest.mark.parametrize("what", ["C string", "C comment", "C line", "trigraph"])
def test_names_of_classes_do_not_break_out_of_line_directives(what, texts):
    kind = type(class_name(HOSTILE[what]), (CCode,), {})
    f = compiled(HOSTILE[what], op=kind(HOSTILE[what]))
    np.testing.assert_allclose(f([1.0] * 3), [3 * (np.tanh(2) + 1)])
    (text,) = [text for text in texts if "Py_XDECREF" in text and "PyArray_Copy" in text]
    assert f'"{HOSTILE[what]}' not in text and "broken;" not in text
    lines = [line for line in text.splitlines() if "broken" in line]
    assert lines and all(re.fullmatch(r'#line 1 "[\w.<>\']*"', line) for line in lines)


@pytest.mark.c
def test_cuda_has_none_of_them(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "gpu"))
    for module in ("kernel_cases", "nvrtc"):
        sys.modules.pop(module, None)
    import kernel_cases

    from opwise.gpu.kernels.kernel import module_text

    def text_of(name):
        x, y = T.fmatrix(name), T.fmatrix(name)
        out = T.exp(x * y) + 1
        out.name = name
        node = opwise.function([x, y], out, mode="FAST_RUN").maker.fgraph.toposort()[0]
        return module_text(kernel_cases.made(node).kernels)

    plain = text_of(PLAIN)
    assert "__global__" in plain
    assert {text_of(name) for name in HOSTILE.values()} == {plain}


# --- reports --------------------------------------------------------------------------------------


class Structure(HTMLParser):
    """Collects the elements of a page with the names of their attributes, without their texts."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, sorted(name for name, _ in attributes)))

    def handle_comment(self, data):
        self.found.append(("comment",))


@pytest.fixture(scope="module")
def functions():
    """The function with plain names, and those with hostile ones, by what these are for."""
    made = {}
    for what, name in {"plain": PLAIN, **HOSTILE}.items():
        made[what] = compiled(name, "FAST_COMPILE", Named(name))
        made[what]([1.0] * 3)
    return made


def same_for_all(functions, structure):
    """Check that the structure of what is made of a function is that of plain names."""
    plain = structure(functions["plain"])
    same = {what: structure(f) == plain for what, f in functions.items()}
    assert same == dict.fromkeys(functions, True)


def test_pages_have_the_same_elements(functions, tmp_path):
    def elements(f):
        theano.d3viz.d3viz(f, tmp_path / "graph.html")
        pages = page.page(f.profile.profile()), (tmp_path / "graph.html").read_text()
        return [Structure(text).found for text in pages]

    same_for_all(functions, elements)


def test_notebooks_get_the_same_elements(functions):
    """A report in a notebook leaves rows out."""

    def elements(f):
        return set(map(str, Structure(f.profile.profile()._repr_html_()).found))

    same_for_all(functions, elements)


def test_files_are_json_of_the_same_form(functions, tmp_path):
    def forms(f):
        profile = f.profile.profile()
        profile.save(tmp_path / "p.json")
        profile.export_chrome_trace(tmp_path / "t.json")
        profile.export_speedscope(tmp_path / "s.json")
        return [form(json.loads((tmp_path / f"{n}.json").read_text())) for n in "pts"]

    same_for_all(functions, forms)
    assert sorted(os.listdir(tmp_path)) == ["p.json", "s.json", "t.json"]


def form(data):
    """Return the form of JSON data: the keys of objects, and the kinds of values."""
    if isinstance(data, dict):
        if not all(map(str.isidentifier, data)):
            return f"table of {sorted({str(form(value)) for value in data.values()})}"
        return {key: form(data[key]) for key in sorted(data)}
    if isinstance(data, list):
        return sorted({str(form(one)) for one in data})
    return "number" if isinstance(data, int | float) else type(data).__name__


_QUOTED = r'"(?:[^"\\]|\\.)*"'


def test_pictures_have_the_same_statements(functions):
    same_for_all(functions, lambda f: re.sub(_QUOTED, "", dot_source(f)))
    for f in functions.values():
        assert not re.search(r"[\0\n]", "".join(re.findall(_QUOTED, dot_source(f))))


#: characters that move a terminal's cursor, change its state or turn the direction of writing
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    "show",
    [
        lambda f, file: theano.printing.debugprint(f, file=file),
        lambda f, file: file.write(theano.printing.pp(f.maker.fgraph.outputs[0])),
        lambda f, file: f.profile.summary(file=file),
        lambda f, file: file.write(error_of(f)),
    ],
    ids=["debugprint", "pp", "summary", "error"],
)
def test_what_is_printed_controls_no_terminal(functions, show):
    found = {}
    for what, f in functions.items():
        file = io.StringIO()
        show(f, file)
        found[what] = sorted(set(_CONTROL.findall(file.getvalue())))
    assert found == {what: [] for what in functions}


def error_of(f):
    """Return the message of a call that fails in an Apply."""
    with pytest.raises(ValueError) as raised:
        f([1.0] * 2)
    return str(raised.value)
