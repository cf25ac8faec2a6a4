"""Flat tables: no text of a profile is a formula in a spreadsheet."""

import csv
import io
from dataclasses import replace

import pytest

from opwise.profiling import tabular
from opwise.profiling.profile import Profile

pytestmark = pytest.mark.null


@pytest.mark.parametrize(
    "text",
    ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1"],
)
def test_formulas_are_texts(build, tmp_path, text):
    apply, function, _ = build
    made = replace(apply(text, 500, 0, c=False), why=text, text=text)
    profile = Profile((function(made, name=text),))
    profile.to_csv(tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert {row[name] for name in ("op", "apply", "function", "why")} == {f"'{text}"}
    (record,) = profile.records()
    assert record["op"] == text  # data for programs stay as they are


def test_numbers_and_names_stay(build):
    apply, function, _ = build
    file = io.StringIO()
    tabular.write_csv(Profile((function(apply("Sum{axis=-1}", 500, 0)),)), file)
    (row,) = csv.DictReader(io.StringIO(file.getvalue()))
    assert (row["op"], row["calls"]) == ("Sum{axis=-1}", "1")
