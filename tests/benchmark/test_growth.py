"""benchmark.growth: every program compiles, exponents are right, some programs grow linearly."""

import json

import pytest

import opwise
from benchmark import growth

SIZES = (30, 100, 300, 1000)


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("constant", [0.0, 500.0])
def test_exponents(power, constant):
    assert growth.exponent(SIZES, [constant + 2 * n**power for n in SIZES]) == pytest.approx(power)


@pytest.mark.parametrize("name", growth.FAMILIES)
def test_every_program_is_compiled(name):
    gradient = growth.FAMILIES[name](3).cost is not None
    costs = growth.measure(name, 3, "FAST_RUN", gradient, warm=True)
    parts = {"applys", "build", "rewriting", "linking", "function", "warm"}
    assert set(costs) == (parts | {"gradient"} if gradient else parts)
    assert set(costs) <= set(growth.PARTS)


def test_what_grows_too_fast_is_listed(monkeypatch, capsys, tmp_path):
    def costs(name, n, mode, grad, calls=False, warm=False):
        return {"build": float(n), "function": float(n * n if mode == "FAST_RUN" else n)}

    monkeypatch.setattr(growth, "measure", costs)
    file = tmp_path / "figures.json"
    arguments = ["--only", "chain_tanh", "--calls", "--no-grad", "--json", str(file)]
    assert growth.main(arguments) == 1
    listed = capsys.readouterr().out.split("Faster than n log n:")[1].strip()
    assert listed == "chain_tanh, FAST_RUN: function grows like n ** 2.00, 9000000 at 3000"
    assert set(json.loads(file.read_text())) == {"chain_tanh, FAST_RUN", "chain_tanh, FAST_COMPILE"}
    assert growth.main([*arguments, "--modes", "FAST_COMPILE"]) == 0


def test_parts_may_grow_as_the_applys_do(capsys):
    found = {
        "applys": [(n, n**2) for n in SIZES],
        "build": [(n, n**1.5) for n in SIZES],
        "function": [(n, n**3) for n in SIZES],
    }
    assert growth.report("nest", found, calls=True, power=2.0) == [
        "nest: function grows like n ** 3.00, 1000000000 at 1000"
    ]
    assert len(growth.report("nest", found, calls=True)) == 2  # there are too many Applys
    assert "applys 1000000 n^2.00, build" in capsys.readouterr().out


def test_applys_inside_count():
    three, one = growth.FAMILIES["nested_loops"](90), growth.FAMILIES["nested_loops"](20)
    counts = [growth._count_applys(p.inputs, p.outputs) for p in (one, three)]
    assert counts[0] < counts[1] / 2


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    "name",
    ["dots_vector", "nested_choices", "chain_set_subtensor", "elements_in_turn", "gemv", "adam"],
)
def test_calls_grow_with_the_program(name, grad):
    """Twice as large a program takes twice as many more calls, whatever they are."""
    if grad and growth.FAMILIES[name](3).wrt == []:
        pytest.skip("has no gradient")
    assert_grows_with_the_program(name, grad, (40, 80, 160))


@pytest.mark.parametrize(
    ("name", "grad"),
    [
        ("chain_boolean_mask", False),
        ("chain_boolean_mask", True),
        ("chain_dimshuffle", False),
        ("chain_dimshuffle", True),
        ("chain_mask_turned", False),
        ("chain_reshape", False),
        ("chain_reverse", False),
        ("chain_subtensor", False),
    ],
)
def test_views_merge_where_they_meet(name, grad, caplog):
    """Small programs are rewritten in another order, which takes more calls."""
    assert_grows_with_the_program(name, grad, (100, 200, 400))
    assert not caplog.records  # of rules that were stopped


@pytest.mark.parametrize(
    ("name", "grad", "sizes"),
    [
        ("chain_div", True, (50, 100, 200)),
        ("chain_reshape", True, (50, 100, 200)),
        ("convolutions", True, (12, 24, 48)),
        ("draws", False, (50, 100, 200)),
        ("loops_side_by_side", False, (50, 100, 200)),
        ("loops_side_by_side", True, (20, 40, 80)),
        ("many_loops", False, (50, 100, 200)),
        ("many_loops", True, (20, 40, 80)),
    ],
)
def test_what_is_done_already_is_not_done_again(name, grad, sizes):
    """Products are not opened, lengths not inferred, Applys not compared again for each level."""
    assert_grows_with_the_program(name, grad, sizes)


@pytest.mark.parametrize(
    "name", ["dots_matrix", "dots_vector", "fan_elements", "fan_rows", "fan_dots", "gemm", "rnn"]
)
def test_origins_grow_with_the_program(name):
    """The Applys of a long sum do not all come from all of its terms."""
    counts = []
    for n in (40, 80):
        program = growth.FAMILIES[name](n)
        outputs = opwise.grad(program.cost, program.wrt)
        with opwise.change_flags(cxx="", cache_graphs=False):
            f = opwise.function(program.inputs, outputs, on_unused_input="ignore")
        counts.append(sum(len(node.origins) for node in f.maker.fgraph.apply_nodes))
    assert counts[1] < 2.6 * counts[0]


@pytest.mark.parametrize("name", ["fan_rows", "chain_reduction", "dots_vector"])
def test_a_graph_from_the_cache_grows_with_the_program(name):
    sizes, calls = (40, 80, 160), {}
    for n in (30, *sizes):
        calls[n] = growth.measure(name, n, "FAST_RUN", True, calls=True, warm=True)["warm"]
    small, middle, large = (calls[n] for n in sizes)
    assert large - middle <= 2.3 * (middle - small) + 2000, calls


def assert_grows_with_the_program(name, grad, sizes):
    growth.measure(name, 30, "FAST_RUN", grad)  # the first compilation imports
    least = dict.fromkeys(sizes, float("inf"))
    for _ in range(2):  # what happens once in a process is no part of the second count
        for n in sizes:
            calls = growth.measure(name, n, "FAST_RUN", grad, calls=True)["function"]
            least[n] = min(least[n], calls)
        small, middle, large = least.values()
        if large - middle <= 2.3 * (middle - small) + 2000:
            return
    pytest.fail(f"calls by size: {least}")
