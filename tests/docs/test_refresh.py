"""What fills the pages with the output of commands; CI runs those of the real pages."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
spec = importlib.util.spec_from_file_location("refresh", DOCS / "refresh.py")
refresh = importlib.util.module_from_spec(spec)
spec.loader.exec_module(refresh)

PAGE = """Text.

<!-- run: printf 'a\\tb  \\n\\n\\nc\\n\\n'; echo kept > file -->
```text
old
```

<!-- run (3): cat file; exit 3 -->
```text
```

```text
left alone
```
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_outputs_replace_what_was_there(page):
    refresh.main([str(page)])
    blocks = re.findall(r"```text\n(.*?)```", page.read_text(), re.S)
    assert blocks == ["a       b\n\n\nc\n", "kept\n", "left alone\n"]
    again = page.read_text()
    refresh.main([str(page)])
    assert page.read_text() == again


def test_checking_changes_nothing(page):
    refresh.main(["--check", str(page)])
    assert page.read_text() == PAGE


def test_a_command_that_fails_stops(page):
    page.write_text(PAGE.replace("(3)", "(4)"))
    with pytest.raises(SystemExit, match="cat file; exit 3\nended with 3:\nkept"):
        refresh.main([str(page)])


def test_the_command_is_that_of_this_checkout(page):
    page.write_text("<!-- run: opwise --version -->\n```text\n```\n")
    refresh.main([str(page)])
    assert re.search(r"opwise, version \d", page.read_text())


def test_the_real_pages_have_commands_and_pictures():
    text = (DOCS / "profiling.md").read_text()
    assert len(refresh.BLOCK.findall(text)) > 8
    pictures = re.findall(r"\]\((pictures/.*?)\)", text)
    assert pictures and all((DOCS / picture).stat().st_size > 10_000 for picture in pictures)
    assert refresh.BLOCK.search((DOCS.parent / "README.md").read_text())
