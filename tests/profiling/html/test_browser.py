"""The pages in a browser: what is sorted, filtered, clicked and chosen; nothing hostile runs.

``OPWISE_TEST_PICTURES=folder`` keeps pictures of them.
"""

import re
from dataclasses import replace

import pytest

from opwise.profiling.html import page

pytestmark = pytest.mark.slow


def cells(view, field):
    """Return the texts of a column of the table that is shown, from the top, once it is made."""
    row = ".table:not([hidden]) .tabulator-row"
    view.locator(row).first.wait_for()
    return view.locator(f"{row} .tabulator-cell[tabulator-field={field}]").all_inner_texts()


def sort_by(view, field):
    view.locator(f".table:not([hidden]) .tabulator-col[tabulator-field={field}]").first.click()


def chosen(view):
    return view.locator(".table:not([hidden]) .tabulator-row.is-chosen .tabulator-cell").nth(1)


def shows(view, rows):
    """Wait until the table has so many rows: the filter waits for the end of typing."""
    view.locator("#shown", has_text=re.compile(f"^{rows} rows?$")).wait_for()


def click_node(view, number):
    x, y = view.evaluate("id => opwise.place(id)", number)
    view.mouse.click(x, y)


def details(view):
    return view.locator("#details").inner_text()


def test_a_click_on_a_column_sorts(look, sample):
    view = look(page.page(sample))
    assert cells(view, "position") == ["0", "2", "4", "0", "3", "1"]
    sort_by(view, "count")
    assert cells(view, "count")[0] == "10"
    assert cells(view, "count")[-1] == "3"
    sort_by(view, "count")
    assert cells(view, "count")[0] == "3"
    sort_by(view, "op")
    names = cells(view, "op")
    assert names == sorted(names, key=str.casefold)


def test_the_filter_leaves_what_has_all_its_words(look, sample):
    view = look(page.page(sample))
    view.fill("#filter", "dot22 layer1")
    shows(view, 2)
    assert cells(view, "op") == ["Dot22", "Dot22"]
    view.fill("#filter", "")
    view.check("#python")
    shows(view, 1)
    assert cells(view, "op") == ["SortOp{quicksort}"]


def test_a_click_on_a_node_chooses_its_row_and_shows_its_line(look, sample):
    view = look(page.page(sample))
    click_node(view, 2)
    assert chosen(view).inner_text() == "Elemwise{Composite{tanh((i0 + i1))}}[(0, 0)]"
    shown = details(view)
    assert "model.py:10" in shown
    assert "h = tanh(dot(x, w))" in shown
    assert "Computes 2 of the program's Applys" in shown
    click_node(view, 4)
    assert "gradient of this line" in details(view)
    click_node(view, 3)
    assert "no C implementation" in details(view)


def test_a_click_on_a_row_chooses_the_node(look, sample):
    view = look(page.page(sample))
    view.locator(".tabulator-row", has_text="Gemm").click()
    assert view.evaluate("opwise.state.apply") == 4
    assert "Gemm{inplace}" in details(view)


def test_keys_go_along_rows_and_edges(look, sample):
    view = look(page.page(sample))
    view.focus(".table")
    view.keyboard.press("ArrowDown")
    assert view.evaluate("opwise.state.apply") == 2
    view.focus("#graph")
    view.keyboard.press("ArrowDown")
    assert view.evaluate("opwise.state.apply") in (3, 4)
    view.keyboard.press("ArrowUp")
    view.keyboard.press("ArrowUp")
    assert view.evaluate("opwise.state.apply") in (0, 1)
    for key in "+-0lL":
        view.keyboard.press(key)
    view.focus(".tabulator-col[tabulator-field=count]")
    view.keyboard.press("Enter")
    assert cells(view, "count")[0] == "10"


def test_a_device_is_told_where_there_is_one(look, there, sample):
    view = look(page.page(there))
    assert cells(view, "device") == ["C", "cuda0", "cuda0", "C", "copy", "copy"]
    assert cells(view, "asked")[:3] == ["–", "70.0\u202fµs", "90.0\u202fµs"]
    card = view.locator(".card", has_text="On cuda0").inner_text()
    assert "1.27\u202fMiB copied, 2.66 GB/s\n2 Applys on the CPU" in card
    view.locator(".tabulator-row", has_text="HostFromGpu").click()
    shown = details(view)
    assert "cuda0" in shown and "copy" in shown
    assert "300\u202fns a call · waiting 40.0\u202fµs" in shown
    assert shown.count("GB/s") == 1 and "128\u202fKiB a call · 2.62 GB/s" in shown
    view.check("#host")
    shows(view, 2)
    view.locator(".tabulator-row", has_text="Dot22").first.click()
    assert "Not on the device: it is far too small" in details(view)
    view.get_by_role("tab", name="Line").click()
    assert cells(view, "transfers")[0] == "1.00\u202fµs" and "ms" in cells(view, "host")[0]
    view = look(page.page(sample))
    assert view.locator("#host").is_hidden()
    assert view.locator(".card", has_text=re.compile("^On ")).count() == 0
    for field in ("device", "asked", "waited", "host"):
        assert view.locator(f".tabulator-col[tabulator-field={field}]").count() == 0


