"""The C and C++ that a user writes to double an array, for each library that runs such code."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

#: for ``c_code`` of Theano's language
C_CODE = """
Py_XDECREF(%(z)s);
%(z)s = (PyArrayObject *)PyArray_EMPTY(1, PyArray_DIMS(%(x)s), NPY_FLOAT64, 0);
if (!%(z)s) %(fail)s
for (npy_intp i = 0; i < PyArray_DIMS(%(z)s)[0]; i++)
    ((double *)PyArray_DATA(%(z)s))[i] = 2 * ((double *)PyArray_DATA(%(x)s))[i];
"""

#: a handler of XLA's foreign functions, which JAX calls
FOREIGN = """
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error twice(ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> z) {
    for (size_t i = 0; i < x.element_count(); i++)
        z->typed_data()[i] = 2 * x.typed_data()[i];
    return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Twice, twice, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>());
"""

#: an operator of PyTorch
OPERATOR = """
#include <torch/library.h>
#include <ATen/ATen.h>

static at::Tensor twice(const at::Tensor &x) {
    at::Tensor z = at::empty_like(x);
    const double *from = x.const_data_ptr<double>();
    double *to = z.mutable_data_ptr<double>();
    for (int64_t i = 0; i < x.numel(); i++)
        to[i] = 2 * from[i];
    return z;
}

TORCH_LIBRARY(suite, m) {
    m.def("doubled_in_c(Tensor x) -> Tensor");
    m.impl("doubled_in_c", c10::DispatchKey::CPU, twice);
}
"""


def c_op(op_class: type, apply_class: type):
    """An Op of Theano's language whose work is ``C_CODE``; its class can be pickled."""
    global Doubled

    class Doubled(op_class):
        __props__ = ()

        def make_node(self, x):
            return apply_class(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            raise AssertionError("the C code is to run")

        def c_code(self, node, name, inputs, outputs, sub):
            return C_CODE % {"x": inputs[0], "z": outputs[0], "fail": sub["fail"]}

        def c_code_cache_version(self):
            return (1,)

    return Doubled()


def library(source: str, include: str, cache: Path) -> Path:
    """A shared library of C++ in the cache; compiled if it is not there."""
    built = cache / "twice.so"
    if not built.exists():
        text = cache / "twice.cpp"
        text.write_text(source)
        compiler = sysconfig.get_config_var("CXX").split()[0]
        subprocess.run(
            [compiler, "-std=c++17", "-O3", "-shared", "-fPIC", f"-I{include}", text, "-o", built],
            check=True,
        )
    return built
