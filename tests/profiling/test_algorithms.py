"""Which algorithm a convolution took, in profiles, their texts and files, and their differences."""

from dataclasses import replace

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, shared
from opwise.config import change_flags
from opwise.gradient import grad
from opwise.nn import conv2d, relu
from opwise.profiling import compare, jsonreports, tabular
from opwise.profiling.html import differencedata, profiledata
from opwise.profiling.profile import Profile
from opwise.profiling.reports import details

CHOSEN = {"algorithm": "direct", "why_algorithm": "it is measured to be the fastest"}


def profiled(build, *shapes, mode="c|py"):
    """Return the profile of a function of float32 images that was called once."""
    x = T.ftensor4("x")
    f = function([x], build(x), profile=True, mode=Mode(mode, "fast_run"))
    for shape in shapes:
        f(np.ones(shape, "f"))
    return f.profile.profile()


def convolution(profile):
    (found,) = (a for a in profile.functions[0].applys if "AbstractConv2d" in a.op)
    return found


def layer(x):
    return conv2d(x, shared(np.ones((8, 16, 3, 3), "f")))


@pytest.mark.parametrize("algorithm", ["direct", "patches", "winograd"])
def test_the_algorithm_that_a_flag_asks_for(algorithm):
    with change_flags({"conv.algo": algorithm}):
        apply = convolution(profiled(layer, (2, 16, 9, 9)))
    assert apply.algorithm == algorithm
    assert apply.why_algorithm == "the flag conv.algo asks for it"
    assert apply.algorithm_note == f"{algorithm} (the flag conv.algo asks for it)"


def test_the_algorithm_that_the_model_prefers():
    apply = convolution(profiled(layer, (2, 16, 9, 9)))
    assert apply.algorithm in ("direct", "patches", "winograd")
    assert apply.why_algorithm == "the model of costs prefers it"


def test_an_algorithm_that_cannot_compute_a_convolution():
    with change_flags({"conv.algo": "winograd"}):
        apply = convolution(profiled(lambda x: layer(x[:, :, ::2]), (2, 16, 9, 9)))
        assert apply.algorithm == "winograd"
        kernels = shared(np.ones((8, 16, 5, 5), "f"))
        apply = convolution(profiled(lambda x: conv2d(x, kernels), (2, 16, 9, 9)))
    assert apply.algorithm != "winograd"
    assert apply.why_algorithm.startswith("the algorithm that the flag conv.algo asks for cannot")


@pytest.mark.parametrize("algorithm", ["direct", "patches", "winograd"])
def test_the_algorithm_of_a_gradient_by_kernels(algorithm):
    kernels = T.ftensor4()

    def gradient(x):
        return grad(conv2d(x, kernels, border_mode="half").sum(), kernels)

    with change_flags({"conv.algo": algorithm}):
        x = T.ftensor4("x")
        f = function([x, kernels], gradient(x), profile=True, mode=Mode("c|py", "fast_run"))
    f(np.ones((2, 16, 9, 9), "f"), np.ones((8, 16, 3, 3), "f"))
    apply = convolution(f.profile.profile())
    assert apply.algorithm_note == f"{algorithm} (the flag conv.algo asks for it)"


def test_gradients_by_kernels_that_are_not_finite():
    kernels, x = T.ftensor4(), T.ftensor4("x")
    with change_flags({"conv.algo": "winograd"}):
        z = grad(conv2d(x, kernels, border_mode="half").sum(), kernels)
        f = function([x, kernels], z, profile=True, mode=Mode("c|py", "fast_run"))
    f(np.full((2, 16, 9, 9), np.inf, "f"), np.ones((8, 16, 3, 3), "f"))
    apply = convolution(f.profile.profile())
    assert apply.algorithm == "patches"
    assert apply.why_algorithm.startswith("gradients are not finite")


def test_python_has_one_algorithm():
    apply = convolution(profiled(layer, (2, 16, 9, 9), mode="py"))
    assert (apply.algorithm, apply.why_algorithm, apply.algorithm_note) == ("", "", "")


def test_before_the_first_call_none_is_known():
    assert convolution(profiled(layer)).algorithm == ""


def test_reports_and_files_name_it(tmp_path):
    profile = profiled(layer, (2, 16, 9, 9))
    apply = convolution(profile)
    (header, row) = details.algorithms(profile, 10)
    assert header.startswith("Algorithms: ")
    assert f" {apply.algorithm} " in row
    assert row.endswith(apply.why_algorithm)
    assert row in details.sections(profile, 10)
    (record,) = (r for r in tabular.records(profile) if r["algorithm"])
    assert (record["algorithm"], record["why_algorithm"]) == (apply.algorithm, apply.why_algorithm)
    documents = [a for a in jsonreports.report(profile)["applys"] if a["algorithm"]]
    assert [d["why_algorithm"] for d in documents] == [apply.why_algorithm]
    profile.save(tmp_path / "profile")
    assert convolution(Profile.load(tmp_path / "profile")).algorithm == apply.algorithm
    page = profiledata.of_profile(profile)
    names = [page["texts"][i] for i in page["applys"]["algorithm"]]
    assert apply.algorithm in names


def test_without_a_choice_there_is_no_section(build):
    apply, a_function, _ = build
    assert details.algorithms(Profile((a_function(apply("add", 100)),)), 10) == []
    chosen = replace(apply("conv", 100), **CHOSEN)
    assert len(details.algorithms(Profile((a_function(chosen),)), 10)) == 2
    never = replace(chosen, count=0)
    assert details.algorithms(Profile((a_function(never),)), 10) == []


def test_a_difference_names_algorithms_that_changed(build):
    apply, a_function, _ = build

    def side(name, ns):
        return Profile((a_function(replace(apply("conv", ns), **{**CHOSEN, "algorithm": name})),))

    (row,) = compare.by_apply(side("winograd", 100), side("direct", 150))
    assert row.algorithms == ("winograd", "direct")
    assert row.label == "conv [winograd | direct]"
    (same,) = compare.by_apply(side("direct", 100), side("direct", 150))
    assert (same.algorithms, same.label) == (None, "conv")
    (unknown,) = compare.by_apply(side("", 100), side("direct", 150))
    assert (unknown.algorithms, unknown.label) == (None, "conv")
    table = differencedata.tables([side("winograd", 100)], [side("direct", 150)])["Apply"]
    assert (table[0]["label_before"], table[0]["label_after"]) == (
        "conv [winograd]", "conv [direct]",
    )  # fmt: skip


def test_the_algorithm_of_a_convolution_with_elementwise_work():
    profile = profiled(lambda x: relu(layer(x)), (2, 16, 9, 9))
    (found,) = (a for a in profile.functions[0].applys if "ConvElemwise" in a.op)
    assert found.algorithm in ("direct", "patches", "winograd")