def test_other_tables_lead_to_their_applys(look, sample):
    view = look(page.page(sample))
    view.get_by_role("tab", name="Line").click()
    assert "model.py:10" in cells(view, "label")[0]
    view.locator(".table:not([hidden]) .tabulator-row").first.click()
    assert "Slowest Applys in it" in details(view)
    view.get_by_role("button", name="Show these Applys in the table").click()
    assert view.locator("#chosen").inner_text().startswith("line: model.py:10")
    assert len(cells(view, "op")) == 5
    view.get_by_role("button", name="Show all Applys").click()
    shows(view, 6)
    for name, count in {"Op": 5, "Class": 5, "Scope": 3}.items():
        view.get_by_role("tab", name=name, exact=True).click()
        assert len(cells(view, "ns")) == count


def test_a_function_can_be_looked_at_alone(look, sample):
    view = look(page.page(sample))
    view.select_option("#part", "2")
    assert cells(view, "op") == ["Dot22"]
    assert "predict" in view.locator("#graph-name").inner_text()
    assert "not recorded" in view.locator("#cards").inner_text()
    assert "3 calls · 600 µs each" in told_by_cards(view)


def test_rows_and_links_name_the_function(look, sample):
    view = look(page.page(sample))
    assert set(cells(view, "function")) == {"train", "predict"}
    column = view.locator('.tabulator-col[tabulator-field="function"]').first
    assert column.is_visible() and column.bounding_box()["x"] < 400
    assert "train #0 Dot22" in told_by_cards(view)
    view.select_option("#part", "1")
    assert not view.locator('.tabulator-cell[tabulator-field="function"]').count()
    assert "train #0" not in told_by_cards(view)


def told_by_cards(view):
    return view.locator("#cards").inner_text().replace("\u202f", " ")


def test_cards_tell_the_main_figures(look, sample):
    view = look(page.page(sample))
    told = told_by_cards(view)
    for part in ("13 calls", "#0 Dot22", "256 KiB", "1 of 6 Applys", "2 functions"):
        assert part in told, told


def charts(view):
    """Return how many charts are drawn: their canvases have a size and are not empty."""
    return view.evaluate(
        """async () => {
          let drawn = 0;
          for (const host of document.querySelectorAll(".chart")) {
            if (host.closest("[hidden]")) continue;
            host.scrollIntoView();
            await new Promise((done) => setTimeout(done, 150));
            const canvas = host.querySelector("canvas");
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            drawn += pixels.data.some((value) => value !== 0);
          }
          return drawn;
        }"""
    )


LIMITS = [
    {"function": "train", "position": k, "intensity": 0.1 * 10**k, "gflops": 2.0 * (k + 1),
     "gbs": 5.0, "share": 0.2, "bound": "memory" if k < 2 else "arithmetic", "gain_s": 0.001}
    for k in range(4)
]  # fmt: skip
MACHINE = {"bandwidth": [(4096, 90.0), (2**28, 20.0)], "peaks": {"sgemm": 100.0, "scalar": 8.0}}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_charts_are_drawn(look, sample, scheme):
    view = look(page.page(sample, LIMITS, MACHINE), scheme)
    assert charts(view) == 4
    assert "20.0 % of the limit" in details(view).replace("\u202f", " ")
    view.evaluate("scrollTo(0, 0)")


def test_rough_limits_are_marked(look, sample):
    rough = {**LIMITS[1], "position": 0, "intensity": None, "gflops": None, "rough": True}
    view = look(page.page(sample, [rough, *LIMITS[1:]], MACHINE))
    assert charts(view) == 4
    row = view.locator("#apply-table .tabulator-row, .tabulator-row")
    cells = row.locator("[tabulator-field=peak]").all_text_contents()
    found = [cell.replace("\u202f", " ") for cell in cells]
    assert found.count("~20.0 %") == 1 and found.count("20.0 %") == 3
    listed = view.locator("#roofline-list").inner_text()
    assert "~ " in listed and "1 Apply without an exact count" in listed


