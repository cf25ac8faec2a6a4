"""Rewrites keep what integers do at the ends of their dtype: -(-128) is -128, 255 + 1 is 0."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function

#: programs of a vector n of integers and a vector x of floats
FORMS = """-n / 2; (-n) * 0.5; T.neg(n) * np.float64(2); 1.5 - (-n); 3.0 * (-n) * x; (-n) / (-n - 1)
abs(-n) * 1.0; T.sqr(-n) * 1.0; (-n) ** 2 * 1.0; -(-n) * 1.0; -(-n); (2 * n) / 2; (n * n) / (n + 1)
(n + n) / 2; (n - 3) / 2; (n - n * 2) * 0.5; (2 * n) * 0.5; (3 * n) * 0.5; (n * 2) / 4.0
-(n * 2) / 4.0; T.sum(-n) / 2; T.sum(-n); -T.sum(-n); T.max(-n); -T.max(-n)
-T.min(-n); T.sum(2 * n); T.sum(n * n)
T.mean(-n); T.mean(n * 2); T.prod(-n); T.minimum(-n, 3); 1.0 * (-n); 0.5 * (-n) + 1; -n - 0.5
T.cast(-n, 'float64'); T.cast(-n, 'int32') + 1; T.cast(n * 2, 'float64') * 0.5; T.exp(-T.sgn(n))
abs(n) * 1.0; abs(n) / (n + 1); T.sgn(n) * abs(n); (n * 3) / 3; (n + n) / (n + 1); (n - n) * 0.1
(n + 1) * 0.5; 0.5 * (n + 1) - 0.5; (n - 1) / 2.0; -(n + 1) * 0.5; 0.5 - (-n); x - (-n); x - n * 2
-(-n / 2); -(-n / x); (x - n) - n; 2 * (x - n) + n; x * (-n) / x; -x * (n * 2); x / (-n - 1)
T.dot(-n, x); -T.dot(n, -x); T.dot(n * 2, x) * 0.5; T.switch(n > 0, -n, n) * 1.0; T.clip(-n, -3, 3)
(n + 1 > n); (-n < 0); (n * 2 >= n); abs(n) >= 0; T.eq(-n, n); T.maximum(-n, n); (n * 2) // 2
(n + n) % 3; -n % 3; (-n) // 2; -(n // 2); T.cast(T.cast(n, 'int8'), 'float64'); n ** 2; n ** 3
n ** 2 / n; T.sum(-n, dtype='float64'); T.sum(n * 2, acc_dtype='float64'); T.max(n * 2)
T.cumsum(-n); T.sqr(n)
x - T.inc_subtensor(T.zeros_like(x)[:2], n[:2]); -T.set_subtensor(T.zeros_like(x)[1:], n[1:])
T.set_subtensor(x[:2], -n[:2]) * 2; T.inc_subtensor((n * 1.0)[:2], -n[:2]); (-n)[::-1] * 0.5"""
FORMS = [form.strip() for form in FORMS.replace("\n", ";").split(";") if form.strip()]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("form", FORMS)
def test_ends_of_a_dtype(form, dtype):
    n, x = T.TensorType(dtype, (False,))("n"), T.dvector("x")
    result = eval(form, {"T": T, "np": np, "n": n, "x": x})
    info = np.iinfo(dtype)
    least = info.min + (1 if "/ (n + 1)" in form or "n - 1)" in form else 0)
    numbers = np.array([least, info.max - 1, info.max // 2 + 1, 5], dtype)
    floats = np.array([0.5, -2.0, 1.0, 3.0])
    found = {
        mode: function([n, x], result, mode=made, on_unused_input="ignore")(numbers, floats)
        for mode, made in {
            "none": Mode("py", None), "fast_compile": "FAST_COMPILE", "fast_run": "FAST_RUN",
        }.items()
    }  # fmt: skip
    expected = found.pop("none")
    for value in found.values():
        assert value.dtype == expected.dtype
        rtol = 1e-6 if value.dtype == "float32" else 1e-13
        np.testing.assert_allclose(value, expected, rtol=rtol)
