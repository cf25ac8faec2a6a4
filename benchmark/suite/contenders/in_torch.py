"""PyTorch, operation by operation and compiled. State is overwritten, as its optimizers do."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

from benchmark.suite.contenders import base
from benchmark.suite.contenders.usercode import OPERATOR
from benchmark.suite.workload import SEED

#: so many steps of an unrolled loop take more than a quarter of an hour to compile
LONG = 1000


class Torch(base.Contender):
    """Operation by operation, with the gradients that autograd records."""

    def __init__(self, name):
        super().__init__(name, needs=("torch",))

    def environment(self, cache):
        return {"TORCH_EXTENSIONS_DIR": str(cache / "extensions")}

    def load(self, workload):
        import torch

        self.torch = torch
        self.workload = workload
        data = workload.data()
        self.inputs = {name: torch.from_numpy(value) for name, value in data.inputs.items()}
        self.values = {name: self.parameter(value) for name, value in data.state.items()}

    def parameter(self, value):
        return self.torch.from_numpy(value).requires_grad_()

    def build(self):
        return self.workload.bind(self.namespace(), {**self.inputs, **self.values})

    def outputs(self, returned):
        return [value.detach().numpy().copy() for value in returned[0]]

    def state(self):
        return {name: value.detach().numpy() for name, value in self.values.items()}

    def namespace(self) -> SimpleNamespace:
        torch, functional = self.torch, self.torch.nn.functional
        torch.manual_seed(SEED)

        def uniform(shape, dtype):
            return torch.rand(shape, dtype=getattr(torch, dtype))

        def normal(shape, dtype):
            return torch.randn(shape, dtype=getattr(torch, dtype))

        return SimpleNamespace(
            uniform=uniform,
            normal=normal,
            legacy_uniform=uniform,
            legacy_normal=normal,
            exp=torch.exp,
            log=torch.log,
            sqrt=torch.sqrt,
            sin=torch.sin,
            tanh=torch.tanh,
            sigmoid=torch.sigmoid,
            erf=torch.erf,
            dot=torch.matmul,
            sum=lambda x, axis=None: torch.sum(x, axis),
            mean=lambda x, axis=None: torch.mean(x, axis),
            max=lambda x, axis=None: torch.amax(x, () if axis is None else axis),
            cholesky=torch.linalg.cholesky,
            solve=torch.linalg.solve,
            solve_lower=self.solve_lower,
            svd=torch.linalg.svd,
            eigh=torch.linalg.eigh,
            diagonal=torch.diagonal,
            softmax=lambda x: torch.softmax(x, 1),
            cross_entropy=functional.cross_entropy,
            layer_norm=lambda x, gain, bias: functional.layer_norm(
                x, gain.shape, gain, bias, base.EPSILON
            ),
            conv=lambda x, w, stride=1, pad=0, groups=1: functional.conv2d(
                x, w, None, stride, pad, 1, groups
            ),
            conv_by_filters=lambda x, w, g, stride=1, pad=0, groups=1: torch.nn.grad.conv2d_weight(
                x, w.shape, g, stride, pad, 1, groups
            ),
            conv_by_images=lambda x, w, g, stride=1, pad=0, groups=1: torch.nn.grad.conv2d_input(
                x.shape, w, g, stride, pad, 1, groups
            ),
            max_pool=functional.max_pool2d,
            batch_norm=lambda x, gain, bias: functional.batch_norm(
                x, None, None, gain, bias, training=True, eps=base.EPSILON
            ),
            relu=torch.relu,
            on_maps=base.on_maps,
            rows=lambda x: x.flatten(1),
            argmax=lambda x, axis: torch.argmax(x, axis),
            argmin=lambda x, axis: torch.argmin(x, axis),
            cumsum=lambda x, axis: torch.cumsum(x, axis),
            sort=lambda x, axis: torch.sort(x, axis).values,
            searchsorted=torch.searchsorted,
            where=torch.where,
            matmul=torch.matmul,
            swapped=lambda x: x.transpose(1, 2),
            softmax_last=lambda x: torch.softmax(x, -1),
            masked_sum=lambda x, mask: x[mask].sum(),
            take_columns=lambda x, index: torch.index_select(x, 1, index),
            take=lambda table, index: functional.embedding(index, table),
            add_at=self.add_at,
            set_at=self.set_at,
            csr=lambda data, indices, indptr, shape: torch.sparse_csr_tensor(
                indptr, indices, data, shape
            ),
            sparse_dot=torch.sparse.mm,
            power_spectrum=lambda x: torch.view_as_real(torch.fft.rfft(x)).square().sum(-1),
            filtered=lambda x, gain: torch.fft.irfft(torch.fft.rfft(x) * gain, x.shape[1]),
            doubled_in_c=self.operator() if self.workload.user_code == "C" else None,
            doubled_in_python=self.python_function(),
            scan=base.scan,
            scan_rows=partial(base.scan_rows, torch.stack),
            constant=torch.from_numpy,
            inverse=torch.linalg.inv,
            as_dtype=lambda x, dtype: x.to(getattr(torch, dtype)),
            value_and_grad=self.value_and_grad,
            descend=self.descend,
        )

    def operator(self):
        """The user's C++, as an operator."""
        from torch.utils.cpp_extension import load_inline

        load_inline("suite_user_code", OPERATOR, is_python_module=False, no_implicit_headers=True)
        operator = self.torch.ops.suite.doubled_in_c
        self.torch.library.register_fake("suite::doubled_in_c", self.torch.empty_like)
        return operator

    def python_function(self):
        """What calls the user's function of numpy arrays."""
        return lambda x: self.torch.from_numpy(2 * x.numpy())

    def solve_lower(self, a, b):
        """It takes matrices only."""
        return self.torch.linalg.solve_triangular(a, b[:, None], upper=False)[:, 0]

    def value_and_grad(self, cost_of, *wrt):
        leaves = [
            value if value.requires_grad else value.detach().requires_grad_() for value in wrt
        ]
        cost = cost_of(*leaves)
        return cost.detach(), self.torch.autograd.grad(cost, leaves)

    def descend(self, state, grads, rate):
        with self.torch.no_grad():
            for value, grad in zip(state.values(), grads, strict=True):
                value.sub_(grad, alpha=rate)
        return state

    def add_at(self, table, index, rows):
        with self.torch.no_grad():
            return table.index_add_(0, index, rows)

    def set_at(self, table, index, rows):
        with self.torch.no_grad():
            return table.index_copy_(0, index, rows)