def test_a_chart_leads_to_its_apply(look, sample):
    view = look(page.page(sample))
    assert charts(view) == 3
    view.locator("#calls-chart").scroll_into_view_if_needed()
    # The third Apply is the second large one of the first call.
    view.locator("#calls-chart canvas").click(position={"x": 210, "y": 18})
    assert view.evaluate("opwise.state.apply") in (0, 2)
    view.locator("#flame-chart canvas").click(position={"x": 60, "y": 60})
    assert view.locator("#flame-path button").count() >= 2


def test_nothing_hostile_runs_in_the_page_of_a_profile(look, hostile):
    limits = [{**LIMITS[0], "function": 0, "position": 1, "bound": hostile.message}]
    view = look(page.page(hostile, limits, {"bandwidth": [], "peaks": {hostile.message: 7.0}}))
    assert charts(view) == 4
    for name in ("Op", "Class", "Line", "Scope", "Apply"):
        view.get_by_role("tab", name=name, exact=True).click()
        view.locator(".table:not([hidden]) .tabulator-row").first.click()
    for x in range(40, 1200, 60):
        view.locator("#flame-chart canvas").hover(position={"x": x, "y": 40})
    view.locator("#memory-chart canvas").hover(position={"x": 300, "y": 100})
    view.locator("#calls-chart canvas").hover(position={"x": 200, "y": 18})
    view.evaluate("scrollTo(0, 0)")
    x, y = view.evaluate("opwise.place(opwise.state.apply)")
    view.mouse.move(x, y)
    view.fill("#filter", "<img")
    view.wait_for_timeout(200)
    assert view.evaluate("window.broken") is None
    assert view.locator("img").count() == 0
    assert hostile.message.split("\u2028")[0] in view.locator("#title").inner_text()


def test_nothing_hostile_runs_in_the_page_of_a_difference(look, hostile, difference_rows):
    text = hostile.message
    rows = [
        row | {"label_before": text, "label_after": text + "2", "lines": [f"{text}:3"]}
        for row in difference_rows
    ]
    view = look(page.difference_page(hostile, hostile, {text: rows}))
    assert charts(view) == 1
    view.locator("#largest-chart canvas").hover(position={"x": 900, "y": 12})
    view.locator(".tabulator-row").first.click()
    assert view.evaluate("window.broken") is None
    assert view.locator("img").count() == 0


def test_a_script_that_is_not_ours_is_refused(browser, sample, tmp_path):
    """The policy alone stops what would get past the escaping."""
    path = tmp_path / "page.html"
    html = page.page(sample)
    path.write_text(html.replace("<footer>", "<script>window.broken=1</script><img src=x "
                                 "onerror='window.broken=1'><footer>"))  # fmt: skip
    context = browser.new_context()
    view = context.new_page()
    refused = []
    view.on("console", lambda message: refused.append(message.text))
    view.goto(path.as_uri())
    view.wait_for_selector("html[data-ready=yes]")
    assert view.evaluate("window.broken") is None
    assert any("Content Security Policy" in text for text in refused)
    context.close()


def test_ten_thousand_applys(look, large, record_property):
    view = look(page.page(large))
    loaded = view.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart")
    record_property("load_ms", loaded)
    print(f"the page of 10 000 Applys was loaded after {loaded} ms")
    sort_by(view, "position")
    assert cells(view, "position")[0] == "0"
    view.evaluate("opwise.choose(7777)")
    assert chosen(view).inner_text() == "Elemwise{Composite{op27}}"
    assert "block17.py:278" in details(view)
    view.focus("#graph")
    view.keyboard.press("ArrowDown")
    after = view.evaluate("opwise.state.apply")
    assert after > 7777
    view.keyboard.press("0")
    view.fill("#filter", "block13.py:94")
    shows(view, 17)
    assert cells(view, "source")[0].split()[0] == "block13.py:94"
    assert charts(view) >= 1


def test_a_move_to_a_device_has_tables_of_its_own(look, sample, there, difference_rows):
    view = look(page.difference_page(sample, there, {"Apply": difference_rows}))
    moved = view.locator("#moved")
    assert "times as fast" in moved.inner_text()

    def column(field):
        row = "#moved .table:not([hidden]) .tabulator-row"
        return view.locator(f"{row} .tabulator-cell[tabulator-field={field}]").all_inner_texts()

    assert column("label")[0].startswith("model.py:10") and column("why") == []
    assert [len(column(field)) for field in ("cpu", "device", "transfers", "host")] == [2] * 4
    moved.get_by_role("tab", name="Apply").click()
    moved.locator(".tabulator-cell[tabulator-field=why]").first.wait_for()
    assert "it is far too small" in column("why")
    # the tables below are as ever
    assert len(cells(view, "weight")) > len(difference_rows)
    view.select_option("#verdict", "faster")
    view.locator("#shown", has_text="1 row").wait_for()
    view = look(page.difference_page(sample, sample, {"Apply": difference_rows}))
    assert view.locator("#moved").is_hidden()
    assert view.get_by_role("link", name="CPU and GPU").count() == 0


