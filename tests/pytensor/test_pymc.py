"""Models of PyMC under opwise: log-densities, gradients, draws, samplers, profiles."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("pytensor", reason="PyTensor is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its imports warn of what its own dependencies dropped
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")

import opwise.pytensor
from benchmark.pymc.models import MODELS, eight_schools

pytestmark = [pytest.mark.c, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", MODELS)
def test_log_densities_and_gradients(name):
    model = MODELS[name]()
    functions = [
        model.logp_dlogp_function(ravel_inputs=True, mode=mode)
        for mode in ("OPWISE", "FAST_COMPILE")
    ]
    for f in functions:
        f.set_extra_values({})
    own, reference = (f._pytensor_function for f in functions)
    start = pm.blocking.DictToArrayBijection.map(model.initial_point()).data
    rng = np.random.default_rng(0)
    for scale in (0, 0.1, 0.5):
        point = start + scale * rng.normal(size=start.shape)
        for found, expected in zip(own(point), reference(point), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert opwise.pytensor.performed(own) == ()
    assert all(opwise.pytensor.own_function(own).linked.in_c)


def test_models_with_names_of_dimensions():
    import pymc.dims as pmd
    import xarray

    with pm.Model(coords={"group": range(5), "row": range(20)}) as model:
        group = pmd.Data("which", np.arange(20) % 5, dims="row")
        level = pmd.Normal("level", pmd.Normal("mean"), pmd.HalfNormal("spread"), dims="group")
        observed = xarray.DataArray(np.arange(20.0), dims="row")
        pmd.Normal("y", level.isel(group=group), 1.0, dims="row", observed=observed)
    point = model.initial_point()
    for compiled in (model.compile_logp, model.compile_dlogp):
        np.testing.assert_allclose(
            compiled(mode="OPWISE")(point), compiled(mode="FAST_COMPILE")(point)
        )
    assert pm.draw(level, mode="OPWISE").shape == (5,)


def test_what_has_no_density_is_refused_without_an_error():
    """NUTS leaves the region where the density is defined, and wants minus infinity or NaN."""
    model = MODELS["gaussian_process"]()
    f = model.compile_logp(mode="OPWISE")
    point = {k: np.full_like(v, -800.0) for k, v in model.initial_point().items()}
    assert not np.isfinite(f(point))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scaled_bessel_functions(dtype):
    """PyMC has scalar operations of its own, for von Mises and Rice distributions."""
    import pytensor
    import pytensor.tensor as pt
    import scipy.special
    from pymc.distributions.dist_math import i0e, i1e

    x = pt.vector("x", dtype=dtype)
    f = pytensor.function([x], [i0e(x), i1e(x)], mode="OPWISE")
    assert opwise.pytensor.performed(f) == ()
    size = np.concatenate([[0.0, np.inf], np.logspace(-3, 4, 200), np.linspace(70, 90, 50)])
    given = np.concatenate([size, -size, [np.nan]]).astype(dtype)
    expected = scipy.special.i0e(given), scipy.special.i1e(given)
    for found, wanted in zip(f(given), expected, strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("degree", [0, 1, 3])
@pytest.mark.parametrize("outside", ["extrapolate", "zeros", "const"])
def test_splines(degree, outside):
    """``pm.Interpolated`` is one, with its derivative."""
    import pytensor
    import pytensor.tensor as pt
    from pymc.distributions.dist_math import SplineWrapper
    from scipy.interpolate import InterpolatedUnivariateSpline, UnivariateSpline

    knots = np.sort(np.random.default_rng(0).uniform(-2, 2, 12))
    spline = InterpolatedUnivariateSpline(knots, np.sin(knots), k=max(degree, 1), ext=outside)
    if degree == 0:
        spline = spline.derivative()
        assert type(spline) is UnivariateSpline
    x = pt.matrix("x")
    y = SplineWrapper(spline)(x)
    outputs = [y, pt.grad(y.sum(), x)] if degree else [y]
    f = pytensor.function([x], outputs, mode="OPWISE")
    assert opwise.pytensor.performed(f) == ()
    given = np.concatenate([np.linspace(-3, 3, 200), knots]).reshape(4, -1)
    for found, by in zip(f(given), [spline, spline.derivative()] if degree else [spline]):  # noqa: B905
        np.testing.assert_allclose(found, by(given), rtol=1e-12, atol=1e-12)


def test_draws_are_those_of_pymc():
    shape = pm.Gamma.dist(2, 1, shape=3)
    y = pm.Normal.dist(shape, 1)
    own, reference = (
        pm.draw(y, draws=5, mode=mode, random_seed=3) for mode in ("OPWISE", "FAST_COMPILE")
    )
    np.testing.assert_array_equal(own, reference)


def test_a_sampler_and_predictions():
    options = {"compile_kwargs": {"mode": "OPWISE"}, "random_seed": 1}
    with eight_schools():
        prior = pm.sample_prior_predictive(20, **options)
        trace = pm.sample(
            60, tune=60, chains=1, cores=1, progressbar=False, compute_convergence_checks=False,
            nuts_sampler="pymc", **options,
        )  # fmt: skip
        after = pm.sample_posterior_predictive(trace, progressbar=False, **options)
    assert prior.prior["theta"].shape == (1, 20, 8)
    assert np.isfinite(trace.posterior["theta"].values).all()
    assert -10 < float(trace.posterior["mu"].mean()) < 20
    assert after.posterior_predictive["effect"].shape == (1, 60, 8)


def test_nutpie_samples_models():
    nutpie = pytest.importorskip("nutpie", reason="nutpie is not installed")
    model = opwise.pytensor.nutpie_model(eight_schools())
    trace = nutpie.sample(model, draws=60, tune=60, chains=2, seed=1, progress_bar=False)
    assert set(trace.posterior.data_vars) == {"mu", "tau", "theta"}
    assert trace.posterior["theta"].shape == (2, 60, 8)
    assert (trace.posterior["tau"].values > 0).all()
    with pm.Model() as counted:
        pm.Poisson("n", 3)
    with pytest.raises(ValueError, match="n are discrete"):
        opwise.pytensor.nutpie_model(counted)


def test_chains_get_their_first_points_in_threads():
    pytest.importorskip("nutpie", reason="nutpie is not installed")
    model = opwise.pytensor.nutpie_model(eight_schools())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as pool:
            points = list(pool.map(model._make_initial_points, range(300)))
    finally:
        sys.setswitchinterval(interval)
    for seed in (0, 299):
        np.testing.assert_array_equal(points[seed], model._make_initial_points(seed))


def test_profiles_name_lines_of_the_model(capsys):
    mode = opwise.pytensor.ProfilingMode(opwise.pytensor.OpwiseLinker("PROFILE_MODE"), "fast_run")
    model = MODELS["radon"]()
    f = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
    f.set_extra_values({})
    point = pm.blocking.DictToArrayBijection.map(model.initial_point()).data
    f._pytensor_function(point)
    mode.print_summary()
    assert "a[county] + b[county] * floor" in capsys.readouterr().out
    profile = max(mode.recorded().functions, key=lambda one: len(one.applys))
    of_model = [
        any(one.file.endswith("benchmark/pymc/models.py") for one in a.origins)
        for a in profile.applys
    ]
    # the rest is of parameters that no line computes, and of PyMC's flat vector of all of them
    assert sum(of_model) > 0.5 * len(of_model)
