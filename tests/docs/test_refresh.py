"""What fills the pages with the output of commands; CI runs those of the real pages."""

import importlib.util
import re
import subprocess
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
    first = "$ printf 'a\\tb  \\n\\n\\nc\\n\\n'\n$ echo kept > file\na       b\n\n\nc\n"
    assert blocks == [first, "$ cat file\n$ exit 3\nkept\n", "left alone\n"]
    again = page.read_text()
    refresh.main([str(page)])
    assert page.read_text() == again


@pytest.mark.parametrize("printed", ["[1, 2]", "[1, 3]"])
def test_comments_say_what_is_printed(tmp_path, printed):
    page = tmp_path / "page.md"
    page.write_text(f"```python\nx = 2\nprint([1, x])  # {printed}\n```\n")
    if printed == "[1, 2]":
        refresh.main(["--check", str(page)])
    else:
        with pytest.raises(SystemExit, match="did not print '\\[1, 3\\]'"):
            refresh.main(["--check", str(page)])


@pytest.mark.parametrize("command, lines", [
    ("opwise run $REPOSITORY/b.py --c 2>&1 | tail -6", ["$ opwise run b.py --c"]),
    ("opwise run a.py > /dev/null 2>&1; opwise diff a b",
     ["$ opwise run a.py", "$ opwise diff a b"]),
    ("cd $REPOSITORY && A=b:c,d=e python f.py | sed -n '/^x;/,/y|z/p' | head -n 2",
     ["$ A=b:c,d=e python f.py"]),
    ("opwise report --html a.html a.json && ls a.html", ["$ opwise report --html a.html a.json"]),
])  # fmt: skip
def test_what_a_reader_types(command, lines):
    assert refresh.typed(command).splitlines() == lines


@pytest.mark.parametrize("command, lines", [
    ("seq 5", ["1", "2", "3", "4", "5"]),
    ("seq 5 | tail -2", ["[...]", "4", "5"]),
    ("seq 5 | head -n 2", ["1", "2", "[...]"]),
    ("seq 100000 | head -n 1", ["1", "[...]"]),
    ("seq 5 | sed -n '2p;4p'", ["[...]", "2", "[...]", "4", "[...]"]),
    ("seq 5 | sed /3/d | grep -v 2", ["1", "[...]", "4", "5"]),
    ("seq 5 | tail -n 5", ["1", "2", "3", "4", "5"]),
    ("printf 'a\\n\\n\\nb\\n' | sed '/^$/d'", ["a", "b"]),  # blank lines need no mark
    ("(seq 2; echo error >&2) 2>&1 | tail -n 2", ["[...]", "2", "error"]),
    ("seq 2 > /dev/null 2>&1; echo 3", ["[...]", "3"]),
    ("seq 2 > /dev/null; seq 3 | tail -n 1", ["[...]", "3"]),
    ("true > /dev/null; echo 3", ["3"]),
    ("echo 1; seq 3 | tail -n 1", ["1", "[...]", "3"]),
])  # fmt: skip
def test_what_a_filter_takes_is_marked(page, command, lines):
    page.write_text(f"<!-- run: {command} -->\n```text\n```\n")
    refresh.main([str(page)])
    printed = [line for line in page.read_text().splitlines()[2:-1] if not line.startswith("$ ")]
    assert printed == lines
    refresh.main(["--check", str(page)])


@pytest.mark.parametrize("recorded, command, said", [
    ("2\n", "seq 2 | tail -n 1", "lines are left out without the mark"),
    ("[...]\n2\n", "seq 2 2 | tail -n 1", "nothing is left out at the mark"),
])  # fmt: skip
def test_a_mark_that_is_stale_stops_a_check(page, recorded, command, said):
    page.write_text(f"<!-- run: {command} -->\n```text\n$ seq\n{recorded}```\n")
    with pytest.raises(SystemExit, match=said):
        refresh.main(["--check", str(page)])


def test_a_filter_that_leaves_nothing_stops(page):
    page.write_text("<!-- run: seq 3 | sed -n '/x/p' -->\n```text\nold\n```\n")
    with pytest.raises(SystemExit, match="printed nothing"):
        refresh.main([str(page)])