def test_the_page_of_a_difference_shows_its_rows(look, sample, difference_rows):
    tables = {"Apply": difference_rows, "Op": difference_rows[:2]}
    view = look(page.difference_page(sample, sample, tables))
    assert charts(view) == 1
    assert [text[0] for text in cells(view, "weight")[:2]] == ["+", "−"]
    assert cells(view, "relation").count("fused") == 1
    assert "Dot22" in details(view)
    view.select_option("#verdict", "faster")
    assert cells(view, "label") == ["Gemm"]
    view.select_option("#verdict", "")
    view.select_option("#relation", "only after")
    assert cells(view, "label") == ["Fill"]
    view.locator(".tabulator-row").first.click()
    assert "nothing" in details(view)
    view.select_option("#relation", "")
    view.get_by_role("tab", name="Op", exact=True).click()
    assert len(cells(view, "weight")) == 2


def test_an_empty_profile_has_a_page(browser, tmp_path):
    from opwise.profiling.profile import Profile

    path = tmp_path / "page.html"
    Profile().report(path)
    view = browser.new_page()
    errors = []
    view.on("pageerror", lambda error: errors.append(error))
    view.goto(path.as_uri())
    view.wait_for_selector("html[data-ready=yes]")
    assert errors == []
    view.close()


def test_without_scripts_the_main_figures_are_there(browser, sample, tmp_path):
    path = tmp_path / "page.html"
    sample.report(path)
    context = browser.new_context(java_script_enabled=False)
    view = context.new_page()
    view.goto(path.as_uri())
    assert "Dot22" in view.locator("noscript").inner_text()
    context.close()


@pytest.mark.parametrize("width", [360, 500, 800])
def test_a_narrow_page_has_all_in_one_column(look, sample, there, difference_rows, width):
    for html in (
        page.page(sample), page.page(there),
        page.difference_page(sample, sample, {"Apply": difference_rows}),
    ):  # fmt: skip
        view = look(html, width=width)
        assert view.evaluate("document.documentElement.scrollWidth") <= width


# --- what reads well ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["profile", "difference"])
def test_the_line_is_in_sight_beside_the_apply(look, sample, difference_rows, kind):
    """At the width of a usual window nobody scrolls to the line of the program."""
    rows = {"Apply": difference_rows}
    html = page.page(sample) if kind == "profile" else page.difference_page(sample, sample, rows)
    view = look(html, width=1400)
    field = "source" if kind == "profile" else "line"
    cell = view.locator(f".tabulator-row .tabulator-cell[tabulator-field={field}]").first
    cell.wait_for()
    box, table = cell.bounding_box(), view.locator(".tabulator").first.bounding_box()
    assert "model.py" in cell.inner_text()
    assert box["x"] + box["width"] <= table["x"] + table["width"]


@pytest.mark.parametrize(
    "words", ["128x256", "128×256", "(128, 256)", "(128,256)", "shape:128x256"]
)
def test_a_shape_is_found_however_it_is_written(look, sample, words):
    view = look(page.page(sample))
    view.fill("#filter", words)
    shows(view, 6)
    view.fill("#filter", words.replace("256", "25)"))
    shows(view, 0)


def test_a_filter_names_the_fields_that_it_searches(look, sample):
    view = look(page.page(sample))
    fields = "Filter: op, id, line, scope, shape, function, on"
    assert view.get_attribute("#filter", "placeholder") == fields
    assert "op:word" in view.get_attribute("#filter", "title")
    view.fill("#filter", "tanh")  # the text of a line holds it too
    shows(view, 4)
    view.fill("#filter", "op:tanh")
    shows(view, 1)
    view.fill("#filter", "function:predict line:model.py")
    shows(view, 1)
    view.fill("#filter", "")
    view.click("#tabs >> text=Scope")
    assert view.get_attribute("#filter", "placeholder") == "Filter: scope"


def test_the_title_names_the_function_and_its_program(look, sample):
    about = {"program": "/src/train.py --fast", "python": "3.11"}
    view = look(page.page(replace(sample, environment=about, message="")))
    assert view.title() == "train, predict · train.py · opwise"
    view.select_option("#part", "2")
    assert view.title() == "predict · train.py · opwise"


