"""The texts of some kernels as files, so that a change of them is seen.

``OPWISE_TEST_GOLDEN=write pytest tests/gpu/test_golden.py`` writes them anew.
"""

import os
import re
from pathlib import Path

import kernel_cases
import pytest

from opwise.gpu.kernels.kernel import module_text
from opwise.gpu.kernels.loop_rows import copy_rows

pytestmark = pytest.mark.null

FOLDER = Path(__file__).parent / "golden"
#: files, and the Applys and kinds of kernels that they are made of
FILES = {
    "elementwise": [("layer", "rows"), ("product", "flat"), ("half", "flat"), ("cube", "strided")],
    "tiles": [("product", "tiled"), ("contiguous", "tiled"), ("sum of five", "tiled")],
    "reductions": [("variance", "rows_vectors"), ("channels", "columns")],
    "scans": [("cumulated", "scan_rows"), ("cumulated halves", "scan_column_totals")],
    "loops": [("loop", "copy_rows")],
    "convolutions": [
        ("convolution", "product"), ("convolution", "product_64x64"),
        ("gradient by kernels of doubles", "product_32x32"),
    ],
    "pooling": [
        ("pool, max", "max"), ("pool, max gradient", "max_grad"),
        ("pool, average gradient", "average_inc_pad_grad"),
        ("pool of integers", "average_inc_pad"), ("pool, right", "first_of_max"),
    ],
    "argmax": [("argmax", "rows_strided")],
    "sparse": [("sparse product", "csr_product")],
    "rows": [("softmax", "softmax_vectors"), ("softmax", "softmax_1"), ("layer norm", "fused")],
    "cross_entropy": [("cross entropy", "xent")],
    "advanced_indices": [
        ("pick", "pick"),
        ("pick apart", "pick"),
        ("pick apart", "check"),
        ("add parts", "rows"),
        ("add parts", "add_rows"),
    ],
    "draws": [
        ("uniform", "uniform"), ("uniform halves", "uniform"), ("counts", "count"),
        ("draws", "draw"), ("draws without replacement", "draw_without_replacement"),
    ],
    "indices": [("take", "take"), ("add rows", "sort_rows"), ("add rows", "add_rows")],
    "positions": [
        ("search", "search_right"), ("search by a sorter", "search_left"), ("choose", "choose"),
        ("choose of one array", "choose"), ("ravel", "ravel"), ("ravel, clipped", "ravel"),
    ],
}  # fmt: skip


def text_of(chosen):
    cases, found = kernel_cases.cases(), []
    for name, kind in chosen:
        of_kind = [
            kernel
            for kernel in (
                [copy_rows()] if name == "loop" else kernel_cases.made(cases[name]).kernels
            )
            if re.fullmatch(rf"ow_{kind}_[0-9a-f]{{16}}", kernel.name) and not kernel.wide
        ]
        assert of_kind, (name, kind)
        found.append(of_kind[0])
    return module_text(found)


@pytest.mark.parametrize("file", FILES)
def test_text(file):
    text, path = text_of(FILES[file]), FOLDER / f"{file}.cu"
    if os.environ.get("OPWISE_TEST_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


def test_no_file_is_left_over():
    assert {path.stem for path in FOLDER.iterdir()} == set(FILES)


def test_texts_are_readable():
    """Lines are short, tabs are absent, nothing ends in blanks."""
    for file in FILES:
        for line in text_of(FILES[file]).splitlines():
            assert len(line) <= 110 and "\t" not in line and line == line.rstrip(), (file, line)


def test_names_follow_texts():
    """Equal texts have equal names; kernels that differ, other names."""
    once, again = (
        {k.name: k.text for k in kernel_cases.kernels()},
        {k.name: k.text for k in kernel_cases.kernels()},
    )
    assert once == again
    assert len(set(once.values())) == len(once) == len(kernel_cases.kernels())