def test_output_is_as_wide_as_its_command_says(page):
    long, wide = "word " * 30, "word " * 50
    page.write_text(
        f"<!-- run: echo $COLUMNS; echo {long} -->\n```text\n```\n"
        f"<!-- run: export COLUMNS=200; echo $COLUMNS; echo {wide} -->\n```text\n```\n"
    )
    refresh.main([str(page)])
    narrow, wide = re.findall(r"```text\n(.*?)```", page.read_text(), re.S)
    narrow, wide = (text.splitlines()[-2:] for text in (narrow, wide))
    assert narrow[0] == "80" and narrow[1].endswith(" …") and 95 < len(narrow[1]) <= 100
    assert wide[0] == "200" and wide[1].endswith(" …") and 195 < len(wide[1]) <= 200


def records():
    """Yield (page, block) for each recorded output of the real pages."""
    for name in refresh.PAGES:
        for block in refresh.BLOCK.finditer((DOCS.parent / name).read_text(encoding="utf-8")):
            if block["command"]:
                yield name, block


def test_recorded_output_is_complete_or_marked():
    """Else: python docs/refresh.py PAGE; a filter that takes nothing is not needed."""
    for name, block in records():
        takes = "/dev/null" in block["command"] or refresh._FILTERS.search(block["command"])
        assert bool(takes) == (refresh.LEFT_OUT in block["old"].split("\n")), (name, block[0])


def test_recorded_output_fits_the_pages():
    """Tables have 80 columns, of which a phone shows 55; only what the page shows may be wider."""
    for name, block in records():
        output = [line for line in block["old"].splitlines() if not line.startswith("$ ")]
        longest = max(map(len, output))
        assert longest <= refresh.columns(block["command"]), (name, block["command"])
        if "opwise report" in block["command"] and "--form" not in block["command"]:
            heading = next((line for line in output if line.startswith("time ms ")), "")
            if heading.endswith("  Apply") and "COLUMNS" not in block["command"]:
                assert {"share", "line"} <= set(heading.split()), (name, heading)
                assert heading.index("Apply") < 50, (name, heading)


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


def test_a_command_that_prints_nothing_stops(page):
    page.write_text("<!-- run: true -->\n```text\nold\n```\n")
    with pytest.raises(SystemExit, match="true\nprinted nothing"):
        refresh.main([str(page)])


MARKED = """
<!-- set-up: echo hidden > hidden.txt -->
<!-- file: program.py -->
```python
import sys
print("program", *sys.argv[1:])
```

Commands of one block are one script:

```sh
python program.py with arguments > printed.txt   # a comment
word=kept; echo $word >> printed.txt
```

<!-- may end with 2 -->
```sh
exit 2
```

<!-- not run: it would fail -->
```sh
exit 3
```

<!-- test-command -->
```sh
exit 3
```
<!-- /test-command -->

```python
from pathlib import Path

lines = Path("printed.txt").read_text().split("\\n")
assert lines == ["program with arguments", "kept", ""], lines
assert Path("hidden.txt").exists()
```
"""


def test_blocks_run_in_one_folder_as_their_marks_say(page, capsys):
    page.write_text(MARKED)
    refresh.main(["--check", str(page)])
    shown = capsys.readouterr().out
    lines = [MARKED[: m.start()].count("\n") + 1 for m in refresh.BLOCK.finditer(MARKED)]
    assert [int(line.split(":")[1]) for line in shown.splitlines()] == lines
    assert shown.count("not run: it would fail") == shown.count("test-command") == 1


@pytest.mark.parametrize(
    ("text", "replacement", "message"),
    [
        ("```sh\nexit 2", "```sh\nexit 4", "exit 4\n\nended with 4"),
        ("word=kept", "false", "\nended with 1"),
        ("<!-- not run: it would fail -->", "", "\nended with 3"),
        ('"kept", ""', '"lost"', "AssertionError: \\['program with arguments', 'kept', ''\\]"),
    ],
)
def test_a_block_that_fails_stops(page, text, replacement, message):
    assert text in MARKED
    page.write_text(MARKED.replace(text, replacement))
    with pytest.raises(SystemExit, match=message):
        refresh.main(["--check", str(page)])