def test_the_flame_shows_no_label_of_what_it_showed_before(look, sample):
    view = look(page.page(sample))
    view.locator("#flame").scroll_into_view_if_needed()
    for _ in range(100):  # it is drawn when it has come into sight
        if view.evaluate("opwise.flameLabels()"):
            break
        view.wait_for_timeout(50)
    assert {"train", "predict"} <= set(view.evaluate("opwise.flameLabels()"))
    view.select_option("#part", "2")
    labels = view.evaluate("opwise.flameLabels()")
    assert labels[0] == "predict" and "train" not in labels
    assert not any("sort" in label or "model.py:20" in label for label in labels)
    view.select_option("#part", "1")
    view.click("#flame-chart", position={"x": 30, "y": 34})  # into the first scope
    labels = view.evaluate("opwise.flameLabels()")
    assert "predict" not in labels and labels.count("train") == 1


def test_the_whole_program_and_a_busy_machine_are_told(look, sample):
    about = {"seconds_of_process": 9.0, "seconds_importing": 0.5, "seconds_running": 4.0}
    view = look(page.page(replace(sample, environment={**about, "seconds_waiting": 4.0})))
    card = view.locator(".card", has_text="whole program").inner_text()
    assert card.startswith("Program") and "9.00" in card and "importing opwise 5.56" in card
    assert "waited 4.000 s for a processor" in view.locator("#notes").inner_text()
    view = look(page.page(sample))
    assert not view.locator("#notes").is_visible()
    assert not view.locator(".card", has_text="whole program").count()


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString"])
def test_a_function_may_be_called_as_what_every_object_has(look, sample, name):
    """ECharts keeps widths of texts in a plain object: such a name changed all others."""
    train, predict = sample.functions
    origins = tuple(replace(o, scope=name) for o in predict.applys[0].origins)
    odd = replace(predict, name=name, applys=(replace(predict.applys[0], origins=origins),))
    view = look(page.page(replace(sample, functions=(train, odd))))
    view.locator("#flame").scroll_into_view_if_needed()
    view.locator("#flame-chart canvas").wait_for()
    view.select_option("#part", "2")
    assert cells(view, "position") == ["0"]
    assert view.evaluate("() => { for (const key in {}) return key; return null; }") is None


def test_on_paper_are_all_sections_and_the_rows_of_all_tables(look, sample):
    view = look(page.page(sample), scheme="dark", width=760)
    view.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    view.emulate_media(media="print")
    paper = view.locator(".paper")
    assert paper.locator("h3").all_inner_texts() == ["Applys", "Op", "Class", "Line", "Scope"]
    assert paper.locator("section").first.locator("tbody tr").count() == 6
    assert "SortOp{quicksort}" in paper.inner_text() and "model.py:20" in paper.inner_text()
    below = paper.bounding_box()["y"] + paper.bounding_box()["height"]
    for section in ("graph-panel", "details", "flame", "memory", "calls", "compile"):
        box = view.locator(f"#{section}").bounding_box()
        assert box["height"] > 20 and box["y"] >= below - 1, section  # nothing lies over another
        below = box["y"] + box["height"]
    assert not view.locator("#filter").is_visible() and not view.locator("nav").is_visible()
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--ink')"
    assert view.evaluate(ink).strip() == "#1a2232"  # dark on light, whatever the screen has
    view.emulate_media(media="screen")
    view.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert paper.locator("h3").count() == 0
    assert view.evaluate(ink).strip() != "#1a2232"


def test_a_difference_says_what_was_compared(look, sample, tmp_path):
    about = {"program": "old.py", "date": "2026-01-01", "node": "a"}
    before = replace(sample, environment=about)
    changed = {"program": "new.py", "date": "2026-01-02", "flags": "floatX=float32"}
    after = replace(sample, environment={**about, **changed})
    path = tmp_path / "d.html"
    page.write_difference([before], [after], path, ("old.json", "new.json"))
    view = look(path.read_text())
    rows = view.locator("#compared tbody tr")
    found = {r[0]: tuple(r[1:]) for r in (t.split("\t") for t in rows.all_inner_texts())}
    assert found["files"] == ("old.json", "new.json")
    assert found["dates"] == ("2026-01-01", "2026-01-02")
    assert found["flags"] == ("none", "floatX=float32")
    assert found["computer"] == ("a", "a")
    differing = view.locator("#compared tr.differs th").all_inner_texts()
    assert differing == ["files", "dates", "program", "flags"]
    assert view.title() == "a sample · old.py → a sample · new.py · difference · opwise"
