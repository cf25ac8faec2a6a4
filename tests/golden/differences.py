"""Where opwise gives another result than Theano 1.0.5 on purpose: why, and what it gives instead.

A case is named by its program, or by that, a colon and its path in the program's results. The
expected result is the recorded form, or a function that makes the expected array, text or list of
names from the recorded one. A case may have several reasons.
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


def names(without=(), but_with=()):
    """Expect the recorded names of ops without some, but with others."""
    return partial(_other_names, without, but_with)


def _other_names(without, but_with, recorded):
    found = list(recorded)
    for name in without:
        found.remove(name)
    return sorted([*found, *but_with])


def text(old, new):
    """Expect the recorded text with one part of it replaced."""
    return partial(_other_text, old, new)


def _other_text(old, new, recorded):
    assert recorded.count(old) == 1, (old, recorded)
    return recorded.replace(old, new)


NAN = float("nan")

# What a case gives that needs a module or a function which opwise does not have yet.

# The text about a failing product that two sums read.
ONE_READER = "[[Elemwise{Add}[(0, 1)](TensorConstant{(1, 1) of 1.0}, Dot22.0)]]"
BOTH_READERS = (
    "[[Elemwise{add,no_inplace}(TensorConstant{(1, 1) of 1.0}, Dot22.0),"
    " Elemwise{Mul}[(0, 1)](TensorConstant{(1, 1) of 2.0}, Dot22.0)]]"
)

# The graph of a layer whose sum takes in the tanh.
FUSED_LAYER = """\
Elemwise{Mul}[(0, 1)] [id A] ''   3
 |TensorConstant{(1,) of 2.0} [id B]
 |MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{tanh((i0 + i1))}} [id C] ''   2
   |Dot22 [id D] ''   1
   | |x [id E]
   | |y [id F]
   |InplaceDimShuffle{x,0} [id G] ''   0
     |v [id H]
"""
FUSED_LAYER_WITH_TYPES = """\
Elemwise{Mul}[(0, 1)] [id A] <TensorType(float64, vector)> ''   3
 |TensorConstant{(1,) of 2.0} [id B] <TensorType(float64, (True,))>
 |MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{tanh((i0 + i1))}} [id C] \
<TensorType(float64, vector)> ''   2
   |Dot22 [id D] <TensorType(float64, matrix)> ''   1
   | |x [id E] <TensorType(float64, matrix)>
   | |y [id F] <TensorType(float64, matrix)>
   |InplaceDimShuffle{x,0} [id G] <TensorType(float64, row)> ''   0
     |v [id H] <TensorType(float64, vector)>
