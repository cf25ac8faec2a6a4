"""How Sphinx makes the site of the pages in this repository: see scripts/site."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from opwise import __version__

project = "opwise"
author = "the opwise developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "tables"]
#: at the root of the site too: README up to its installation, and the list of all pages
root_doc = "index"
#: the pages as they stand in the repository, so that links between them work here and there
include_patterns = [
    "*.md", "docs/**.md", "tests/errors/pages/*.md", "benchmark/README.md",
    "benchmark/regression/data/README.md",
]  # fmt: skip
exclude_patterns = ["build", "doc", "README.md"]  # the front page includes README

myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"opwise {version}"
html_show_sphinx = html_show_copyright = False
html_copy_source = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
