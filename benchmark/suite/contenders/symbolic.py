"""The libraries that speak Theano's language: opwise and PyTensor."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from types import SimpleNamespace

from benchmark.suite.contenders import base
from benchmark.suite.contenders.usercode import c_op
from benchmark.suite.workload import SEED

LETTERS = {"float32": "f", "float64": "d", "int64": "l", "int32": "i"}
FLOATS = {"float16": "float16", "float32": "float32", "complex64": "float32"}
RANKS = ("scalar", "vector", "matrix", "tensor3", "tensor4")


def doubled(x):
    return 2 * x


def softmax_last_of(tensor):
    def softmax_last(x):
        e = tensor.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    return softmax_last


class Symbolic(base.Contender):
    """``mode`` is what ``function`` takes, or a function of the library that makes it."""

    library: str
    flags: str
    fourier: str
    loops: str

    def __init__(self, name, mode, needs=()):
        super().__init__(name, (self.library, *needs))
        self.mode = mode

    def environment(self, cache):
        return {self.flags: f"base_compiledir={cache}"}

    def load(self, workload):
        self.lib = importlib.import_module(self.library)
        self.tensor = importlib.import_module(f"{self.library}.tensor")
        # Python's numbers become of that dtype, or of that of its parts
        self.lib.config.floatX = FLOATS.get(workload.dtype, "float64")
        self.workload = workload
        self.data = workload.data()

    def build(self):
        symbols = {name: self.symbol(name, value) for name, value in self.data.inputs.items()}
        self.updates = []
        self.shared = {name: self.lib.shared(v, name) for name, v in self.data.state.items()}
        outputs, new = self.workload.bind(self.namespace(), {**symbols, **self.shared})()
        function = self.lib.function(
            list(symbols.values()),
            list(outputs),
            updates=[*((self.shared[name], value) for name, value in new.items()), *self.updates],
            mode=self.mode(self.lib) if callable(self.mode) else self.mode,
        )
        return partial(function, *self.data.inputs.values())

    def symbol(self, name, value):
        letter = LETTERS.get(value.dtype.name)
        if letter is None:
            return self.tensor.TensorType(value.dtype.name, (False,) * value.ndim)(name)
        return getattr(self.tensor, letter + RANKS[value.ndim])(name)

    def state(self):
        return {name: shared.get_value() for name, shared in self.shared.items()}

    def namespace(self) -> SimpleNamespace:
        tensor = self.tensor
        fft = importlib.import_module(self.fourier)
        xp = SimpleNamespace(
            exp=tensor.exp,
            log=tensor.log,
            sqrt=tensor.sqrt,
            sin=tensor.sin,
            tanh=tensor.tanh,
            sigmoid=tensor.sigmoid,
            erf=tensor.erf,
            dot=tensor.dot,
            sum=tensor.sum,
            mean=tensor.mean,
            max=tensor.max,
            argmax=tensor.argmax,
            argmin=tensor.argmin,
            cumsum=tensor.cumsum,
            sort=tensor.sort,
            searchsorted=tensor.extra_ops.searchsorted,
            where=tensor.switch,
            matmul=tensor.batched_dot,
            swapped=lambda x: x.dimshuffle(0, 2, 1),
            softmax_last=softmax_last_of(tensor),
            masked_sum=lambda x, mask: x[mask].sum(),
            take_columns=lambda x, index: x.take(index, axis=1),
            take=lambda table, index: table[index],
            add_at=lambda table, index, rows: tensor.inc_subtensor(table[index], rows),
            set_at=lambda table, index, rows: tensor.set_subtensor(table[index], rows),
            cholesky=tensor.linalg.cholesky,
            solve=tensor.linalg.solve,
            svd=tensor.linalg.svd,
            eigh=tensor.linalg.eigh,
            diagonal=tensor.diagonal,
            csr=lambda *vectors: self.sparse().CSR(*vectors),
            sparse_dot=lambda x, w: self.sparse().structured_dot(x, w),
            power_spectrum=lambda x: tensor.sum(tensor.sqr(fft.rfft(x)), axis=-1),
            filtered=lambda x, gain: fft.irfft(fft.rfft(x) * gain[:, None]),
            value_and_grad=self.value_and_grad,
            descend=base.descend,
            scan=lambda *args, **kwargs: [rows[-1] for rows in self.scan_rows(*args, **kwargs)],
            scan_rows=self.scan_rows,
            constant=tensor.as_tensor_variable,
            as_dtype=tensor.cast,
            relu=lambda x: tensor.maximum(x, 0),
            on_maps=lambda b: b.dimshuffle(0, "x", "x"),
            rows=lambda x: x.flatten(2),
        )
        xp.layer_norm = partial(base.layer_norm, xp)
        xp.batch_norm = partial(base.batch_norm, xp)
        return xp

    def scan_rows(self, step, first, sequences=(), steps=None):
        rows, updates = importlib.import_module(self.loops).scan(
            lambda *values: list(step(*values)),
            sequences=list(sequences),
            outputs_info=list(first),
            n_steps=steps,
            return_list=True,
        )
        self.updates += updates.items()
        return rows

    def sparse(self):
        return importlib.import_module(f"{self.library}.sparse")

    def value_and_grad(self, cost_of, *wrt):
        cost = cost_of(*wrt)
        return cost, self.lib.grad(cost, list(wrt))


class Opwise(Symbolic):
    library, flags = "opwise", "OPWISE_FLAGS"
    fourier = "opwise.tensor.linalg.fft"
    loops = "opwise.loops"

    def environment(self, cache):
        # the first result is measured as users get it
        return {self.flags: f"base_compiledir={cache},background_compilation=True"}

    def settle(self, step):
        vm = step.func.fn
        if hasattr(vm, "wait_for_kernels"):
            vm.wait_for_kernels()

    def namespace(self):
        xp, tensor = super().namespace(), self.tensor
        xp.softmax = tensor.nnet.softmax
        xp.inverse = tensor.linalg.matrix_inverse
        xp.solve_lower = tensor.linalg.solve_lower_triangular

        def cross_entropy(scores, labels):
            """As Theano's tutorials have it."""
            likely = tensor.log(xp.softmax(scores))[tensor.arange(labels.shape[0]), labels]
            return -tensor.mean(likely)

        xp.cross_entropy = cross_entropy
        streams = importlib.import_module("opwise.compile.mrg_streams").MRG_RandomStreams(SEED)
        xp.uniform = lambda shape, dtype: streams.uniform(shape, dtype=dtype)
        xp.normal = lambda shape, dtype: streams.normal(shape, dtype=dtype)
        legacy = importlib.import_module("opwise.compile.streams").RandomStreams(SEED)
        xp.legacy_uniform = lambda shape, dtype: legacy.uniform(shape, dtype=dtype)
        xp.legacy_normal = lambda shape, dtype: legacy.normal(shape, dtype=dtype)
        xp.conv, xp.conv_by_filters, xp.conv_by_images = (
            self.conv, self.conv_by_filters, self.conv_by_images,
        )  # fmt: skip
        pool = importlib.import_module("opwise.tensor.conv.pool")
        xp.max_pool = lambda x, size, stride: pool.pool_2d(x, (size, size), True, (stride, stride))
        norm = importlib.import_module("opwise.tensor.nnet.bn").batch_normalization_train
        xp.batch_norm = lambda x, gain, bias: norm(
            x, *(b.dimshuffle("x", 0, "x", "x") for b in (gain, bias)), "spatial", base.EPSILON
        )[0]
        xp.relu = tensor.nnet.relu
        types = [tensor.dvector]
        xp.doubled_in_python = self.lib.as_op(types, types)(doubled)
        xp.doubled_in_c = c_op(self.lib.Op, self.lib.Apply)
        return xp

    def conv(self, x, w, stride=1, pad=0, groups=1):
        functions = importlib.import_module("opwise.tensor.conv.functions")
        return functions.conv2d(
            x, w, border_mode=pad, subsample=(stride, stride), filter_flip=False, num_groups=groups
        )

    def conv_by_filters(self, x, w, g, *moves):
        return self.lib.grad(None, w, known_grads={self.conv(x, w, *moves): g})

    def conv_by_images(self, x, w, g, *moves):
        return self.lib.grad(None, x, known_grads={self.conv(x, w, *moves): g})