"""

# 1 / (x log(2)) at -2, -1, 0, 1, 2 and 30.
LOG2_SLOPES = (
    "float64 (6): -0.7213475204444817 -1.4426950408889634 inf"
    " 1.4426950408889634 0.7213475204444817 0.04808983469629878"
)

DIFFERENCES = (
    Difference(
        "A range of bool is one of int64 under every cast policy: numpy 1.19 has no range of bool, "
        "and Theano asks it under the policy numpy+floatX.",
        {
            f"dtypes.cast_policy.products.{floatx}:arange bool": text("!TypeError", "int64")
            for floatx in ("float16", "float32", "float64")
        },
    ),
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
        "assignment to an item says what to write instead, as the class that Python itself raises",
        {"broadcast.variable_protocol:x[0] = 1": "!! TypeError: does not support item assignment"},
    ),
    Difference(
        "accepted, where Theano refuses",
        {
            "broadcast.variable_protocol:x @ x": 0,
            "broadcast.dimshuffle:v[None]": "TF",
            "indexing.refused_while_building:v[None]": "TensorType(float64, row)",
            "broadcast.shaping:reshape join": "TFF",
            "broadcast.rebroadcast:as_tensor_variable ndim": "TF",
            "values.shapes:reshape by another": {
                "FAST_COMPILE": "float64 (1, 3): 3.0 1.0 2.0",
                "FAST_RUN": "float64 (1, 3): 3.0 1.0 2.0",
            },
        },
    ),
    Difference(
        "a result is never given out in the memory of an argument or of a shared variable",
        {
            "names.copies:mutable input": names(but_with=["DeepCopyOp"]),
            "names.copies:mutable input, two steps": names(but_with=["DeepCopyOp"]),
            "names.copies:old value and update": names(but_with=["DeepCopyOp"]),
            "names.copies:view of shared and update": names(but_with=["DeepCopyOp"]),
        },
    ),
    Difference(
        "batched products of vectors are those of matrices of one row or column, which run in C",
        {
            "names.products:batched_dot 2/FAST_RUN": names(
                but_with=[
                    "InplaceDimShuffle{0,1,x}",
                    "InplaceDimShuffle{0,x,1}",
                    "InplaceDimShuffle{0}",
                ]
            ),
        },
    ),
    Difference(
        "a product with a vector stays one dot, run by C, with no DimShuffles around a Dot22",
        {
            "names.products:dot of 1-d product/FAST_COMPILE": names(
                without=["Dot22", "InplaceDimShuffle{0,x}", "InplaceDimShuffle{0}"],
                but_with=["dot"],
            ),
            "names.products:matrix vector/FAST_COMPILE": names(
                without=["Dot22", "InplaceDimShuffle{0,x}", "InplaceDimShuffle{0}"],
                but_with=["dot"],
            ),
            "names.products:vector matrix/FAST_COMPILE": names(
                without=["Dot22", "InplaceDimShuffle{1}", "InplaceDimShuffle{x,0}"],
                but_with=["dot"],
            ),
            "names.products:vector vector/FAST_COMPILE": names(
                without=[
                    "Dot22",
                    "InplaceDimShuffle{0,x}",
                    "InplaceDimShuffle{x,0}",
                    "InplaceDimShuffle{}",
                ],
                but_with=["dot"],
            ),
            "names.products:vector vector/FAST_RUN": names(
                without=[
                    "AllocEmpty{dtype='float64'}",
                    "CGemv{inplace}",
                    "InplaceDimShuffle{x,0}",
                    "InplaceDimShuffle{}",
                ],
                but_with=["dot"],
            ),
            "names.products:vector x.T/FAST_COMPILE": names(
                without=["Dot22", "InplaceDimShuffle{1}", "InplaceDimShuffle{x,0}"],
                but_with=["dot"],
            ),
            "names.products:w + matrix vector/FAST_COMPILE": names(
                without=["Dot22", "InplaceDimShuffle{0,x}", "InplaceDimShuffle{0}"],
                but_with=["dot"],
            ),
            "names.products:w - a * matrix vector/FAST_COMPILE": names(
                without=["Dot22", "InplaceDimShuffle{0,x}", "InplaceDimShuffle{0}"],
                but_with=["dot"],
            ),
            "names.training_steps:logistic regression/FAST_COMPILE": names(
                without=[
                    "Dot22",
                    "Dot22",
                    "InplaceDimShuffle{0,x}",
                    "InplaceDimShuffle{0,x}",
                    "InplaceDimShuffle{0}",
                    "InplaceDimShuffle{0}",
                ],
                but_with=["dot", "dot"],
            ),
            "names.training_steps:logistic regression/o1": names(
                without=[
                    "Dot22",
                    "Dot22",
                    "InplaceDimShuffle{0,x}",
                    "InplaceDimShuffle{0,x}",
                    "InplaceDimShuffle{0}",
                    "InplaceDimShuffle{0}",
                ],
                but_with=["dot", "dot"],
            ),
            "names.training_steps:logistic regression/o2": names(
                without=[
                    "Dot22",
                    "Dot22",
                    "InplaceDimShuffle{0,x}",
                    "InplaceDimShuffle{0,x}",
                    "InplaceDimShuffle{0}",
                    "InplaceDimShuffle{0}",
                ],
                but_with=["dot", "dot"],
            ),
            "names.updates:gemv/FAST_COMPILE": names(
                without=["Dot22", "InplaceDimShuffle{0,x}", "InplaceDimShuffle{0}"],
                but_with=["dot"],
            ),
        },
    ),
    Difference(
        "an outer product is an elementwise multiplication: one pass over memory, and it can fuse",
        {
            "names.products:outer/FAST_RUN": names(
                without=["Alloc", "CGer{destructive}", "Shape_i{0}", "Shape_i{0}"],
                but_with=[
                    "Elemwise{mul,no_inplace}",
                    "InplaceDimShuffle{0,x}",
                    "InplaceDimShuffle{x,0}",
                ],
            ),
        },
    ),
    Difference(
        "no lengths that nothing reads, and no DimShuffles or slices that change nothing",
        {
            "names.products:dot 3-d/FAST_COMPILE": names(
                without=[
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "InplaceDimShuffle{0,1,2}",
                    "InplaceDimShuffle{0,1}",
                    "Join",
                    "Reshape{2}",
                    "Subtensor{int64:int64:}",
                    "Subtensor{int64:int64:}",
                    "Subtensor{int64}",
                ]
            ),
            "names.products:tensordot/FAST_COMPILE": names(
                without=[
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "InplaceDimShuffle{0,1,2}",
                    "InplaceDimShuffle{0,1}",
                    "Join",
                    "Reshape{2}",
                    "Subtensor{int64:int64:}",
                    "Subtensor{int64:int64:}",
                    "Subtensor{int64}",
                ]
            ),
            "names.shapes:choose/FAST_COMPILE": names(without=["InplaceDimShuffle{0}"]),
            "names.shapes:flatten 2/FAST_COMPILE": names(
                without=["Subtensor{:int64:}"],
                # see below: the last length is a product
                but_with=["Elemwise{mul,no_inplace}", "Subtensor{int64}", "Subtensor{int64}"],
            ),
            "names.shapes:tile/FAST_COMPILE": names(without=["InplaceDimShuffle{0,1}"]),
        },
    ),
    Difference(
        "a variable in place of the list of inputs is taken as a list of one, with a warning: the "
        "program gets a function",
        {
            "functions.wrong_calls:inputs not a list": "!! TypeError: a golden program returned "
            "<class 'opwise.compile.executable.Function'>, which has no recorded form",
        },
    ),
    Difference(
        "flatten multiplies the lengths that it merges: -1 cannot stand for them beside a length 0",
        {
            "names.shapes:flatten 2/FAST_RUN": names(
                but_with=["Elemwise{Mul}[(0, 0)]", "Shape_i{1}", "Shape_i{2}"]
            ),
        },
    ),
    Difference(
        "gradients that have a limit are numbers: of std and norm at 0, of x ** y where "
        "y is 0, of elu where exp overflows, of the softmax of other axes than rows",
        {
            "gradients.kinks:norm 2/FAST_COMPILE": values({0: 0.0, 1: 0.0}),
            "gradients.kinks:norm 2/FAST_RUN": values({0: 0.0, 1: 0.0}),
            "gradients.kinks:std of equals/FAST_COMPILE": values({0: 0.0, 1: 0.0}),
            "gradients.kinks:std of equals/FAST_RUN": values({0: 0.0, 1: 0.0}),
            "gradients.kinks:x ** 0/FAST_COMPILE": values({0: 0.0}),
            "gradients.kinks:x ** x/FAST_COMPILE": values({0: 0.0}),
            "gradients.kinks:x ** x/FAST_RUN": values({0: 0.0}),
            "names.nnet:elu/FAST_COMPILE": names(but_with=["Elemwise{minimum,no_inplace}"]),
            "names.nnet:elu/FAST_RUN": names(
                without=["Elemwise{Composite{Switch(GT(i0, i1), i0, expm1(i0))}}"],
                but_with=["Elemwise{Composite{Switch(GT(i0, i1), i0, expm1(minimum(i0, i2)))}}"],
            ),
            "names.nnet:selu/FAST_COMPILE": names(but_with=["Elemwise{minimum,no_inplace}"]),
            "names.nnet:selu/FAST_RUN": names(
                without=["Elemwise{Composite{(i0 * Switch(GT(i1, i2), i1, (i3 * expm1(i1))))}}"],
                but_with=[
                    "Elemwise{Composite{(i0 * Switch(GT(i1, i2), i1, "
                    "(i3 * expm1(minimum(i1, i4)))))}}"
                ],
            ),
            "names.reductions:norm/raw": names(
                ["Elemwise{pow,no_inplace}"], ["RootOfSum{power=0.5}"]
            ),
            "names.reductions:norm 1/raw": names(
                ["Elemwise{pow,no_inplace}"], ["RootOfSum{power=1.0}"]
            ),
            "names.reductions:std/raw": names(
                ["Elemwise{sqrt,no_inplace}"], ["RootOfSum{power=0.5}"]
            ),
            "numerics.stable_forms:exp(x) / sum/FAST_RUN": values({8: 1.0}),
        },
    ),
    Difference(
        "x ** -2 is the square of the inverse: the inverse of the square is 0 where that overflows",
        {
            "names.arithmetic:x ** -2/FAST_RUN": names(
                without=["Elemwise{Composite{inv(sqr(i0))}}"],
                but_with=["Elemwise{Composite{sqr(inv(i0))}}"],
            ),
        },
    ),
    Difference(
        "NaN is not equal to itself, in any mode",
        {
            "names.elemwise:eq of itself/FAST_COMPILE": names(
                without=["Elemwise{second,no_inplace}"], but_with=["Elemwise{eq,no_inplace}"]
            ),
            "names.elemwise:eq of itself/FAST_RUN": names(
                without=["Alloc", "Shape_i{0}", "Shape_i{1}"],
                but_with=["Elemwise{eq,no_inplace}"],
            ),
            "numerics.cancellations:eq(x, x)/FAST_COMPILE": values({6: False}),
            "numerics.cancellations:eq(x, x)/FAST_RUN": values({6: False}),
            "numerics.cancellations:le(x, x)/FAST_RUN": values({6: False}),
            "numerics.cancellations:neq(x, x)/FAST_COMPILE": values({6: True}),
            "numerics.cancellations:neq(x, x)/FAST_RUN": values({6: True}),
        },
    ),
    Difference(
        "mean, var and size divide by or multiply the lengths themselves, without a vector of them",
        {
            "names.elemwise:specialised mean of squares/FAST_RUN": names(
                without=[
                    "Elemwise{Cast{float64}}",
                    "Elemwise{Composite{((i0 / i1) / i2)}}[(0, 0)]",
                    "MakeVector{dtype='int64'}",
                    "Subtensor{int64}",
                    "Subtensor{int64}",
                ],
                but_with=[
                    "Elemwise{Composite{((i0 / Cast{float64}(i1)) / Cast{float64}(i2))}}[(0, 0)]"
                ],
            ),
            "names.nnet:grad of binary crossentropy/FAST_RUN": names(
                without=[
                    "Elemwise{Cast{float64}}",
                    (
                        "Elemwise{Composite{((i0 * i1 * (i2 - scalar_sigmoid(i3))) - (i0 * (i2 "
                        "- i1) * scalar_sigmoid(i3)))}}"
                    ),
                    "Elemwise{Composite{(i0 / (i1 * i2))}}",
                    "MakeVector{dtype='int64'}",
                    "Subtensor{int64}",
                    "Subtensor{int64}",
                ],
                but_with=[
                    (
                        "Elemwise{Composite{(((i0 * i1 * (i2 - scalar_sigmoid(i3))) / i4) + ((("
                        "i2 - i1) * scalar_sigmoid(i3)) / i4))}}"
                    ),
                    "Elemwise{Composite{(Cast{float64}(i0) * Cast{float64}(i1))}}",
                ],
            ),
            "names.reductions:mean/FAST_RUN": names(
                without=[
                    "Elemwise{Cast{float64}}",
                    "Elemwise{Composite{((i0 / i1) / i2)}}[(0, 0)]",
                    "MakeVector{dtype='int64'}",
                    "Subtensor{int64}",
                    "Subtensor{int64}",
                ],
                but_with=[
                    "Elemwise{Composite{((i0 / Cast{float64}(i1)) / Cast{float64}(i2))}}[(0, 0)]"
                ],
            ),
            "names.reductions:var/FAST_RUN": names(
                without=[
                    "Elemwise{Cast{float64}}",
                    "Elemwise{Composite{((i0 / i1) / i2)}}[(0, 0)]",
                    "Elemwise{Composite{((i0 / i1) / i2)}}[(0, 0)]",
                    "MakeVector{dtype='int64'}",
                    "Subtensor{int64}",
                    "Subtensor{int64}",
                ],
                but_with=[
                    "Elemwise{Composite{((i0 / Cast{float64}(i1)) / Cast{float64}(i2))}}[(0, 0)]",
                    "Elemwise{Composite{((i0 / Cast{float64}(i1)) / Cast{float64}(i2))}}[(0, 0)]",
                ],
            ),
            "names.shapes:size/FAST_RUN": names(
                without=[
                    "MakeVector{dtype='int64'}",
                    "Prod{axis=None, dtype='int64', acc_dtype='int64'}",
                ],
                but_with=["Elemwise{Mul}[(0, 0)]"],
            ),
        },
    ),
    Difference(
        "a number is cast before it is broadcast",
        {
            "names.reductions:std/FAST_RUN": names(but_with=["Elemwise{Cast{float64}}"]),
        },
    ),
    Difference(
        "an index into a slice, and a slice of one, become one index or slice of constants",
        {
            "names.indexing:v[1:][:-1]/FAST_RUN": names(
                without=[
                    (
                        "Elemwise{Composite{Switch(LT(Composite{(i0 + (i1 - i2))}(i0, i1, i2), "
                        "i3), i3, Composite{(i0 + (i1 - i2))}(i0, i1, i2))}}"
                    ),
                    "Elemwise{Composite{Switch(LT(i0, i1), i0, i1)}}",
                    "Elemwise{Composite{Switch(i0, i1, minimum((i2 + i3), i4))}}[(0, 2)]",
                    "Elemwise{Composite{Switch(i0, i1, minimum(i2, i3))}}",
                    "Elemwise{le,no_inplace}",
                    "ScalarFromTensor",
                    "ScalarFromTensor",
                    "Shape_i{0}",
                    "Subtensor{int64:int64:int8}",
                ],
                but_with=["Subtensor{int64:int64:}"],
            ),
            "names.indexing:x[1:][0]/FAST_RUN": names(
                without=[
                    (
                        "Elemwise{Composite{Switch(GE(i0, (i1 - Composite{Switch(LT(i0, i1), i0"
                        ", i1)}(i2, i1))), (i2 + i1), Switch(LE((i1 - Composite{Switch(LT(i0, i"
                        "1), i0, i1)}(i2, i1)), i3), (i2 + i1), Composite{Switch(LT(i0, i1), i0"
                        ", i1)}(i2, i1)))}}[(0, 1)]"
                    ),
                    "ScalarFromTensor",
                    "Shape_i{0}",
                ]
            ),
        },
    ),
    Difference(
        "an even power needs no size, which has no second derivative at 0",
        {
            "names.reductions:norm/FAST_COMPILE": names(without=["Elemwise{abs_,no_inplace}"]),
        },
    ),
    Difference(
        "work in place is decided along one order of the graph, which finds other places",
        {
            "names.shapes:repeat/FAST_RUN": names(
                without=["Elemwise{Mul}[(0, 1)]"], but_with=["Elemwise{mul,no_inplace}"]
            ),
            "names.shapes:repeat axis/FAST_RUN": names(
                without=["Elemwise{Mul}[(0, 1)]"], but_with=["Elemwise{mul,no_inplace}"]
            ),
            "names.shapes:tile/FAST_RUN": names(
                without=["Elemwise{Mul}[(0, 1)]"], but_with=["Elemwise{mul,no_inplace}"]
            ),
            "names.shapes:tile matrix/FAST_RUN": names(
                without=["Elemwise{Mul}[(0, 1)]"], but_with=["Elemwise{mul,no_inplace}"]
            ),
            "names.shapes:to_one_hot/FAST_RUN": names(
                without=["AdvancedIncSubtensor{inplace=False,  set_instead_of_inc=True}"],
                but_with=["AdvancedIncSubtensor{inplace=True,  set_instead_of_inc=True}"],
            ),
            "names.training_steps:multilayer perceptron/without fusion": names(
                without=["Elemwise{Sqr}[(0, 0)]"], but_with=["Elemwise{sqr}"]
            ),
            "names.training_steps:regression layer/FAST_RUN": names(
                without=["Elemwise{Composite{(i0 - (i1 * i2))}}"],
                but_with=["Elemwise{Composite{(i0 - (i1 * i2))}}[(0, 0)]"],
            ),
            "names.training_steps:regression layer/without fusion": names(
                without=[
                    "Elemwise{Mul}[(0, 2)]",
                    "Elemwise{Sqr}[(0, 0)]",
                    "Elemwise{Sqr}[(0, 0)]",
                    "Elemwise{Sub}[(0, 1)]",
                ],
                but_with=[
                    "Elemwise{Mul}[(0, 0)]",
                    "Elemwise{Sub}[(0, 0)]",
                    "Elemwise{sqr,no_inplace}",
                    "Elemwise{sqr,no_inplace}",
                ],
            ),
        },
    ),
    Difference(
        "gradients read outputs instead of computing them again, and hold no copies",
        {
            "names.nnet:grad of binary crossentropy/FAST_COMPILE": names(
                without=["Elemwise{scalar_sigmoid}"], but_with=["sigmoid"]
            ),
            "names.nnet:grad of sigmoid/FAST_COMPILE": names(
                without=["Elemwise{scalar_sigmoid}"], but_with=["sigmoid"]
            ),
            "names.nnet:grad of tanh/FAST_COMPILE": names(
                without=["Elemwise{tanh}"], but_with=["Elemwise{tanh,no_inplace}"]
            ),
            "names.training_steps:logistic regression/merge": names(without=["Elemwise{identity}"]),
            "names.training_steps:logistic regression/no optimizer": names(
                without=["Elemwise{exp}", "Elemwise{identity}"]
            ),
            "names.training_steps:multilayer perceptron/merge": names(
                without=["Elemwise{identity}", "Elemwise{identity}"]
            ),
            "names.training_steps:multilayer perceptron/no optimizer": names(
                without=["Elemwise{identity}", "Elemwise{identity}", "Elemwise{tanh}"]
            ),
            "names.training_steps:regression layer/merge": names(without=["Elemwise{identity}"]),
            "names.training_steps:regression layer/no optimizer": names(
                without=[
                    "Elemwise{identity}",
                    "Elemwise{scalar_sigmoid}",
                    "Elemwise{scalar_sigmoid}",
                ]
            ),
        },
    ),
    Difference(
        "a softmax and its crossentropy are computed once, with an allocated bias of zeros",
        {
            "names.nnet:-mean log p[arange, i]/FAST_COMPILE": names(
                without=["Elemwise{second,no_inplace}", "Subtensor{int64}"],
                but_with=["Alloc", "Shape_i{1}"],
            ),
            "names.nnet:crossentropy 1hot/FAST_COMPILE": names(
                without=["Elemwise{second,no_inplace}", "InplaceDimShuffle{x}", "Subtensor{int64}"],
                but_with=["Alloc", "Shape_i{1}"],
            ),
            "names.nnet:crossentropy 1hot/FAST_RUN": names(
                without=["Elemwise{second,no_inplace}", "Subtensor{int64}"],
                but_with=["Alloc", "Shape_i{1}"],
            ),
            "names.nnet:crossentropy mean/FAST_COMPILE": names(
                without=["Elemwise{second,no_inplace}", "InplaceDimShuffle{x}", "Subtensor{int64}"],
                but_with=["Alloc", "Shape_i{1}"],
            ),
            "names.nnet:crossentropy mean/FAST_RUN": names(
                without=["Elemwise{second,no_inplace}", "Subtensor{int64}"],
                but_with=["Alloc", "Shape_i{1}"],
            ),
            "names.nnet:grad of -mean log p[arange, i]/FAST_COMPILE": names(
                without=["Elemwise{second,no_inplace}", "Softmax", "Subtensor{int64}"],
                but_with=["Alloc", "Shape_i{1}"],
            ),
            "names.nnet:grad of crossentropy/FAST_COMPILE": names(
                without=["Elemwise{second,no_inplace}", "InplaceDimShuffle{x}", "Subtensor{int64}"],
                but_with=["Alloc", "Shape_i{1}"],
            ),
            "names.training_steps:multilayer perceptron/FAST_COMPILE": names(
                without=["CrossentropySoftmaxArgmax1HotWithBias"]
            ),
            "names.training_steps:multilayer perceptron/o1": names(
                without=["CrossentropySoftmaxArgmax1HotWithBias"]
            ),
            "names.training_steps:multilayer perceptron/o2": names(
                without=["CrossentropySoftmaxArgmax1HotWithBias"]
            ),
        },
    ),
    Difference(
        "sigmoid_binary_crossentropy is made of plain operations instead of an OpFromGraph",
        {
            "names.nnet:sigmoid_binary_crossentropy/FAST_COMPILE": names(
                without=["Elemwise{abs_,no_inplace}", "Elemwise{gt,no_inplace}"],
                but_with=["Elemwise{mul,no_inplace}", "softplus"],
            ),
            "names.nnet:sigmoid_binary_crossentropy/FAST_RUN": names(
                without=[
                    (
                        "Elemwise{Composite{(scalar_softplus((-Abs(i0))) + (i0 * (GT(i0, i1) - "
                        "i2)))}}"
                    )
                ],
                but_with=[
                    (
                        "Elemwise{Composite{((i0 * scalar_softplus((-i1))) + ((i2 - i0) * scala"
                        "r_softplus(i1)))}}"
                    )
                ],
            ),
            "names.nnet:sigmoid_binary_crossentropy/raw": names(
                without=["sigmoid_binary_crossentropy{inline=True}"],
                but_with=["Elemwise{add,no_inplace}"],
            ),
        },
    ),
    Difference(
        "the stable forms of log(erfc), log of a sum of exp and 1 - sigmoid hold everywhere",
        {
            "names.elemwise:log of erfc/FAST_RUN": names(
                without=[
                    (
                        "Elemwise{Composite{Switch(LT(i0, i1), log(erfc(i0)), ((((-sqr(i0)) - l"
                        "og(i0)) - i2) + log((((i3 - inv((i4 * sqr(i0)))) + (i5 / (i6 * Composi"
                        "te{sqr(sqr(i0))}(i0)))) - (i7 / (i8 * Composite{(sqr(sqr(i0)) * sqr(i0"
                        "))}(i0)))))))}}"
                    )
                ],
                but_with=[
                    (
                        "Elemwise{Composite{Switch(LT(i0, i1), log(erfc(minimum(i0, i2))), (log"
                        "1p(((i3 + ((i4 + ((i5 + (i6 * inv(sqr(maximum(i0, i2))))) * inv(sqr(ma"
                        "ximum(i0, i2))))) * inv(sqr(maximum(i0, i2))))) * inv(sqr(maximum(i0, "
                        "i2))))) - (sqr(maximum(i0, i2)) + log(maximum(i0, i2)) + i7)))}}"
                    )
                ],
            ),
            "names.elemwise:log of sum of exp/FAST_RUN": names(
                but_with=["Elemwise{Composite{Switch(IsInf(i0), i1, i0)}}[(0, 0)]"]
            ),
            "names.nnet:1 - sigmoid/FAST_RUN": names(
                without=["Elemwise{Composite{(i0 - scalar_sigmoid(i1))}}"],
                but_with=["Elemwise{Composite{scalar_sigmoid((-i0))}}"],
            ),
        },
    ),
    Difference(
        "log(1 - p) of a sigmoid p is a softplus in every spelling, which stays finite",
        {
            "names.training_steps:logistic regression/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{(((scalar_sigmoid(i0) * i1 * i2) / i3) - "
                    "((scalar_sigmoid((-i0)) * i1 * i4) / i3))}}",
                    "Elemwise{Composite{scalar_sigmoid((-i0))}}",
                    "Elemwise{gt,no_inplace}",
                ],
            ),
            "names.training_steps:logistic regression/o3": names(
                without=[
                    "Elemwise{Composite{(((scalar_sigmoid(i0) * i1 * i2) / i3) - "
                    "((scalar_sigmoid((-i0)) * i1 * i4) / i3))}}",
                    "Elemwise{Composite{scalar_sigmoid((-i0))}}",
                    "Elemwise{gt,no_inplace}",
                ],
            ),
            "names.training_steps:logistic regression/stabilize": names(
                without=[
                    "Elemwise{log1p,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{neg,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                ],
                but_with=["Elemwise{add,no_inplace}", "softplus"],
            ),
            "names.training_steps:logistic regression/without both": names(
                without=[
                    "Elemwise{log1p,no_inplace}",
                    "Elemwise{neg,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                ],
                but_with=["Elemwise{add,no_inplace}", "softplus"],
            ),
            "names.training_steps:logistic regression/without fusion": names(
                without=[
                    "Elemwise{Log1p}[(0, 0)]",
                    "Elemwise{Neg}[(0, 0)]",
                    "Elemwise{Neg}[(0, 0)]",
                    "Elemwise{Sub}[(0, 0)]",
                    "Elemwise{mul,no_inplace}",
                ],
                but_with=[
                    "Elemwise{Add}[(0, 0)]",
                    "Elemwise{Mul}[(0, 2)]",
                    "Elemwise{ScalarSoftplus}[(0, 0)]",
                    "Elemwise{neg,no_inplace}",
                ],
            ),
            "names.training_steps:logistic regression/without inplace": names(
                without=[
                    "Elemwise{Composite{(((scalar_sigmoid(i0) * i1 * i2) / i3) - "
                    "((scalar_sigmoid((-i0)) * i1 * i4) / i3))}}",
                    "Elemwise{Composite{scalar_sigmoid((-i0))}}",
                    "Elemwise{gt,no_inplace}",
                ],
            ),
        },
    ),
    Difference(
        "a reduction takes in the elementwise Apply that only it reads: no array between them",
        {
            "names.elemwise:log of sum of exp/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{exp((i0 - i1))}}",
                    "Sum{axis=[1], acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{axis=[1], acc_dtype=float64}, Composite{exp((i0 - i1))}}",
                ],
            ),
            "names.elemwise:normalised/FAST_RUN": names(
                without=["Elemwise{sqr,no_inplace}", "Sum{axis=[0], acc_dtype=float64}"],
            ),
            "names.elemwise:specialised mean of squares/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{sqr((i0 - i1))}}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=float64}, Composite{sqr((i0 - i1))}}",
                ],
            ),
            "names.nnet:crossentropy matrix/FAST_RUN": names(
                without=[
                    "Elemwise{Mul}[(0, 1)]",
                    "Sum{axis=[1], acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{axis=[1], acc_dtype=float64}, mul}",
                ],
            ),
            "names.nnet:error rate/FAST_RUN": names(
                without=[
                    "Elemwise{neq,no_inplace}",
                    "Sum{acc_dtype=int64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=int64}, NEQ}",
                ],
            ),
            "names.reductions:all 0/FAST_RUN": names(
                without=[
                    "Elemwise{neq,no_inplace}",
                    "All{0}",
                ],
                but_with=[
                    "MapReduce{All{0}, NEQ}",
                ],
            ),
            "names.reductions:any/FAST_RUN": names(
                without=[
                    "Elemwise{neq,no_inplace}",
                    "Any",
                ],
                but_with=[
                    "MapReduce{Any, NEQ}",
                ],
            ),
            "names.reductions:any 0/FAST_RUN": names(
                without=[
                    "Elemwise{gt,no_inplace}",
                    "Any{0}",
                ],
                but_with=[
                    "MapReduce{Any{0}, GT}",
                ],
            ),
            "names.reductions:norm/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{sqr(Abs(i0))}}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                ],
            ),
            "names.reductions:norm 1/FAST_RUN": names(
                without=[
                    "Elemwise{abs_,no_inplace}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=float64}, Abs}",
                ],
            ),
            "names.reductions:std/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{sqr((i0 - i1))}}",
                    "Sum{axis=[0], acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{sqr((i0 - i1))}}",
                ],
            ),
            "names.reductions:sum of squares/FAST_RUN": names(
                without=[
                    "Elemwise{sqr,no_inplace}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                ],
            ),
            "names.reductions:var/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{sqr((i0 - i1))}}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=float64}, Composite{sqr((i0 - i1))}}",
                ],
            ),
            "names.training_steps:logistic regression/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{((i0 * scalar_softplus(i1)) - (i2 * log1p((-i3))))}}[(0, "
                    "1)]",
                    "Elemwise{sqr,no_inplace}",
                    "Sum{acc_dtype=float64}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=["MapReduce{Sum{acc_dtype=float64}, sqr}"],
            ),
            "names.training_steps:logistic regression/o3": names(
                without=[
                    "Elemwise{Composite{((i0 * scalar_softplus(i1)) - (i2 * log1p((-i3))))}}",
                    "Elemwise{sqr,no_inplace}",
                    "Sum{acc_dtype=float64}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=["MapReduce{Sum{acc_dtype=float64}, sqr}"],
            ),
            "names.training_steps:logistic regression/without inplace": names(
                without=[
                    "Elemwise{Composite{((i0 * scalar_softplus(i1)) - (i2 * log1p((-i3))))}}",
                    "Elemwise{sqr,no_inplace}",
                    "Sum{acc_dtype=float64}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=["MapReduce{Sum{acc_dtype=float64}, sqr}"],
            ),
            "names.training_steps:regression layer/FAST_RUN": names(
                without=[
                    "Elemwise{Mul}[(0, 2)]",
                    "Elemwise{Sqr}[(0, 0)]",
                    "Elemwise{Sqr}[(0, 0)]",
                    "Sum{acc_dtype=float64}",
                    "Sum{acc_dtype=float64}",
                    "Sum{axis=[0], acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                ],
            ),
            "names.training_steps:regression layer/o3": names(
                without=[
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{sqr,no_inplace}",
                    "Elemwise{sqr,no_inplace}",
                    "Sum{acc_dtype=float64}",
                    "Sum{acc_dtype=float64}",
                    "Sum{axis=[0], acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                ],
            ),
            "names.training_steps:regression layer/without inplace": names(
                without=[
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{sqr,no_inplace}",
                    "Elemwise{sqr,no_inplace}",
                    "Sum{acc_dtype=float64}",
                    "Sum{acc_dtype=float64}",
                    "Sum{axis=[0], acc_dtype=float64}",
                ],
                but_with=[
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                ],
            ),
            "printing.debugprint_of_functions:layer": FUSED_LAYER,
            "printing.debugprint_of_functions:layer with types": FUSED_LAYER_WITH_TYPES,
            "printing.pprint:compiled/fused": (
                "Elemwise{Mul}[(0, 1)](TensorConstant{(1,) of 2.0}, MapReduce{Sum{axis=[0], acc_dty"
                "pe=float64}, Composite{tanh((i0 + i1))}}(Dot22(x, y), v))"
            ),
        },
    ),
    Difference(
        "a sum of sums is one sum",
        {
            "names.training_steps:regression layer/stabilize": names(
                without=["Elemwise{add,no_inplace}"]
            ),
        },
    ),
    Difference(
        "a numpy bool is shared as an array of bool",
        {
            "dtypes.conversions.float32:shared np.bool_(True)": "TensorType(bool, scalar)",
            "dtypes.conversions.float64:shared np.bool_(True)": "TensorType(bool, scalar)",
        },
    ),
    Difference(
        "a product that is read twice is computed once, not again for a Dot22Scalar",
        {
            "failures.appended_text:two clients py": text(ONE_READER, BOTH_READERS),
            "failures.appended_text:two clients cvm": text(ONE_READER, BOTH_READERS),
            "failures.appended_text:two clients c|py": text(ONE_READER, BOTH_READERS),
        },
    ),
    Difference(
        "a gather is fused with the loop that reads it, which has no array to overwrite",
        {
            f"failures.appended_text:advanced index {linker}": text(
                "Elemwise{Mul}[(0, 1)](", "Elemwise{mul,no_inplace}("
            )
            for linker in ("py", "cvm", "c|py")
        },
    ),
    Difference(
        "the gradient of tanh reads its output",
        {
            "printing.debugprint:grad of a layer": text(
                "Elemwise{tanh} [id S] ''   \n           |dot [id I] ''   \n",
                "Elemwise{tanh,no_inplace} [id H] ''   \n",
            ),
        },
    ),
    Difference(
        "elementwise Applys that read each other are one loop, whoever else reads their results; a "
        "cheap one is computed in each loop that reads it",
        {
            "names.elemwise:normalised/FAST_RUN": names(
                without=["Elemwise{TrueDiv}[(0, 0)]", "Elemwise{sub,no_inplace}"],
                but_with=[
                    "Elemwise{Composite{((i0 - i1) / i2)}}",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{sqr((i0 - i1))}}",
                ],
            ),
            "names.elemwise:two outputs/FAST_RUN": names(
                without=["Elemwise{exp,no_inplace}", "Elemwise{mul,no_inplace}"],
                but_with=["Elemwise{Composite{t0 = exp(i0); t0, (i1 * t0)}}"],
            ),
            "names.training_steps:logistic regression/FAST_RUN": names(
                without=["Elemwise{Composite{((-i0) - i1)}}[(0, 0)]", "Elemwise{sub,no_inplace}"],
                but_with=[
                    "Elemwise{Composite{(((scalar_sigmoid(((-i0) - i1)) * i2 * i3) / i4) + "
                    "((scalar_sigmoid((-((-i0) - i1))) * (i5 - i3)) / i4))}}",
                    "Elemwise{Composite{GT(scalar_sigmoid((-((-i0) - i1))), i2)}}",
                    "MapReduce{Sum{acc_dtype=float64}, Composite{((i0 * scalar_softplus(((-i1) - "
                    "i2))) - (i3 * (i4 - i0) * scalar_softplus((-((-i1) - i2)))))}}",
                ],
            ),
            "names.training_steps:logistic regression/o2": names(
                without=[
                    "Elemwise{Cast{float64}}",
                    "Elemwise{Composite{((i0 * log(i1)) - (i2 * log(i3)))}}",
                    "Elemwise{Composite{((i0 / i1) + (i2 * i3))}}",
                    "Elemwise{Composite{(-(((-((((second(i0, i1) * i2) / i3) + (-(((-second(i0, "
                    "i1)) * i4) / i5))) * i6)) / (i7 * i7)) * i8))}}",
                    "Elemwise{Composite{exp(((-i0) - i1))}}",
                    "Elemwise{add,no_inplace}",
                    "Elemwise{gt,no_inplace}",
                    "Elemwise{neg,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                    "Elemwise{true_div,no_inplace}",
                    "Elemwise{true_div}",
                ],
                but_with=[
                    "Elemwise{Composite{(-(((-((((second(i0, i1) * (-i2)) / (i3 / (i3 + i4))) + "
                    "(-(((-second(i0, i1)) * (i3 - i2)) / (i3 - (i3 / (i3 + i4)))))) * i3)) / "
                    "((i3 + i4) * (i3 + i4))) * i4))}}",
                    "Elemwise{Composite{t0 = Cast{float64}(i1); ((i0 / t0) + (i2 * i3)), (i4 / "
                    "t0)}}",
                    "Elemwise{Composite{t0 = exp(((-i0) - i1)); t1 = (i2 / (i2 + t0)); t0, GT(t1, "
                    "i3), (((-i4) * log(t1)) - ((i2 - i4) * log((i2 - t1))))}}",
                ],
            ),
            "names.training_steps:logistic regression/o3": names(
                without=["Elemwise{Composite{((-i0) - i1)}}", "Elemwise{sub,no_inplace}"],
                but_with=[
                    "Elemwise{Composite{(((scalar_sigmoid(((-i0) - i1)) * i2 * i3) / i4) + "
                    "((scalar_sigmoid((-((-i0) - i1))) * (i5 - i3)) / i4))}}",
                    "Elemwise{Composite{GT(scalar_sigmoid((-((-i0) - i1))), i2)}}",
                    "MapReduce{Sum{acc_dtype=float64}, Composite{((i0 * scalar_softplus(((-i1) - "
                    "i2))) - (i3 * (i4 - i0) * scalar_softplus((-((-i1) - i2)))))}}",
                ],
            ),
            "names.training_steps:logistic regression/without inplace": names(
                without=["Elemwise{Composite{((-i0) - i1)}}", "Elemwise{sub,no_inplace}"],
                but_with=[
                    "Elemwise{Composite{(((scalar_sigmoid(((-i0) - i1)) * i2 * i3) / i4) + "
                    "((scalar_sigmoid((-((-i0) - i1))) * (i5 - i3)) / i4))}}",
                    "Elemwise{Composite{GT(scalar_sigmoid((-((-i0) - i1))), i2)}}",
                    "MapReduce{Sum{acc_dtype=float64}, Composite{((i0 * scalar_softplus(((-i1) - "
                    "i2))) - (i3 * (i4 - i0) * scalar_softplus((-((-i1) - i2)))))}}",
                ],
            ),
            "names.training_steps:multilayer perceptron/o2": names(
                without=[
                    "Elemwise{Cast{float64}}",
                    "Elemwise{Composite{(-(i0 / i1))}}",
                    "Elemwise{true_div}",
                ],
                but_with=["Elemwise{Composite{t0 = Cast{float64}(i1); (-(i0 / t0)), (i2 / t0)}}"],
            ),
            "names.training_steps:regression layer/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{(i0 - (i1 * i2))}}[(0, 0)]",
                    "Elemwise{Composite{scalar_sigmoid((i0 + i1))}}[(0, 0)]",
                    "Elemwise{Mul}[(0, 1)]",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                ],
                but_with=[
                    "Elemwise{Composite{t0 = (i0 * i1); t0, (i2 - (i3 * t0))}}[(0, 1), (1, 2)]",
                    "Elemwise{Composite{t0 = scalar_sigmoid((i0 + i1)); t1 = (i2 - t0); t0, t1, "
                    "(i3 * t1 * t0 * (i4 - t0))}}[(0, 0)]",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{(i0 * i1 * (i2 - i1))}}",
                ],
            ),
            "names.training_steps:regression layer/o2": names(
                without=[
                    "Elemwise{Composite{((-(second(i0, i1) * i2 * (i3 ** i4))) * i5 * (i6 - i5))}}",
                    "Elemwise{Composite{(i0 + (second(i1, i2) * i3) + (second(i1, i2) * i3))}}",
                    "Elemwise{Composite{(i0 - (i1 * i2))}}",
                    "Elemwise{Composite{scalar_sigmoid((i0 + i1))}}",
                    "Elemwise{pow,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                ],
                but_with=[
                    "Elemwise{Composite{t0 = (second(i1, i2) * i3); t1 = (i0 + t0 + t0); t1, (i3 "
                    "- (i2 * t1))}}",
                    "Elemwise{Composite{t0 = scalar_sigmoid((i1 + i2)); t1 = (i0 - t0); t2 = (t1 "
                    "** i3); t2, ((-(second(t2, i4) * i3 * (t1 ** i5))) * t0 * (i6 - t0))}}",
                ],
            ),
            "names.training_steps:regression layer/o3": names(
                without=[
                    "Elemwise{Composite{(i0 - (i1 * i2))}}",
                    "Elemwise{Composite{scalar_sigmoid((i0 + i1))}}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                ],
                but_with=[
                    "Elemwise{Composite{t0 = (i0 * i1); t0, (i2 - (i3 * t0))}}",
                    "Elemwise{Composite{t0 = scalar_sigmoid((i0 + i1)); t1 = (i2 - t0); t0, t1, "
                    "(i3 * t1 * t0 * (i4 - t0))}}",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{(i0 * i1 * (i2 - i1))}}",
                ],
            ),
            "names.training_steps:regression layer/without inplace": names(
                without=[
                    "Elemwise{Composite{(i0 - (i1 * i2))}}",
                    "Elemwise{Composite{scalar_sigmoid((i0 + i1))}}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{mul,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                    "Elemwise{sub,no_inplace}",
                ],
                but_with=[
                    "Elemwise{Composite{t0 = (i0 * i1); t0, (i2 - (i3 * t0))}}",
                    "Elemwise{Composite{t0 = scalar_sigmoid((i0 + i1)); t1 = (i2 - t0); t0, t1, "
                    "(i3 * t1 * t0 * (i4 - t0))}}",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{(i0 * i1 * (i2 - i1))}}",
                ],
            ),
        },
    ),
    Difference(
        "an Op without a gradient raises MethodNotDefined, as Theano's other Ops do",
        {
            "gradients.options:grad_not_implemented": (
                "!! MethodNotDefined(Exception): grad | <class 'opwise.tensor.linalg.factor.SVD'>"
                " | SVD"
            ),
        },
    ),
    Difference(
        "a variance comes from the pass that computes the mean",
        {
            "names.elemwise:normalised/FAST_RUN": names(
                without=[
                    "Elemwise{TrueDiv}[(0, 0)]",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{sqr((i0 - i1))}}",
                    "Sum{axis=[0], acc_dtype=float64}",
                ],
                but_with=[
                    "Elemwise{Composite{t0 = (i0 / i1); t1 = (i4 / i5); t0, Switch(i2, (max"
                    "imum((i3 - (i4 * t1)), i6) + (i5 * sqr(((i7 + t1) - t0)))), i8)}}[(0, "
                    "0), (1, 3)]",
                    "Elemwise{Composite{t0 = Cast{float64}(i0); t0, GT(t0, i1)}}",
                    "FirstAlong{axes=(0,)}",
                    "InplaceDimShuffle{1}",
                    "InplaceDimShuffle{x,0}",
                    "InplaceDimShuffle{x,0}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{x,x}",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{t0 = (i0 - i1); "
                    "t0, sqr(t0), i0}}",
                ],
            ),
            "names.reductions:std/FAST_RUN": names(
                without=[
                    "Elemwise{TrueDiv}[(0, 0)]",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{sqr((i0 - i1))}}",
                    "Sum{axis=[0], acc_dtype=float64}",
                ],
                but_with=[
                    "Elemwise{Composite{Switch(i0, (maximum((i1 - (i2 * (i2 / i3))), i4) + "
                    "(i3 * sqr(((i5 + (i2 / i3)) - (i6 / i7))))), i8)}}[(0, 1)]",
                    "Elemwise{Composite{t0 = Cast{float64}(i0); t0, GT(t0, i1)}}",
                    "FirstAlong{axes=(0,)}",
                    "InplaceDimShuffle{1}",
                    "InplaceDimShuffle{x,0}",
                    "InplaceDimShuffle{x,0}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{x,x}",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{t0 = (i0 - i1); "
                    "i0, t0, sqr(t0)}}",
                ],
            ),
            "names.reductions:var/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{((i0 / Cast{float64}(i1)) / Cast{float64}(i2))}}[(0, 0)]",
                    "MapReduce{Sum{acc_dtype=float64}, Composite{sqr((i0 - i1))}}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=[
                    "Elemwise{Composite{Switch(i0, (maximum((i1 - (i2 * (i2 / i3))), i4) + "
                    "(i3 * sqr(((i5 + (i2 / i3)) - ((i6 / Cast{float64}(i7)) / Cast{float64"
                    "}(i8)))))), i9)}}[(0, 1)]",
                    "Elemwise{Composite{t0 = Cast{float64}((i0 * i1)); t0, GT(t0, i2)}}",
                    "FirstAlong{axes=(0, 1)}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{x,x}",
                    "InplaceDimShuffle{}",
                    "MapReduce{Sum{acc_dtype=float64}, Composite{t0 = (i0 - i1); i0, t0, sqr(t0)}}",
                ],
            ),
        },
    ),
    Difference(
        "loops recompute the product of an array with itself instead of storing it",
        {
            "names.training_steps:regression layer/o2": names(
                without=[
                    "Elemwise{Composite{t0 = (second(i1, i2) * i3); t1 = (i0 + t0 + t0); t1"
                    ", (i3 - (i2 * t1))}}",
                    "Elemwise{mul,no_inplace}",
                    "Sum{acc_dtype=float64}",
                ],
                but_with=[
                    "Elemwise{Composite{t0 = (second((i1 * i1), i2) * i1); t1 = (i0 + t0 + "
                    "t0); t1, (i1 - (i2 * t1))}}",
                    "MapReduce{Sum{acc_dtype=float64}, mul}",
                ],
            ),
        },
    ),
    Difference(
        "operands of mixed dtypes are cast before the product, which then runs in C",
        {"names.products:mixed/FAST_RUN": names(but_with=["Elemwise{Cast{float64}}"])},
    ),
    Difference(
        "reductions of rows and the elementwise work around them go over each row once",
        {
            "names.elemwise:log of sum of exp/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{(i0 + log(i1))}}[(0, 0)]",
                    "Elemwise{Composite{Switch(IsInf(i0), i1, i0)}}[(0, 0)]",
                    "InplaceDimShuffle{0,x}",
                    "MapReduce{Sum{axis=[1], acc_dtype=float64}, Composite{exp((i0 - i1))}}",
                    "Reduce{maximum}{1}",
                ],
                but_with=[
                    "InplaceDimShuffle{0}",
                    "Rowwise{t0 = Reduce{maximum}{1}(i0); t1 = Switch(IsInf(t0), i1, t0); (t1 + "
                    "log(Sum{axis=[1], acc_dtype=float64}(exp((i0 - t1)))))}",
                ],
            ),
            "names.nnet:grad of softmax/FAST_RUN": names(
                without=["Elemwise{mul,no_inplace}", "Softmax", "SoftmaxGrad"],
                but_with=[
                    "Rowwise{t0 = exp((i0 - Reduce{maximum}{1}(i0))); t1 = (t0 / Sum{axis=[1], "
                    "acc_dtype=float64}(t0)); t2 = ((i1 * t1) * t1); (t2 - (Sum{axis=[1], "
                    "acc_dtype=float64}(t2) * t1))}"
                ],
            ),
            "names.updates:softmax/FAST_RUN": names(
                without=["Elemwise{Add}[(0, 0)]", "Softmax"],
                but_with=[
                    "Rowwise{t0 = (i0 + i1); t1 = exp((t0 - Reduce{maximum}{1}(t0))); (t1 / "
                    "Sum{axis=[1], acc_dtype=float64}(t1))}"
                ],
            ),
        },
    ),
    Difference(
        "adding a number where a mask is true is one loop",
        {
            "names.indexing:inc x[x > 0]/FAST_RUN": names(
                without=[
                    "AdvancedBooleanIncSubtensor{inplace=False,  set_instead_of_inc=False}",
                    "Elemwise{gt,no_inplace}",
                ],
                but_with=["Elemwise{Composite{Switch(GT(i0, i1), (i0 + i2), i0)}}"],
            ),
        },
    ),
    Difference(
        "the sum of a whole array is added up from sums along the axes of another loop",
        {
            f"names.training_steps:regression layer/{mode}": names(
                without=[
                    "MapReduce{Sum{acc_dtype=float64}, sqr}",
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{(i0 * i1 * (i2 - i1))}}",
                ],
                but_with=[
                    "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{sqr(i0), (i0 * i1 * "
                    "(i2 - i1))}}",
                    "Sum{acc_dtype=float64}",
                ],
            )
            for mode in ("FAST_RUN", "o3", "without inplace")
        },
    ),
    Difference(
        "equal Applys and constants are one before loops are fused",
        {
            "names.elemwise:log of erfc/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{Switch(LT(i0, i1), log(erfc(minimum(i0, i2))), (log1p(((i3"
                    " + ((i4 + ((i5 + (i6 * inv(sqr(maximum(i0, i2))))) * inv(sqr(maximum(i0, "
                    "i2))))) * inv(sqr(maximum(i0, i2))))) * inv(sqr(maximum(i0, i2))))) - "
                    "(sqr(maximum(i0, i2)) + log(maximum(i0, i2)) + i7)))}}"
                ],
                but_with=[
                    "Elemwise{Composite{Switch(LT(i0, i1), log(erfc(minimum(i0, i1))), (log1p(((i2"
                    " + ((i3 + ((i4 + (i5 * inv(sqr(maximum(i0, i1))))) * inv(sqr(maximum(i0, "
                    "i1))))) * inv(sqr(maximum(i0, i1))))) * inv(sqr(maximum(i0, i1))))) - "
                    "(sqr(maximum(i0, i1)) + log(maximum(i0, i1)) + i6)))}}"
                ],
            ),
            "names.nnet:binary crossentropy/FAST_RUN": names(
                without=[
                    "Elemwise{Composite{(-((i0 * i1 * scalar_softplus((-i2))) + (i3 * (i4 - i1) * "
                    "scalar_softplus(i2))))}}"
                ],
                but_with=[
                    "Elemwise{Composite{(-((i0 * i1 * scalar_softplus((-i2))) + (i0 * (i3 - i1) * "
                    "scalar_softplus(i2))))}}"
                ],
            ),
            **{
                f"names.training_steps:logistic regression/{mode}": names(
                    without=[
                        "Elemwise{Composite{(((scalar_sigmoid(((-i0) - i1)) * i2 * i3) / i4) + "
                        "((scalar_sigmoid((-((-i0) - i1))) * (i5 - i3)) / i4))}}",
                        "Elemwise{Composite{GT(scalar_sigmoid((-((-i0) - i1))), i2)}}",
                    ],
                    but_with=[
                        "Elemwise{Composite{t0 = ((-i0) - i1); t1 = scalar_sigmoid((-t0)); GT(t1, "
                        "i2), (((scalar_sigmoid(t0) * i3 * i4) / i5) + ((t1 * (i6 - i4)) / i5))}}"
                    ],
                )
                for mode in ("FAST_RUN", "o3", "without inplace")
            },
        },
    ),
    Difference(
        "Functions of numpy do with variables what those of tensors do, not what numpy does with "
        "objects that it does not know.",
        {"broadcast.variable_protocol:np.dot": "TensorVariable"},
    ),
    Difference(
        "relu of integers and bools does not overflow",
        {
            f"values.nnet.relu:{dtype_}/{mode}": values({position: value})
            for dtype_, position, value in (("bool", 1, 1.0), ("int8", 8, 127.0))
            for mode in ("FAST_COMPILE", "FAST_RUN")
        },
    ),
)
