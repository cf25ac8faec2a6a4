"""One training step of a 4 x 10 logistic regression, written for each library that is compared.

The step returns the cost and its two gradients, and moves the weights and the biases downhill.
A factory imports its library itself, so that a missing one costs nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmark.regression.cases import seed_case

STEPSIZE = 0.1


@dataclass(frozen=True)
class Problem:
    """x (4, 10) and y (4, 1), and where the weights (10, 1) and biases (1,) start; all float64."""

    x: np.ndarray
    y: np.ndarray
    w: np.ndarray
    b: np.ndarray


# What a factory returns: the step, and the x and y to call it with, in the library's own kind of
# array. The first value of a step converts to the cost as a float.
Contender = tuple[Callable, object, object]


def problem() -> Problem:
    case = seed_case()
    w = np.random.RandomState(1827).uniform(size=(10, 1), low=-0.5, high=0.5)
    return Problem(case.train_x, case.train_y, w, np.zeros(1))


def numpy_step(given: Problem) -> Contender:
    from scipy.special import expit

    w, b = given.w.copy(), given.b.copy()

    def step(x, y):
        p = expit(x @ w + b)
        miss = p - y
        cost = (miss * miss).sum()
        grad_act = 2 * miss * p * (1 - p)
        grad_w = x.T @ grad_act
        grad_b = grad_act.sum(axis=0)
        np.subtract(w, STEPSIZE * grad_w, out=w)
        np.subtract(b, STEPSIZE * grad_b, out=b)
        return cost, grad_w, grad_b

    return step, given.x, given.y


def symbolic_step(library: str, mode, given: Problem) -> Contender:
    """The step in theano's language, for any library that speaks it.

    ``mode`` is what the library's ``function`` takes, or a function of the library that makes it.
    """
    lib = importlib.import_module(library)
    made = mode(lib) if callable(mode) else mode
    return lib.function(**symbolic_graph(library, given), mode=made), given.x, given.y


def symbolic_graph(library: str, given: Problem) -> dict:
    """Inputs, outputs and updates of the step, as the library's ``function`` takes them."""
    lib = importlib.import_module(library)
    tensor = importlib.import_module(f"{library}.tensor")
    sigmoid = getattr(tensor, "sigmoid", None) or tensor.nnet.sigmoid
    x, y = tensor.dmatrix("x"), tensor.dmatrix("y")
    w, b = lib.shared(given.w, name="w"), lib.shared(given.b, name="b")
    miss = sigmoid(tensor.dot(x, w) + b) - y
    cost = (miss * miss).sum()
    grad_w, grad_b = lib.grad(cost, [w, b])
    return {
        "inputs": [x, y],
        "outputs": [cost, grad_w, grad_b],
        "updates": [(w, w - STEPSIZE * grad_w), (b, b - STEPSIZE * grad_b)],
    }


def torch_step(given: Problem) -> Contender:
    import torch

    w = torch.from_numpy(given.w.copy()).requires_grad_()
    b = torch.from_numpy(given.b.copy()).requires_grad_()

    def step(x, y):
        miss = torch.sigmoid(x @ w + b) - y
        cost = (miss * miss).sum()
        grad_w, grad_b = torch.autograd.grad(cost, [w, b])
        with torch.no_grad():
            w.sub_(grad_w, alpha=STEPSIZE)
            b.sub_(grad_b, alpha=STEPSIZE)
        return cost.detach(), grad_w, grad_b

    return step, torch.from_numpy(given.x), torch.from_numpy(given.y)


def jax_step(given: Problem) -> Contender:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    state = jnp.asarray(given.w), jnp.asarray(given.b)

    def cost_of(state, x, y):
        w, b = state
        miss = jax.nn.sigmoid(x @ w + b) - y
        return (miss * miss).sum()

    @jax.jit
    def descend(state, x, y):
        cost, grads = jax.value_and_grad(cost_of)(state, x, y)
        moved = tuple(value - STEPSIZE * grad for value, grad in zip(state, grads, strict=True))
        return cost, grads, moved

    def step(x, y):
        nonlocal state
        cost, grads, state = descend(state, x, y)
        return jax.block_until_ready(cost), *grads

    return step, jnp.asarray(given.x), jnp.asarray(given.y)


def profile_mode(theano):
    """PROFILE_MODE's own mode object; the registered one would print when the process ends."""
    return theano.ProfileMode(optimizer="fast_run", linker="c|py")


def py_linker(theano):
    return theano.Mode(linker="py", optimizer="fast_run")


STEPS: dict[str, Callable[[Problem], Contender]] = {
    "opwise FAST_RUN": partial(symbolic_step, "theano", "FAST_RUN"),
    "opwise PROFILE_MODE": partial(symbolic_step, "theano", profile_mode),
    "opwise FAST_COMPILE": partial(symbolic_step, "theano", "FAST_COMPILE"),
    "opwise linker py": partial(symbolic_step, "theano", py_linker),
    "numpy by hand": numpy_step,
    "pytensor CVM": partial(symbolic_step, "pytensor", "CVM"),
    "pytensor NUMBA": partial(symbolic_step, "pytensor", "NUMBA"),
    "torch eager": torch_step,
    "jax jit": jax_step,
}
