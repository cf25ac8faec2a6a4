"""Profiles that pages are made of, and a browser that looks at them."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from opwise.profiling.memory import Live, MemoryProfile, Peaks
from opwise.profiling.profile import ArrayProfile, CallProfile, OriginProfile, Profile

#: what is hostile in a text: what would run, or break out, if it were taken for HTML or JSON
HOSTILE = (
    "</script><script>window.broken=1</script><img src=x onerror='window.broken=1'>"
    "\u2028\u2029\"'`${window.broken=1}{{7*7}}{% raise %}<!--<script>&lt;"
)

_ARRAY = ArrayProfile("float32", (128, 256), (1024, 4), 131072)


@pytest.fixture
def sample(build):
    """A Profile with two functions and all that a page can show, in figures that are known.

    ``train`` has five Applys: 2 reads 0 and 1, 3 reads 2, 4 reads 2 and 3; 3 runs in Python.
    """
    an_apply, a_function, _ = build
    lines = {"model.py:10": "h = tanh(dot(x, w))", "model.py:20": "cost = sum(h)"}

    def origin(name, line, scope="", of=None):
        return OriginProfile(f"key of {name} {line}", name, "/src/model.py", line, scope, of)

    def one(op, total, position, reads, origins, count=10, c=True, **more):
        made = an_apply(op, total, position, c, count=count)
        arrays = {
            "input_arrays": (_ARRAY,) * len(reads), "output_arrays": (_ARRAY,),
            "inputs": ("TensorType(float32, matrix)",) * len(reads), "shares": ("c",),
        }  # fmt: skip
        return replace(made, reads=reads, origins=origins, **{**arrays, **more})

    of = ("/src/model.py", 10)
    train = a_function(
        one("Dot22", 6_000_000, 0, (-1,), (origin("dot", 10, "mlp/layer1"),), flops=2_000_000),
        one("InplaceDimShuffle{x,0}", 1_000, 1, (-1,), (origin("shuffle", 10, "mlp/layer1"),),
            shares=("v",)),
        one("Elemwise{Composite{tanh((i0 + i1))}}[(0, 0)]", 3_000_000, 2, (0, 1),
            (origin("tanh", 10, "mlp/layer1"), origin("add", 10, "mlp/layer1")), shares=("i",)),
        one("SortOp{quicksort}", 500_000, 3, (2,), (origin("sort", 20),), c=False),
        one("Gemm{inplace}", 2_000_000, 4, (2, 3), (origin("dot", 20, "grads", of),)),
        name="train", calls=10,
    )  # fmt: skip
    train = replace(
        train,
        detail=tuple(
            CallProfile(n, n * 10**7, (600_000 * n, 100, 300_000, 50_000, 200_000)) for n in (1, 7)
        ),
        memory=MemoryProfile(
            (131072, 131072, 262144, 300000, 131072), 262144, 2, (Live(0, 131072), Live(2, 131072),
             Live(-1, 4096)), 262144, 393216, 393216, 524288, 4096,
        ),
    )  # fmt: skip
    predict = a_function(
        one("Dot22", 900_000, 0, (-1,), (origin("dot", 10, "mlp/layer1"),), count=3),
        name="predict", calls=3,
    )  # fmt: skip
    sources = {f"/src/{place}": text for place, text in lines.items()}
    return Profile((train, predict), "a sample", {"python": "3.11", "process": 7}, sources)


@pytest.fixture
def there(sample):
    """The sample as on a device: 1 goes there, 3 comes from there, 0 stays on the CPU."""
    train, predict = sample.functions
    about = [
        {"on_host": "it is far too small"},
        {"op": "GpuFromHost", "transfer": True, "asked": 2000, "traffic": 4096, "shares": ("c",)},
        {"asked": 70_000},
        {"op": "HostFromGpu", "c": True, "transfer": True, "asked": 3000, "waited": 400_000,
         "traffic": 262144},
        {"asked": 90_000},
    ]  # fmt: skip
    applys = tuple(
        replace(a, **({} if "on_host" in more else {"device": "cuda0"}), **more)
        for a, more in zip(train.applys, about, strict=True)
    )
    peaks = Peaks(131072, 131072, 131072, 131072, 262144)
    memory = replace(train.memory, host=replace(peaks, peak=4096), device=peaks)
    return replace(sample, functions=(replace(train, applys=applys, memory=memory), predict))


@pytest.fixture
def large(build):
    """A Profile of 10 000 Applys in long chains that join, each with its own operands and line."""
    an_apply, a_function, _ = build
    applys = []
    for k in range(10_000):
        made = an_apply(f"Elemwise{{Composite{{op{k % 50}}}}}", 1000 + (k * 7919) % 90_000, k,
                        count=20)  # fmt: skip
        place = f"/src/block{k % 40}.py"
        origins = tuple(
            OriginProfile(f"{k} {n}", f"op{n}", place, 1 + k % 300, f"block{k // 10}/part{n}")
            for n in range(3)
        )
        reads = tuple(r if r >= 0 else -1 for r in (k - 1 - k % 3, k - 7, k - 2000))
        applys.append(
            replace(made, reads=reads, origins=origins, text=f"{made.op}(w{k}, b{k}, Dot22.0)",
                    input_arrays=(_ARRAY,) * 3, output_arrays=(_ARRAY,), shares=("c",),
                    inputs=made.inputs * 3, histogram=tuple((b, 2) for b in range(80, 90)))
        )  # fmt: skip
    f = a_function(*applys, name="large", calls=20)
    sources = {f"/src/block{b}.py:{n}": f"h{n} = tanh(h{b})" for b in range(40) for n in range(301)}
    return Profile((f,), "large", {}, sources)


@pytest.fixture
def hostile(build):
    """A Profile whose every text is HOSTILE."""
    an_apply, a_function, _ = build
    origin = OriginProfile(HOSTILE, HOSTILE, HOSTILE, 3, HOSTILE, (HOSTILE, 4))
    array = ArrayProfile(HOSTILE, (2,), (9,), 16)

    def one(position, c):
        made = an_apply("op", 10_000 * (position + 1), position, c, count=4)
        return replace(
            made, op=HOSTILE, op_class=HOSTILE, op_key=HOSTILE, text=HOSTILE + HOSTILE,
            inputs=(HOSTILE,), outputs=(HOSTILE,), reads=(position - 1,), origins=(origin, origin),
            why=HOSTILE, input_arrays=(array,), output_arrays=(array,), shares=(HOSTILE,),
            histogram=((5, 3), (90, 1)), flops=100,
        )  # fmt: skip

    f = a_function(one(0, True), one(1, False), name=HOSTILE, calls=4)
    f = replace(
        f,
        compile=replace(f.compile, slowest=((HOSTILE, 0.1),)),
        detail=(CallProfile(1, 0, (100, 200)),),
        memory=MemoryProfile((16, 32), 32, 1, (Live(0, 16), Live(1, 16)), 32, 32, 32, 32, 0),
    )
    sources = {f"{HOSTILE}:3": HOSTILE, f"{HOSTILE}:4": HOSTILE}
    return Profile((f, replace(f, name=HOSTILE + "2")), HOSTILE, {HOSTILE: HOSTILE}, sources)


@pytest.fixture
def difference_rows():
    """Rows of a difference, one of each relation and verdict."""

    def row(before, after, relation="", verdict="", label="Dot22", **more):
        both = before is not None and after is not None
        return {
            "before_ns": before, "after_ns": after, "difference_ns": (after or 0) - (before or 0),
            "ratio": after / before if both else None, "relation": relation, "verdict": verdict,
            "p": 0.01 if verdict else None, "label_before": label if before is not None else None,
            "label_after": label if after is not None else None, "lines": ["/src/model.py:10"],
        } | more  # fmt: skip

    return [
        row(1000, 9000, verdict="slower", label="Dot22"),
        row(8000, 3000, verdict="faster", label="Gemm"),
        row(500, 510, verdict="noise", label="Sum"),
        row(700, None, "only before", label="Alloc"),
        row(None, 600, "only after", label="Fill"),
        row(2000, 1500, "fused", label="exp", label_after="Composite{exp, add}"),
        row(2000, 2500, "split", label="Composite{exp, add}", label_after="exp"),
        row(10, 20, "regrouped", label="Max"),
    ]


# --- the browser ----------------------------------------------------------------------------------

#: a folder for pictures of the pages that the tests look at
_PICTURES = "OPWISE_TEST_PICTURES"


@pytest.fixture
def look(browser, tmp_path, request):
    """``look(html, scheme="light")``: the page in the browser, once it shows a selector; no error
    may have come up."""
    contexts, found = [], []

    def open_page(html, scheme="light", width=1440, height=900, shows=".tabulator-row"):
        path = tmp_path / "page.html"
        path.write_bytes(html.encode("utf-8", "replace"))
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: found.append((message.type, message.text)))
        page.on("pageerror", lambda error: found.append(("error", str(error))))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:"))
                or found.append(("request", asked.url)))  # fmt: skip
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        page.wait_for_selector(shows)
        page.evaluate("() => new Promise(requestAnimationFrame)")
        return page

    yield open_page
    folder = os.environ.get(_PICTURES)
    for k, context in enumerate(contexts):
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "-", request.node.name).strip("-")
            context.pages[0].screenshot(path=f"{folder}/{name}-{k}.png", full_page=True)
        context.close()
    assert not found
