"""Models of the kinds that people sample with PyMC, each on data that it makes itself."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def eight_schools() -> pm.Model:
    """A hierarchy of eight groups, with centred offsets."""
    effect = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    error = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", 0, 1, shape=8)
        pm.Normal("effect", mu + tau * theta, error, observed=effect)
    return model


def radon() -> pm.Model:
    """919 rows in 85 groups, each with an intercept and a slope."""
    rng = _random()
    county, floor = rng.integers(0, 85, 919), rng.integers(0, 2, 919).astype(float)
    level = rng.normal(size=919)
    with pm.Model() as model:
        mu_a, sigma_a = pm.Normal("mu_a", 0, 10), pm.HalfNormal("sigma_a", 5)
        mu_b, sigma_b = pm.Normal("mu_b", 0, 10), pm.HalfNormal("sigma_b", 5)
        a = pm.Normal("a", mu_a, sigma_a, shape=85)
        b = pm.Normal("b", mu_b, sigma_b, shape=85)
        pm.Normal("level", a[county] + b[county] * floor, pm.HalfCauchy("eps", 5), observed=level)
    return model


def logistic() -> pm.Model:
    """A logistic regression of 1000 rows and 20 columns."""
    rng = _random()
    x, y = rng.normal(size=(1000, 20)), rng.integers(0, 2, 1000)
    with pm.Model() as model:
        weights = pm.Normal("weights", 0, 1, shape=20)
        pm.Bernoulli("y", logit_p=x @ weights + pm.Normal("bias"), observed=y)
    return model


def autoregression() -> pm.Model:
    """An AR(1) process of 100 steps, written as a scan."""
    y = np.cumsum(_random().normal(size=100))
    with pm.Model() as model:
        rho, sigma = pm.Normal("rho", 0, 0.5), pm.HalfNormal("sigma")
        noise = pm.Normal("noise", 0, 1, shape=100)
        path = pytensor.scan(
            lambda e, last, rho, sigma: rho * last + sigma * e,
            sequences=noise, outputs_info=pt.zeros(()), non_sequences=[rho, sigma],
            return_updates=False,
        )  # fmt: skip
        pm.Normal("y", path, 1.0, observed=y)
    return model


def gaussian_process() -> pm.Model:
    """The marginal likelihood of a Gaussian process at 100 points."""
    x = np.linspace(0, 10, 100)[:, np.newaxis]
    y = np.sin(x[:, 0]) + 0.1 * _random().normal(size=100)
    with pm.Model() as model:
        length, eta = pm.Gamma("length", 2, 1), pm.HalfCauchy("eta", 5)
        process = pm.gp.Marginal(cov_func=eta**2 * pm.gp.cov.Matern52(1, length))
        process.marginal_likelihood("y", X=x, y=y, sigma=pm.HalfCauchy("sigma", 5))
    return model


def mixture() -> pm.Model:
    """A mixture of three normal distributions, 250 rows."""
    rng = _random()
    y = np.concatenate([rng.normal(-2, 1, 100), rng.normal(3, 1, 150)])
    with pm.Model() as model:
        shares = pm.Dirichlet("shares", np.ones(3))
        mu, sigma = pm.Normal("mu", 0, 5, shape=3), pm.HalfNormal("sigma", 2, shape=3)
        pm.NormalMixture("y", shares, mu, sigma, observed=y)
    return model


def correlations() -> pm.Model:
    """A multivariate normal with an LKJ prior, 50 rows of three columns."""
    y = _random().normal(size=(50, 3))
    with pm.Model() as model:
        factor, *_ = pm.LKJCholeskyCov("factor", n=3, eta=2, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("y", pm.Normal("mu", 0, 1, shape=3), chol=factor, observed=y)
    return model


def ordinal() -> pm.Model:
    """An ordered logistic regression of 200 rows and five classes."""
    rng = _random()
    y, x = rng.integers(0, 5, 200), rng.normal(size=200)
    with pm.Model() as model:
        cuts = pm.Normal(
            "cuts", 0, 2, shape=4, transform=pm.distributions.transforms.ordered,
            initval=np.arange(4.0) - 2,
        )  # fmt: skip
        pm.OrderedLogistic("y", eta=pm.Normal("b") * x, cutpoints=cuts, observed=y)
    return model


def counts() -> pm.Model:
    """A negative binomial regression of 300 rows."""
    rng = _random()
    y, x = rng.poisson(3, 300), rng.normal(size=300)
    with pm.Model() as model:
        mean = pm.math.exp(pm.Normal("a") + pm.Normal("b") * x)
        pm.NegativeBinomial("y", mu=mean, alpha=pm.Exponential("alpha", 1), observed=y)
    return model


def volatility() -> pm.Model:
    """Stochastic volatility: a random walk of 200 steps behind Student's t."""
    y = _random().normal(size=200)
    with pm.Model() as model:
        step, nu = pm.Exponential("step", 10), pm.Exponential("nu", 0.1)
        walk = pm.GaussianRandomWalk("walk", sigma=step, shape=200, init_dist=pm.Normal.dist(0, 1))
        pm.StudentT("y", nu=nu, lam=pm.math.exp(-2 * walk), observed=y)
    return model


def survival() -> pm.Model:
    """Weibull times, censored on the right, 100 rows."""
    times = np.minimum(_random().weibull(1.5, 100), 1.2)
    with pm.Model() as model:
        plain = pm.Weibull.dist(pm.HalfNormal("alpha", 2), pm.HalfNormal("beta", 2))
        pm.Censored("time", plain, lower=None, upper=1.2, observed=times)
    return model


def reliability() -> pm.Model:
    """Gamma times, censored on the right, 100 rows."""
    times = np.minimum(_random().gamma(2.0, 0.7, 100), 2.0)
    with pm.Model() as model:
        plain = pm.Gamma.dist(pm.HalfNormal("alpha", 2), pm.HalfNormal("beta", 2))
        pm.Censored("time", plain, lower=None, upper=2.0, observed=times)
    return model


def shares() -> pm.Model:
    """Shares with a beta distribution between two bounds, 100 rows."""
    drawn = _random().beta(2.0, 3.0, 200)
    with pm.Model() as model:
        plain = pm.Beta.dist(pm.HalfNormal("alpha", 2), pm.HalfNormal("beta", 2), shape=100)
        seen = drawn[(drawn > 0.1) & (drawn < 0.8)][:100]
        pm.Truncated("share", plain, lower=0.1, upper=0.8, observed=seen)
    return model


def missing() -> pm.Model:
    """A normal distribution of 30 rows, of which three are missing."""
    y = _random().normal(size=30)
    y[3:6] = np.nan
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=y)
    return model


MODELS = {
    model.__name__: model
    for model in (
        eight_schools, radon, logistic, autoregression, gaussian_process, mixture, correlations,
        ordinal, counts, volatility, survival, reliability, shares, missing,
    )
}  # fmt: skip
