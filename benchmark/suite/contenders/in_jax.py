"""JAX: one jitted function, the state donated to it."""

from __future__ import annotations

import ctypes
from functools import partial
from operator import matmul
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from benchmark.suite.contenders import base
from benchmark.suite.contenders.usercode import FOREIGN, library
from benchmark.suite.workload import SEED


def named(names, values) -> dict:
    return dict(zip(names, values, strict=True))


class Jax(base.Contender):
    def __init__(self, name):
        super().__init__(name, needs=("jax",))

    def environment(self, cache):
        """Its cache between processes is off unless asked for, and keeps only what took long."""
        return {
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }

    def load(self, workload):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        self.workload = workload
        data = workload.data()
        self.inputs = {name: jax.numpy.asarray(v) for name, v in data.inputs.items()}
        self.values = {name: jax.numpy.asarray(v) for name, v in data.state.items()}

    def build(self):
        jax, xp = self.jax, self.namespace()

        inputs, state = list(self.inputs), list(self.values)

        def program(before, *given):
            """Lists, because jax would sort dictionaries."""
            values = {**named(inputs, given), **named(state, before)}
            outputs, after = self.workload.bind(xp, values)()
            return outputs, [after[name] for name in state]

        given, after = list(self.inputs.values()), list(self.values.values())
        if self.workload.random:
            return self.drawing(program, after, given)
        run = jax.jit(program, donate_argnums=0)

        def step():
            nonlocal after
            outputs, after = run(after, *given)
            return jax.block_until_ready(outputs)

        self.now = lambda: named(state, after)

        return step

    def drawing(self, program, before, given):
        """What makes one call of a program without state that draws random numbers."""

        def drawn(key):
            self.key = key
            outputs, _ = program(before, *given)
            return outputs, self.key

        run, key = self.jax.jit(drawn), self.jax.random.key(SEED)
        self.now = dict

        def step():
            nonlocal key
            outputs, key = run(key)
            return self.jax.block_until_ready(outputs)

        return step

    def scan(self, step, first, sequences=(), steps=None, *, rows):
        """A loop; each step has a key of its own."""
        keys = [self.key] if self.workload.random else []

        def body(carried, given):
            states = carried[: len(first)]
            if keys:
                self.key = carried[-1]
            new = tuple(step(*given, *states))
            return (*new, *([self.key] if keys else [])), new if rows else None

        carried, all_rows = self.jax.lax.scan(body, (*first, *keys), tuple(sequences), steps)
        if keys:
            self.key = carried[-1]
        return all_rows if rows else carried[: len(first)]

    def next_key(self):
        self.key, used = self.jax.random.split(self.key)
        return used

    def state(self):
        return {name: np.array(value) for name, value in self.now().items()}

    def foreign(self, result):
        """What calls the user's C++ for a result of that type."""
        ffi = self.jax.ffi
        cache = Path(self.jax.config.jax_compilation_cache_dir)
        code = ctypes.CDLL(str(library(FOREIGN, ffi.include_dir(), cache)))
        ffi.register_ffi_target("twice", ffi.pycapsule(code.Twice), platform="cpu")
        return ffi.ffi_call("twice", result)

    def namespace(self) -> SimpleNamespace:
        from jax.experimental import sparse

        jax, jnp = self.jax, self.jax.numpy
        xp = SimpleNamespace(
            exp=jnp.exp,
            log=jnp.log,
            sqrt=jnp.sqrt,
            sin=jnp.sin,
            tanh=jnp.tanh,
            sigmoid=jax.nn.sigmoid,
            erf=jax.scipy.special.erf,
            dot=jnp.dot,
            sum=jnp.sum,
            mean=jnp.mean,
            max=jnp.max,
            cholesky=jnp.linalg.cholesky,
            solve=jnp.linalg.solve,
            solve_lower=partial(jax.scipy.linalg.solve_triangular, lower=True),
            svd=jnp.linalg.svd,
            eigh=jnp.linalg.eigh,
            diagonal=jnp.diagonal,
            softmax=jax.nn.softmax,
            relu=jax.nn.relu,
            on_maps=base.on_maps,
            rows=lambda x: x.reshape(x.shape[0], -1),
            argmax=jnp.argmax,
            argmin=jnp.argmin,
            cumsum=jnp.cumsum,
            sort=jnp.sort,
            searchsorted=lambda x, v: jnp.searchsorted(x, v).astype("int64"),
            where=jnp.where,
            matmul=jnp.matmul,
            swapped=lambda x: x.swapaxes(1, 2),
            softmax_last=jax.nn.softmax,
            masked_sum=lambda x, mask: jnp.where(mask, x, 0).sum(),
            take_columns=lambda x, index: jnp.take(x, index, axis=1),
            take=lambda table, index: table[index],
            add_at=lambda table, index, rows: table.at[index].add(rows),
            set_at=lambda table, index, rows: table.at[index].set(rows),
            csr=lambda *vectors: sparse.BCSR(vectors[:3], shape=vectors[3]),
            sparse_dot=matmul,
            filtered=lambda x, gain: jnp.fft.irfft(jnp.fft.rfft(x) * gain, x.shape[1]),
            doubled_in_c=lambda x: self.foreign(jax.ShapeDtypeStruct(x.shape, x.dtype))(x),
            doubled_in_python=lambda x: jax.pure_callback(
                lambda x: 2 * np.asarray(x), jax.ShapeDtypeStruct(x.shape, x.dtype), x
            ),
            descend=base.descend,
            scan=partial(self.scan, rows=False),
            scan_rows=partial(self.scan, rows=True),
            constant=jnp.asarray,
            inverse=jnp.linalg.inv,
            as_dtype=lambda x, dtype: x.astype(dtype),
            uniform=lambda shape, dtype: jax.random.uniform(self.next_key(), shape, dtype),
            normal=lambda shape, dtype: jax.random.normal(self.next_key(), shape, dtype),
        )
        xp.legacy_uniform, xp.legacy_normal = xp.uniform, xp.normal
        xp.layer_norm = partial(base.layer_norm, xp)
        xp.batch_norm = partial(base.batch_norm, xp)

        def conv(x, w, stride=1, pad=0, groups=1):
            return jax.lax.conv_general_dilated(
                x, w, (stride, stride), [(pad, pad)] * 2, feature_group_count=groups
            )

        def conv_by_filters(x, w, g, *moves):
            return jax.vjp(lambda w: conv(x, w, *moves), w)[1](g)[0]

        def conv_by_images(x, w, g, *moves):
            return jax.vjp(lambda x: conv(x, w, *moves), x)[1](g)[0]

        def max_pool(x, size, stride):
            return jax.lax.reduce_window(
                x, -jnp.inf, jax.lax.max, (1, 1, size, size), (1, 1, stride, stride), "VALID"
            )

        xp.conv, xp.conv_by_filters, xp.conv_by_images = conv, conv_by_filters, conv_by_images
        xp.max_pool = max_pool

        def cross_entropy(scores, labels):
            return -jnp.mean(jax.nn.log_softmax(scores)[jnp.arange(len(labels)), labels])

        def value_and_grad(cost_of, *wrt):
            return jax.value_and_grad(cost_of, argnums=tuple(range(len(wrt))))(*wrt)

        def power_spectrum(x):
            z = jnp.fft.rfft(x)
            return z.real**2 + z.imag**2

        xp.cross_entropy = cross_entropy
        xp.power_spectrum = power_spectrum
        xp.value_and_grad = value_and_grad
        return xp
