"""Models of PyMC for samplers that take functions: nutpie."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.pytensor.linker import own_function


def nutpie_model(model: Any, mode: Any = "OPWISE") -> Any:
    """Return a model of PyMC as nutpie samples it: ``nutpie.sample(nutpie_model(model))``.

    mode: of PyTensor, one of opwise's. Values of ``pm.Data`` are those of the moment. Raises
    ValueError if a free variable is discrete: nutpie needs a gradient by all of them.
    """
    import pymc as pm
    import pytensor
    from nutpie.compiled_pyfunc import from_pyfunc
    from pymc.initial_point import make_initial_point_fn

    free = list(model.value_vars)
    discrete = [var.name for var in free if var.type.dtype not in ("float32", "float64")]
    if discrete:
        raise ValueError(
            f"nutpie samples continuous variables alone; {', '.join(discrete)} are discrete: "
            "sum over them, or sample with pm.sample."
        )
    point = model.initial_point()
    wanted = {var.name for var in (*model.free_RVs, *model.deterministics)}
    kept = [var for var in model.unobserved_value_vars if var.name in wanted]
    names = [var.name for var in kept]
    outputs, x = pm.pytensorf.join_nonshared_inputs(point, [model.logp(), *kept], free)
    gradient = pytensor.grad(outputs[0], x)
    density = pytensor.function([x], [outputs[0], gradient], mode=mode, trust_input=True)
    expand = pytensor.function(
        [x], outputs[1:], mode=mode, trust_input=True, on_unused_input="ignore"
    )
    start = np.concatenate([np.ravel(point[var.name]) for var in free]).astype("float64")
    shapes = [value.shape for value in expand(start)]
    initial = make_initial_point_fn(
        model=model, jitter_rvs=set(model.free_RVs), return_transformed=True
    )

    # nutpie asks for points from the thread of each chain; a function of PyTensor has one storage
    one_at_a_time = threading.Lock()

    def initial_point(seed: int) -> np.ndarray:
        with one_at_a_time:
            values = initial(seed)
        return np.concatenate([np.ravel(values[var.name]) for var in free]).astype("float64")

    def make_density() -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        evaluate = _evaluating(density)

        def logp(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, by_x = evaluate(x)
            return float(value), np.asarray(by_x, dtype="float64", order="C")

        return logp

    def make_expand(seed1: int, seed2: int, chain: int) -> Callable[[np.ndarray], dict[str, Any]]:
        evaluate = _evaluating(expand)

        def values(x: np.ndarray) -> dict[str, Any]:
            found = evaluate(x)
            return {
                name: np.asarray(value, dtype="float64", order="C")
                for name, value in zip(names, found, strict=True)
            }

        return values

    coords = {
        name: list(range(int(model.dim_lengths[name].eval()))) if values is None else list(values)
        for name, values in model.coords.items()
    }
    return from_pyfunc(
        ndim=start.size,
        make_logp_fn=make_density,
        make_expand_fn=make_expand,
        make_initial_point_fn=initial_point,
        expanded_dtypes=[np.dtype("float64")] * len(names),
        expanded_shapes=shapes,
        expanded_names=names,
        coords=coords,
        dims={name: dims for name, dims in model.named_vars_to_dims.items() if name in names},
    )


def _evaluating(function: Any) -> Callable[[np.ndarray], list[np.ndarray]]:
    """Return a call of the function of opwise behind one of PyTensor, without PyTensor's own.

    It is a copy: calls of one function wait for each other, and each chain has a thread.
    """
    own = own_function(function).copy()
    own.trust_input = True
    shared = [container.storage for container in function.input_storage[1:]]

    def evaluate(x: np.ndarray) -> list[np.ndarray]:
        values: list[np.ndarray] = own(x, *[storage[0] for storage in shared])
        return values

    return evaluate
