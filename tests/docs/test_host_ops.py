"""The list of the Ops that the host runs beside a device."""

import importlib.util
import re
from pathlib import Path

import pytest

from opwise.gpu import lowering
from opwise.gpu.host_only import HOST_ONLY
from opwise.tensor import Dot

DOCS = Path(__file__).resolve().parents[2] / "docs"
spec = importlib.util.spec_from_file_location("host_ops", DOCS / "host_ops.py")
host_ops = importlib.util.module_from_spec(spec)
spec.loader.exec_module(host_ops)

pytestmark = pytest.mark.null


def listed():
    return {name for names in host_ops.by_reason().values() for name in names}


def test_the_list_is_made_of_the_table(monkeypatch):
    before = host_ops.by_reason()
    assert set(before) == {host_ops.NO_ENTRY, *HOST_ONLY.values()}
    assert {"Expm", "sparse.Usmm", "compile.OpFromGraph"} <= set(before[host_ops.NO_ENTRY])
    assert "Dot" not in listed()
    monkeypatch.delitem(lowering.table(), Dot)
    assert "Dot" in host_ops.by_reason()[host_ops.NO_ENTRY]


def test_the_page_lists_no_op_that_runs_on_a_device():
    """Those that have come since are in the list when the page is made again."""
    page = (DOCS / "gpu.md").read_text(encoding="utf-8")
    text = page.partition("$ python docs/host_ops.py\n")[2].partition("```")[0]
    recorded = set(re.findall(r"[\w.]+", "".join(re.findall(r"(?m)^  .*$", text))))
    assert len(recorded) > 50
    assert recorded - listed() == set(), "python docs/refresh.py docs/gpu.md makes the page again"
