"""How tensor expressions read in debugprint, pprint and min_informative_str, as in Theano 1.0.5."""

import pytest

import opwise
import opwise.tensor as T
from opwise import pp, pprint
from opwise.gradient import grad
from opwise.printing import PPrinter, Print, debugprint, min_informative_str
from opwise.scalar import get_scalar_type
from opwise.tensor.printers import DimShufflePrinter, MakeVectorPrinter, SubtensorPrinter

pytestmark = pytest.mark.null

X, Y, Z = T.dmatrix("x"), T.dmatrix("y"), T.dmatrix("z")
V, S, I = T.dvector("v"), T.dscalar("s"), T.iscalar("i")  # noqa: E741
Q = get_scalar_type("float64").make_variable("q")


EXPRESSIONS = [
    (X + Y * 2, "(x + (y * TensorConstant{2}))"),
    ((X + Y) * Z, "((x + y) * z)"),
    (X - (Y - Z), "(x - (y - z))"),
    (X / Y // Z, "((x / y) // z)"),
    (X ** (Y**Z), "(x ** (y ** z))"),
    (T.add(X, Y, Z), "(x + y + z)"),
    (-(X**2), "(-(x ** TensorConstant{2}))"),
    (X % Y * Z, "(mod(x, y) * z)"),
    (abs(X + Y), "|(x + y)|"),
    (T.exp(-X) / (1 + Y), "(exp((-x)) / (TensorConstant{1} + y))"),
    ((X > Y) + 1, "(gt(x, y) + TensorConstant{1})"),
    (T.and_(X > 0, Y > 0), "and_(gt(x, TensorConstant{0}), gt(y, TensorConstant{0}))"),
    (T.switch(X > 0, X, 0.0), "switch(gt(x, TensorConstant{0}), x, TensorConstant{0.0})"),
    (T.maximum(X, Y), "maximum(x, y)"),
    (T.cast(X, "float32"), "float32(x)"),
    (T.zeros_like(X), "fill(x, TensorConstant{0.0})"),
    (X.copy() + 1, "(x + TensorConstant{1})"),
    # broadcasting dimensions on the left are not shown
    (X + V, "(x + v)"),
    (X + S, "(x + s)"),
    (V.dimshuffle("x", 0), "v"),
    (V.dimshuffle(0, "x"), "DimShuffle{0, x}(v)"),
    (X.dimshuffle(0, "x", 1), "DimShuffle{0, x, 1}(x)"),
    (X.T, "x.T"),
    (T.dot(X, Y).T, "(x \\dot y).T"),
    (T.dot(X.T, Y) + Z, "((x.T \\dot y) + z)"),
    (X[0], "x[Constant{0}]"),
    (X[1, 0], "x[Constant{1}, Constant{0}]"),
    (X[:, I], "x[:, ScalarFromTensor(i)]"),
    (V[1:3], "v[int64:int64]"),
    (V[::-1], "v[::int64]"),
    (V[I:], "v[int32:]"),
    ((X + Y)[0], "(x + y)[Constant{0}]"),
    (X[T.ivector("j")], "AdvancedSubtensor1(x, j)"),
    (T.set_subtensor(V[0], 1.0), "IncSubtensor{Set;int64}(v, TensorConstant{1.0}, Constant{0})"),
    (T.concatenate([X, Y]), "join(TensorConstant{0}, x, y)"),
    (T.stack([S, S]), "[s, s]"),
    (T.zeros((2, I)), "alloc(TensorConstant{0.0}, TensorConstant{2}, i)"),
    (X.sum(axis=0), "Sum{axis=[0], acc_dtype=float64}(x)"),
    (X.shape[0], "Shape(x)[Constant{0}]"),
    (X.reshape((2, 3)), "Reshape{2}(x, TensorConstant{[2 3]})"),
    (T.dscalar("alpha") + 1, "(\\alpha + TensorConstant{1})"),
    (T.dvector() + 1, "(<TensorType(float64, vector)> + TensorConstant{1})"),
    (Q + 1, "(q + Constant{1})"),
    (-Q * Q, "((-q) * q)"),
    (
        grad((X**2).sum(), X),
        "((fill((x ** TensorConstant{2}), fill(Sum{acc_dtype=float64}((x ** TensorConstant{2})), "
        "TensorConstant{1.0})) * TensorConstant{2}) * (x ** (TensorConstant{2} - "
        "TensorConstant{1})))",
    ),
]


@pytest.mark.parametrize(("expression", "text"), EXPRESSIONS, ids=[t for _, t in EXPRESSIONS])
def test_expressions(expression, text):
    assert pp(expression) == text
    assert pprint(expression) == text


def test_a_new_printer_knows_nothing_of_tensors():
    plain = PPrinter()
    assert plain(X + V) == "Elemwise{add,no_inplace}(x, InplaceDimShuffle{x,0}(v))"
    plain.assign(T.DimShuffle, DimShufflePrinter())
    plain.assign(T.Subtensor, SubtensorPrinter())
    assert plain(X.T[0] + V) == "Elemwise{add,no_inplace}(x.T[Constant{0}], v)"
    vector = T.stack([S, S])
    plain.assign(type(vector.owner.op), MakeVectorPrinter())
    assert plain(vector) == "[s, s]"


def test_in_place_operations_are_told_apart():
    inplace = T.Elemwise(T.add.scalar_op, {0: 0})
    assert pp(inplace(X, Y)) == "Elemwise{add}[(0, 0)](x, y)"


LAYER = T.tanh(T.dot(X, Y) + V).sum(axis=0) * 2


def test_debugprint_of_a_layer():
    assert debugprint(LAYER, file="str") == (
        "Elemwise{mul,no_inplace} [id A] ''   \n"
        " |Sum{axis=[0], acc_dtype=float64} [id B] ''   \n"
        " | |Elemwise{tanh,no_inplace} [id C] ''   \n"
        " |   |Elemwise{add,no_inplace} [id D] ''   \n"
        " |     |dot [id E] ''   \n"
        " |     | |x [id F]\n"
        " |     | |y [id G]\n"
        " |     |InplaceDimShuffle{x,0} [id H] ''   \n"
        " |       |v [id I]\n"
        " |InplaceDimShuffle{x} [id J] ''   \n"
        "   |TensorConstant{2} [id K]\n"
    )


def test_debugprint_with_types():
    assert debugprint(LAYER, file="str", print_type=True, depth=3) == (
        "Elemwise{mul,no_inplace} [id A] <TensorType(float64, vector)> ''   \n"
        " |Sum{axis=[0], acc_dtype=float64} [id B] <TensorType(float64, vector)> ''   \n"
        " | |Elemwise{tanh,no_inplace} [id C] <TensorType(float64, matrix)> ''   \n"
        " |InplaceDimShuffle{x} [id D] <TensorType(int8, (True,))> ''   \n"
        "   |TensorConstant{2} [id E] <TensorType(int8, scalar)>\n"
    )


def test_debugprint_of_a_function():
    mode = opwise.Mode(linker="py", optimizer=None)
    function = opwise.function([X, Y, V], LAYER, mode=mode)
    lines = debugprint(function, file="str").splitlines()
    assert lines[0] == "Elemwise{mul,no_inplace} [id A] ''   6"
    orders = sorted(int(line.rsplit(" ", 1)[1]) for line in lines if "''" in line)
    assert orders == list(range(7))


def test_min_informative_str_of_a_layer():
    assert min_informative_str(LAYER) == (
        "A. Elemwise{mul,no_inplace}\n"
        " B. Sum{axis=[0], acc_dtype=float64}\n"
        "  C. Elemwise{tanh,no_inplace}\n"
        "   D. Elemwise{add,no_inplace}\n"
        "    E. dot\n"
        "     F. x\n"
        "     G. y\n"
        "    H. InplaceDimShuffle{x,0}\n"
        "     I. v\n"
        " J. InplaceDimShuffle{x}\n"
        "  K. TensorConstant{2}"
    )


def test_print_in_a_function_prints_in_every_call(capsys):
    shown = Print("value of x")(X)
    function = opwise.function([X], shown * 2, mode=opwise.Mode(linker="py", optimizer=None))
    assert function([[1.0]]).tolist() == [[2.0]]
    function([[3.0]])
    assert capsys.readouterr().out == ("value of x __str__ = [[1.]]\nvalue of x __str__ = [[3.]]\n")
    assert pp(grad((shown * 2).sum(), X)).endswith("* TensorConstant{2})")