class TorchCompile(Torch):
    """The whole step compiled at once, with the gradients that torch.func derives."""

    def declines(self, workload):
        if max(workload.sizes.get(name, 0) for name in ("steps", "rows")) < LONG or (
            workload.loop is None
        ):
            return ""
        return "it unrolls loops of Python: so many steps do not compile"

    def environment(self, cache):
        return {
            **super().environment(cache),
            "TORCHINDUCTOR_CACHE_DIR": str(cache),
            "TRITON_CACHE_DIR": str(cache / "triton"),
        }

    def parameter(self, value):
        return self.torch.from_numpy(value)

    def build(self):
        xp, values = self.namespace(), {**self.inputs, **self.values}

        def program(values):
            return self.workload.bind(xp, values)()

        return partial(self.torch.compile(program, dynamic=False), values)

    def value_and_grad(self, cost_of, *wrt):
        grads, cost = self.torch.func.grad_and_value(cost_of, tuple(range(len(wrt))))(*wrt)
        return cost, grads

    def python_function(self):
        """The same as an operator, into which the compiler does not look."""
        operator = self.torch.library.custom_op(
            "suite::doubled_in_python",
            super().python_function(),
            mutates_args=(),
            schema="(Tensor x) -> Tensor",
        )
        operator.register_fake(self.torch.empty_like)
        return operator
