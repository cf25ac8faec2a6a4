"""The file of a page: one piece, closed, escaped, written as a whole."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import opwise.tensor as T
from opwise import ProfileMode, ProfileStats, function
from opwise.profiling.html import page
from opwise.profiling.profile import Profile

pytestmark = pytest.mark.null

FOLDER = Path(page.__file__).parent


class Elements(HTMLParser):
    """All elements of a page: (name, attributes, text inside, for scripts and styles)."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self._inside = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])
        self._inside = True

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.found[-1][2] += data

    def named(self, name):
        return [one for one in self.found if one[0] == name]


def embedded(html):
    (data,) = (text for _, attrs, text in Elements(html).named("script") if attrs.get("id"))
    return json.loads(data)


@pytest.fixture(params=["profile", "difference"])
def html(request, sample, difference_rows):
    if request.param == "profile":
        return page.page(sample)
    return page.difference_page(sample, sample, {"Apply": difference_rows})


def test_the_page_forbids_all_but_its_own_scripts(html):
    elements = Elements(html)
    (policy,) = (
        attrs["content"] for _, attrs, _ in elements.named("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    scripts = [text for _, attrs, text in elements.named("script") if "type" not in attrs]
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert rules["script-src"].split() == [f"'sha256-{one}'" for one in hashes]
    assert len(scripts) == 3


def test_the_page_names_nothing_outside(html):
    for tag, attrs, _ in Elements(html).found:
        for name, value in attrs.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "action", "data", "srcset"):
                assert value.startswith(("#", "data:")), (tag, name, value)


def test_data_comes_back_as_it_was(sample):
    html = page.page(sample)
    assert embedded(html)["applys"]["ns"] == [a.total for a in sample.applys]


def test_hostile_texts_stay_texts(hostile, sample):
    html = page.page(hostile)
    plain = page.page(sample)
    assert len(Elements(html).named("script")) == len(Elements(plain).named("script"))
    assert not Elements(html).named("img")
    data = embedded(html)
    assert hostile.message in data["texts"]
    assert "49" not in data["texts"]
    assert "\u2028" not in html.partition('id="data">')[2].partition("</script>")[0]


def test_json_in_a_script_has_no_markup():
    text = page.embedded(["</script>", "<!--", "&amp;", "\u2028\u2029", "\ud800"])
    assert not set("<>&\u2028\u2029\ud800") & set(text)
    assert json.loads(text) == ["</script>", "<!--", "&amp;", "\u2028\u2029", "\ud800"]
    with pytest.raises(ValueError, match="JSON compliant"):
        page.embedded([float("nan")])


def test_our_scripts_never_make_html_of_text():
    for path in sorted((FOLDER / "assets").glob("*.js")):
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in path.read_text(), path


def test_a_large_page_is_small_enough(large):
    html = page.page(large)
    assert len(html.encode()) < 5_000_000


def test_long_texts_leave_a_large_page_small_enough(large):
    from dataclasses import replace

    (f,) = large.functions
    applys = tuple(
        replace(a, op=f"Composite{k}{'x' * 700}", op_key=f"k{k}", text=f"C{k}({'y' * 500})")
        for k, a in enumerate(f.applys)
    )
    html = page.page(Profile((replace(f, applys=applys),)))
    assert len(html.encode()) < 5_000_000


def test_vendored_files_are_those_that_are_listed():
    listed = dict(
        re.findall(r"^\| `([\w.]+)` \|.*`([0-9a-f]{64})` \|$", (FOLDER / "vendor/VERSIONS.md")
                   .read_text(), re.M)
    )  # fmt: skip
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for pattern in ("*.min.js", "*.min.css")
        for path in (FOLDER / "vendor").glob(pattern)
    }
    assert listed == found


def test_no_asset_ends_its_element():
    for path in [*FOLDER.glob("assets/*"), *FOLDER.glob("vendor/*.min.*")]:
        assert not re.search(r"</(script|style)|<!--|\r", path.read_text(), re.I), path


# --- files ----------------------------------------------------------------------------------------


def test_a_page_replaces_a_file_as_a_whole(sample, tmp_path, monkeypatch):
    path = tmp_path / "out.html"
    sample.report(path)
    first = path.read_bytes()
    assert first.startswith(b"<!doctype html>")

    def fail(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk is full"):
        Profile().report(path)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]


def test_a_folder_that_is_not_there_is_an_oserror(sample, tmp_path):
    with pytest.raises(FileNotFoundError):
        sample.report(str(tmp_path / "none" / "out.html"))


def test_names_that_are_no_utf8_can_be_written(build, tmp_path):
    an_apply, a_function, Profile = build
    profile = Profile((a_function(an_apply("a", 5, lines=[("/src/\udcff.py", 1)])),), "\udcff")
    profile.report(tmp_path / "out.html")
    assert b"\\udcff" in (tmp_path / "out.html").read_bytes()


def test_what_records_writes_pages(tmp_path):
    x = T.dvector("x")
    mode = ProfileMode("py", "fast_compile", message="by mode")
    stats = ProfileStats(atexit_print=False)
    options_of = {"mode": {"mode": mode}, "stats": {"mode": "FAST_COMPILE", "profile": stats}}
    for name, options in options_of.items():
        f = function([x], T.exp(x).sum(), name=f"f by {name}", **options)
        f(np.ones(3))
    mode.report(tmp_path / "mode.html")
    stats.report(tmp_path / "stats.html")
    for name in ("mode", "stats"):
        data = embedded((tmp_path / f"{name}.html").read_text(encoding="utf-8"))
        assert f"f by {name}" in data["texts"]
        assert sum(data["applys"]["count"]) >= 1
    for one in (mode, stats):
        assert "in 1 call<" in one._repr_html_()


# --- in notebooks ---------------------------------------------------------------------------------


def test_a_notebook_shows_figures_and_the_slowest(sample):
    html = sample._repr_html_()
    assert "a sample" in html
    assert html.index("Dot22") < html.index("tanh((i0 + i1))") < html.index("Gemm{inplace}")
    assert "256 KiB" in html
    assert "<script" not in html


def test_a_notebook_shows_ten_rows_and_counts_the_others(large):
    html = large._repr_html_()
    assert html.count("<tr>") == 2 + 10
    assert "9990 more" in html


def test_a_notebook_takes_hostile_texts_for_texts(hostile):
    html = hostile._repr_html_()
    elements = {tag for tag, _, _ in Elements(html).found}
    assert elements <= {"div", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert "&lt;/script&gt;" in html


def test_a_notebook_shows_an_empty_profile():
    assert "in 0 calls" in Profile()._repr_html_()


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (12.3, "12.3 ns"), (999, "999 ns"), (1500, "1.5 µs"), (2e6, "2 ms"),
     (61.5e9, "61.5 s"), (4321e9, "4321 s")],
)  # fmt: skip
def test_durations(ns, text):
    assert page.duration(ns) == text