class Pytensor(Symbolic):
    library, flags = "pytensor", "PYTENSOR_FLAGS"
    fourier = "pytensor.tensor.fft"
    loops = "pytensor"

    def environment(self, cache):
        return {**super().environment(cache), "NUMBA_CACHE_DIR": str(cache / "numba")}

    def declines(self, workload):
        if workload.images:
            return "it has no convolution and no pooling of images with channels"
        runs_no_c = self.mode == "NUMBA" and workload.user_code == "C"
        return "its mode NUMBA runs no C code of Ops" if runs_no_c else ""

    def load(self, workload):
        sys.setrecursionlimit(100_000)  # it walks along a graph by recursion
        super().load(workload)

    def namespace(self):
        xp, tensor = super().namespace(), self.tensor
        xp.inverse = tensor.linalg.inv
        xp.softmax = partial(tensor.special.softmax, axis=-1)
        xp.solve_lower = partial(tensor.linalg.solve_triangular, lower=True)

        def cross_entropy(scores, labels):
            likely = tensor.special.log_softmax(scores, axis=-1)
            return -tensor.mean(likely[tensor.arange(labels.shape[0]), labels])

        xp.cross_entropy = cross_entropy
        streams = tensor.random.utils.RandomStream(SEED)
        xp.uniform = xp.legacy_uniform = lambda shape, dtype: streams.uniform(0, 1, size=shape)
        xp.normal = xp.legacy_normal = lambda shape, dtype: streams.normal(0, 1, size=shape)
        types = [tensor.dvector]
        xp.doubled_in_python = self.lib.compile.ops.wrap_py(types, types)(doubled)
        xp.doubled_in_c = c_op(self.lib.link.c.op.COp, self.lib.graph.basic.Apply)
        return xp
