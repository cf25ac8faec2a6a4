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
root_doc = "docs/index"
#: the pages as they stand in the repository, so that links between them work here and there
include_patterns = [
    "*.md", "docs/**.md", "tests/errors/pages/*.md", "benchmark/README.md",
    "benchmark/regression/data/README.md",
]  # fmt: skip
exclude_patterns = ["build", "doc"]

myst_heading_anchors = 4
html_theme = "furo"
html_title = f"opwise {version}"
html_show_sphinx = html_show_copyright = False
html_copy_source = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