FENCE = re.compile(r"^ *```(\w*)$", re.M)


@pytest.mark.parametrize("name", refresh.PAGES)
def test_every_block_of_the_real_pages_is_known(name):
    """A block is run, or its mark says why not, or it is text: no other language slips through."""
    text = (DOCS.parent / name).read_text(encoding="utf-8")
    blocks = list(refresh.BLOCK.finditer(text))
    fences = FENCE.findall(text)
    assert set(fences[1::2]) == {""}
    # tests/command/test_recipes.py runs the recipes
    languages = [each for each in fences[::2] if each != "yaml" or name != "docs/gate.md"]
    assert set(languages) <= {"sh", "python", "text"}
    assert languages.count("text") == sum(block["command"] is not None for block in blocks)
    assert len(languages) == sum(block["setup"] is None for block in blocks)


def test_every_page_with_commands_is_checked():
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=DOCS.parent, capture_output=True, text=True
    )
    pages = listed.stdout.split() or refresh.PAGES  # a copy of the sources may be no checkout
    shell = re.compile(r"^```(sh|bash|console|python)|^<!-- run", re.M)
    found = {page for page in pages if shell.search((DOCS.parent / page).read_text("utf-8"))}
    assert {page for page in found if not page.startswith("tests/")} == set(refresh.PAGES)


def test_ci_runs_the_commands_that_pages_leave_to_it():
    pages = "".join((DOCS.parent / name).read_text(encoding="utf-8") for name in refresh.PAGES)
    marks = set(re.findall(r"<!-- (\w+-command) -->", pages))
    ci = (DOCS.parent / ".ci" / "run").read_text(encoding="utf-8")
    assert marks and all(f"readme {mark}" in ci for mark in marks)


def test_the_real_pages_have_commands_and_pictures():
    text = (DOCS / "profiling.md").read_text()
    assert len(refresh.BLOCK.findall(text)) > 8
    pictures = re.findall(r"\]\((pictures/.*?)\)", text)
    assert pictures and all((DOCS / picture).stat().st_size > 10_000 for picture in pictures)
    assert refresh.BLOCK.search((DOCS.parent / "README.md").read_text())


def test_the_flag_that_commands_get_here_is_not_recorded(page):
    said = (
        "p.py, today, opwise 1, cache_graphs=False\\n"
        "flags before: a=1,cache_graphs=False, after: cache_graphs=False\\n"
        "flags before: cache_graphs=False, after: a=1,cache_graphs=False"
    )
    page.write_text(f"<!-- run: printf '{said}' -->\n```text\n```\n")
    refresh.main([str(page)])
    assert page.read_text().splitlines()[3:6] == [
        "p.py, today, opwise 1",
        "flags before: a=1, after: none",
        "flags before: none, after: a=1",
    ]


def test_names_of_ops_that_are_not_printed_any_more_stop_a_check(tmp_path):
    page = tmp_path / "page.md"
    text = """<!-- run: printf '0.5 3 Sum{axis=[0]}(x)\\n0.25 4 Dot22\\n' -->
```text
$ printf
0.75 1 Sum{axis=[1]}(x)
0.20 2 Elemwise{Composite{(i0 * ...
```
"""
    page.write_text(text)
    with pytest.raises(SystemExit, match=r"not printed now: Sum\{axis=\[1\]\}$"):
        refresh.main(["--check", str(page)])
    page.write_text(text.replace("[1]", "[0]"))
    refresh.main(["--check", str(page)])
    # which rows come first differs
    page.write_text(text.replace("' -->", "' | head -n 1 -->").replace("\n```\n", "\n[...]\n```\n"))
    refresh.main(["--check", str(page)])


def test_a_page_is_not_run_without_what_it_needs(capsys, monkeypatch):
    for page, needed in refresh.NEEDED.items():
        monkeypatch.setattr(refresh.importlib.util, "find_spec", lambda name: None)
        refresh.main(["--check", str(DOCS.parent / page)])
        assert f"{page}: not run: {' and '.join(needed)} not installed" in capsys.readouterr().out
    assert refresh.missing_for(DOCS.parent / "README.md") == []
