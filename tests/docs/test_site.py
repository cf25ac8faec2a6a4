"""The site that scripts/site makes: its front page, in a browser and as files."""

import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: the pages for those who know another library, in the order of the front page
FROM = ["From numpy and JAX", "From Theano", "From PyTensor"]


def test_every_page_is_in_a_list_of_the_site():
    index = (ROOT / "index.md").read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = str(page.relative_to(ROOT).with_suffix(""))
        assert f"\n{name}\n" in index, name


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name, reason="the site needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run([ROOT / "scripts/site", folder], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert made.stdout.split()[:2] == ["open", str(folder / "index.html")]
    return folder


class _Page(HTMLParser):
    """Targets of links within the site, sources of pictures, and the text of headings."""

    def __init__(self, path):
        super().__init__()
        self.links, self.pictures, self.headings, self._open = [], [], [], False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "a" and not urlsplit(attrs.get("href") or "#").scheme:
            self.links.append(unquote(urlsplit(attrs["href"]).path))
        elif tag == "img":
            self.pictures.append(attrs["src"])
        self._open = tag in ("h1", "h2")
        if self._open:
            self.headings.append("")

    def handle_data(self, data):
        if self._open:
            self.headings[-1] += data
            self._open = False


@pytest.mark.slow
def test_the_front_page_is_at_the_root_and_leads_everywhere(site):
    page = _Page(site / "index.html")
    assert page.headings == ["opwise", "Example", "Why opwise", "Where to go"]
    assert page.pictures and all((site / picture).is_file() for picture in page.pictures)
    linked = {link for link in page.links if link}
    assert all((site / link).is_file() for link in linked)
    pages = {str(p.relative_to(site)) for p in (site / "docs").glob("*.html")}
    assert pages > {"docs/start.html", "docs/profiling.html"} and pages <= linked
    firsts = [link for link in page.links if link.startswith("docs/from-")]
    assert [_Page(site / link).headings[0].strip() for link in dict.fromkeys(firsts)] == FROM
    assert not (site / "README.html").exists(), "the front page is README: not twice"


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
def test_the_front_page_fits_a_screen(site, browser, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((site / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    first, picture = page.locator("article p").first, page.locator("article img").first
    assert "shows where their time and memory go" in first.inner_text()
    box = picture.bounding_box()
    assert picture.evaluate("image => image.naturalWidth") > 1000
    assert box["y"] + box["height"] < 900, "seen without scrolling"
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    page.close()


#: for each table of Applys on a page: whether it fits, and which headings are seen unscrolled
_TABLES = """
() => [...document.querySelectorAll("article pre")].filter(
  pre => /^(?!.*COLUMNS)[^]*\\ntime ms  share.*  Apply\\n/.test(pre.textContent)
).map(pre => {
  const end = pre.getBoundingClientRect().left + pre.clientWidth, seen = [];
  const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
  const heading = /time ms  share.*  Apply/.exec(pre.textContent);
  let before = 0;
  for (let node; node = walker.nextNode(); before += node.data.length) {
    for (const word of node.data.matchAll(/\\S+/g)) {
      const place = before + word.index - heading.index;
      if (place < 0 || place >= heading[0].length) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (range.getBoundingClientRect().right <= end) seen.push(word[0]);
    }
  }
  return {fits: pre.scrollWidth <= pre.clientWidth, seen};
})
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", "docs/start", "docs/profiling"])
def test_reports_show_what_matters_on_every_screen(site, browser, name):
    """On a phone too: the time, its share, the line and the Apply; on a desktop, all of it."""
    for width in (1400, 390):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((site / f"{name}.html").as_uri())
        tables = page.evaluate(_TABLES)
        page.close()
        assert tables
        for table in tables:
            assert {"time", "share", "line", "Apply"} <= set(table["seen"]), (width, table)
            assert table["fits"] or width < 1400
