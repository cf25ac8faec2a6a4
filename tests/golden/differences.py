"""Where opwise gives another result than Theano 1.0.5 on purpose: why, and what it gives instead.

A case is named by its program, a colon and its path in the program's results. The expected result
is the recorded form, or a function that makes the expected array from the recorded one.
"""

from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Difference:
    """One reason, and the expected result of every case that it changes."""

    reason: str
    expected: dict


def _with_values(values, array):
    for position, value in values.items():
        array.flat[position] = value
    return array


def values(by_position):
    """Expect the recorded array with other values at these positions."""
    return partial(_with_values, by_position)


def dtype(name):
    """Expect the recorded values in another dtype."""
    return lambda array: array.astype(name)


NAN = float("nan")

# 1 / (x log(2)) at -2, -1, 0, 1, 2 and 30.
LOG2_SLOPES = (
    "float64 (6): -0.7213475204444817 -1.4426950408889634 inf"
    " 1.4426950408889634 0.7213475204444817 0.04808983469629878"
)

DIFFERENCES = (
    Difference(
        "sigmoid and softplus are accurate in their tails: no cut to 0, 1 or x",
        {
            "values.nnet.sigmoid:float32/FAST_COMPILE": values({1: 3.8e-44}),
            "values.nnet.sigmoid:float32/FAST_RUN": values({1: 3.8e-44}),
            "values.nnet.sigmoid:float64/FAST_RUN": values({17: 0.9999999999999065}),
            "values.nnet.softplus:float32/FAST_COMPILE": values({1: 3.8e-44}),
            "values.nnet.softplus:float64/FAST_RUN": values(
                {
                    16: 17.000000041399375,
                    17: 30.000000000000092,
                }
            ),
            "numerics.sigmoid_limits:float64 sigmoid low/FAST_COMPILE": values(
                {
                    2: 1.216780750623423e-308,
                    3: 3.7200759760208356e-44,
                    4: 6.054601895401186e-39,
                    5: 4.248354255291589e-18,
                }
            ),
            "numerics.sigmoid_limits:float64 sigmoid high/FAST_RUN": values(
                {
                    2: 0.9999999979388463,
                    3: 0.9999999999999065,
                }
            ),
            "numerics.sigmoid_limits:float64 softplus low/FAST_COMPILE": values(
                {
                    2: 1.216780750623423e-308,
                    3: 3.720075976020836e-44,
                    4: 6.054601895401186e-39,
                    5: 4.248354255291589e-18,
                }
            ),
            "numerics.sigmoid_limits:float64 softplus high/FAST_RUN": values(
                {
                    0: 17.000000041399375,
                    1: 19.000000005602796,
                    2: 20.000000002061153,
                    3: 30.000000000000092,
                }
            ),
            "numerics.sigmoid_limits:float32 sigmoid low/FAST_COMPILE": values(
                {
                    3: 3.8e-44,
                    4: 6.054601e-39,
                    5: 4.248354e-18,
                }
            ),
            "numerics.sigmoid_limits:float32 sigmoid low/FAST_RUN": values({3: 3.8e-44}),
            "numerics.stable_forms:log(sigmoid(x))/FAST_COMPILE": values({1: -40.0}),
            "numerics.stable_forms:-log(sigmoid(-x))/FAST_COMPILE": values({7: 40.0}),
            "numerics.stable_forms:sigmoid times exp/FAST_COMPILE": values({1: 1.0}),
            "numerics.sigmoid_limits:float32 softplus low/FAST_COMPILE": values(
                {
                    3: 3.8e-44,
                    4: 6.054601e-39,
                    5: 4.248354e-18,
                }
            ),
        },
    ),
    Difference(
        "// and % of integers by zero give numpy's result instead of ZeroDivisionError",
        {
            "values.integer_division_by_zero:int8 // 0/FAST_RUN": "int8 (3): 0 0 3",
            "values.integer_division_by_zero:int8 % 0/FAST_RUN": "int8 (3): 0 0 1",
            "values.integer_division_by_zero:int32 // 0/FAST_RUN": "int32 (3): 0 0 3",
            "values.integer_division_by_zero:int32 % 0/FAST_RUN": "int32 (3): 0 0 1",
            "values.integer_division_by_zero:int64 // 0/FAST_RUN": "int64 (3): 0 0 3",
            "values.integer_division_by_zero:int64 % 0/FAST_RUN": "int64 (3): 0 0 1",
            "values.integer_division_by_zero:uint8 // 0/FAST_RUN": "uint8 (3): 0 0 3",
            "values.integer_division_by_zero:uint8 % 0/FAST_RUN": "uint8 (3): 0 0 1",
        },
    ),
    Difference(
        "FAST_COMPILE runs the same kernels as FAST_RUN, where integer powers are truncated",
        {
            "values.negative_powers_of_integers:int8 x ** y/FAST_COMPILE": "int8 (4): 1 0 -1 -27",
            "values.negative_powers_of_integers:int8 x ** -1/FAST_COMPILE": "int8 (4): 1 0 -1 0",
            "values.negative_powers_of_integers:int8 2 ** y/FAST_COMPILE": "int8 (4): 0 0 0 8",
            "values.negative_powers_of_integers:int32 x ** y/FAST_COMPILE": "int32 (4): 1 0 -1 -27",
            "values.negative_powers_of_integers:int32 x ** -1/FAST_COMPILE": "int32 (4): 1 0 -1 0",
            "values.negative_powers_of_integers:int32 2 ** y/FAST_COMPILE": "int32 (4): 0 0 0 8",
            "values.negative_powers_of_integers:int64 x ** y/FAST_COMPILE": "int64 (4): 1 0 -1 -27",
            "values.negative_powers_of_integers:int64 x ** -1/FAST_COMPILE": "int64 (4): 1 0 -1 0",
            "values.negative_powers_of_integers:int64 2 ** y/FAST_COMPILE": "int64 (4): 0 0 0 8",
        },
    ),
    Difference(
        "results have the dtype and the precision of their variable in every mode",
        {
            "values.reductions.dtypes:cumsum int8/FAST_COMPILE": "int8 (3): 1 3 6",
            "values.nnet.softplus:bool/FAST_COMPILE": "float32 (2): 0.6931472 1.3132617",
            "values.nnet.softplus:bool/FAST_RUN": "float32 (2): 0.6931472 1.3132617",
        },
    ),
    Difference(
        "not a number stays not a number",
        {
            "values.nnet.ultra_fast_sigmoid:float32/FAST_COMPILE": values({14: NAN}),
            "values.nnet.ultra_fast_sigmoid:float32/FAST_RUN": values({14: NAN}),
            "values.nnet.ultra_fast_sigmoid:float64/FAST_COMPILE": values({20: NAN}),
            "values.nnet.ultra_fast_sigmoid:float64/FAST_RUN": values({20: NAN}),
        },
    ),
    Difference(
        "gradients have the dtype of their variable",
        {
            "gradients.binary.int_div:float32 float32/FAST_COMPILE/0": dtype("float32"),
            "gradients.binary.int_div:float32 float32/FAST_COMPILE/1": dtype("float32"),
            "gradients.binary.int_div:float32 float32/FAST_RUN/0": dtype("float32"),
            "gradients.binary.int_div:float32 float32/FAST_RUN/1": dtype("float32"),
            "gradients.binary.switch:float32 float32/FAST_COMPILE/0": dtype("float32"),
            "gradients.binary.switch:float32 float32/FAST_RUN/0": dtype("float32"),
            "gradients.unary.log10:float32/FAST_COMPILE": dtype("float32"),
            "gradients.unary.log10:float32/FAST_RUN": dtype("float32"),
            "gradients.unary.trunc:float32/FAST_COMPILE": dtype("float32"),
            "gradients.unary.trunc:float32/FAST_RUN": dtype("float32"),
            "gradients.kinks:cast to float32/FAST_COMPILE": dtype("float64"),
            "gradients.kinks:cast to float32/FAST_RUN": dtype("float64"),
        },
    ),
    Difference(
        "the gradient of log2 of integers is that of their values as floats",
        {
            "gradients.unary.log2:int32/FAST_COMPILE": LOG2_SLOPES,
            "gradients.unary.log2:int32/FAST_RUN": LOG2_SLOPES,
        },
    ),
    Difference(
        "both modes raise the class that FAST_RUN raises in Theano",
        {
            "broadcast.refused_at_run_time:batched_dot/FAST_COMPILE": (
                "!! ValueError: x.shape is (2, 1, 2), y.shape is (3, 2, 2)"
            ),
            "values.nnet.categorical_crossentropy:label out of range/FAST_COMPILE": (
                "!! ValueError: y_i value out of bounds"
            ),
        },
    ),
    Difference(
        "a call that fails leaves every shared variable unchanged",
        {"failures.state_after:FAST_RUN/1": "int64 (): 2"},
    ),
    Difference(
        "accepted, where Theano refuses",
        {
            "broadcast.variable_protocol:x @ x": 0,
            "broadcast.shaping:reshape join": "TFF",
            "broadcast.rebroadcast:as_tensor_variable ndim": "TF",
            "values.shapes:reshape by another": {
                "FAST_COMPILE": "float64 (1, 3): 3.0 1.0 2.0",
                "FAST_RUN": "float64 (1, 3): 3.0 1.0 2.0",
            },
        },
    ),
)
