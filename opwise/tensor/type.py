"""TensorType: numpy arrays of one dtype and number of dimensions, some of which have length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.config import config
from opwise.graph import provenance
from opwise.graph.hashing import HashedOnce
from opwise.graph.type import Type
from opwise.graph.variable import Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.dtypes import DTypeLike
from opwise.scalar.types import Scalar, get_scalar_type
from opwise.tensor.cinterface import TensorInterface

if TYPE_CHECKING:
    from opwise.tensor.variable import Tensor, TensorLike


_NAMES = {
    (): "scalar",
    (False,): "vector",
    (False, True): "col",
    (True, False): "row",
    (False, False): "matrix",
}


def dtype_name(dtype: DTypeLike) -> str:
    """Return the name of a dtype; raise TypeError that lists the dtypes for what is none."""
    try:
        return np.dtype(dtype).name
    except TypeError as error:
        raise TypeError(f"{error}: a dtype is one of {', '.join(dtypes.ALL)}") from None


def _short(text: str) -> str:
    """Return the text of a value, without the middle of a long one."""
    return text if len(text) <= 200 else f"{text[:150]} ... {text[-45:]}"


class TensorType(TensorInterface, HashedOnce, Type):
    """The type of arrays of ``dtype``; ``broadcastable[i]`` says that dimension i is always 1.

    dtype: a numpy dtype, its name, or 'floatX'. broadcastable: a sequence of booleans, one for each
    dimension. sparse_grad: accepted for old programs, without effect.
    """

    filter_checks_isfinite = False
    dtype: str
    #: Theano's name of the device that the values lie on
    context_name = "cpu"

    def __init__(
        self,
        dtype: DTypeLike,
        broadcastable: Sequence[bool],
        name: str | None = None,
        sparse_grad: bool = False,
    ) -> None:
        self.dtype = config.floatX if str(dtype) == "floatX" else dtype_name(dtype)
        if self.dtype not in dtypes.ALL:
            raise TypeError(
                f"Unsupported dtype for TensorType: {self.dtype}. Supported: {dtypes.ALL}"
            )
        self.broadcastable = tuple(bool(b) for b in broadcastable)
        self.ndim = len(self.broadcastable)
        self.name = name
        self.sparse_grad = sparse_grad
        self.numpy_dtype = np.dtype(self.dtype)
        self._has_broadcastable = any(self.broadcastable)
        self._keep_hash()

    def _hashed(self) -> Any:
        return "TensorType", self.dtype, self.broadcastable

    def clone(
        self, dtype: str | None = None, broadcastable: Sequence[bool] | None = None
    ) -> TensorType:
        """Return a type that differs in dtype or broadcast pattern."""
        if dtype is None:
            dtype = self.dtype
        if broadcastable is None:
            broadcastable = self.broadcastable
        return TensorType(dtype, broadcastable, name=self.name, sparse_grad=self.sparse_grad)

    def make_variable(self, name: str | None = None) -> Tensor:
        """Return a new variable; for float64 the flag warn_float64 may warn or raise."""
        if self.dtype == "float64" and config.warn_float64 != "ignore":
            _warn_float64()
        var: Tensor = self.Variable(self, name=name)  # type: ignore[assignment]
        return var

    # --- values -----------------------------------------------------------------------------------

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``data`` as an array of this type.

        Raises TypeError if the conversion would lose precision, the number of dimensions differs,
        or a broadcastable dimension is not 1.
        """
        if type(data) is not np.ndarray or data.dtype != self.numpy_dtype:
            data = self._convert(data, strict, allow_downcast)
        elif data.dtype.num != self.numpy_dtype.num or not data.dtype.isnative:
            data = data.astype(self.numpy_dtype)  # long long becomes long
        if data.ndim != self.ndim:
            raise TypeError(
                f"Wrong number of dimensions: expected {self.ndim}, got {data.ndim} with shape "
                f"{data.shape}."
            )
        if not data.flags.aligned:
            raise TypeError(f"The numpy.ndarray object is not aligned, as {self} needs it.")
        if self._has_broadcastable:
            for b, n in zip(self.broadcastable, data.shape, strict=True):
                if b and n != 1:
                    raise TypeError(
                        "Non-unit value on shape on a broadcastable dimension. | "
                        f"{data.shape} | {self.broadcastable}"
                    )
        if self.filter_checks_isfinite and not np.all(np.isfinite(data)):
            raise ValueError("non-finite elements not allowed")
        return data

    def _convert(self, data: Any, strict: bool, allow_downcast: bool | None) -> np.ndarray:
        if isinstance(data, Variable):
            raise TypeError(
                "Expected an array-like object, but found a Variable: maybe you are trying to call "
                "a function on a (possibly shared) variable instead of a numeric array?"
            )
        if isinstance(data, np.memmap) and data.dtype == self.numpy_dtype:
            return data
        if strict:
            if not isinstance(data, np.ndarray):
                raise TypeError(f"{self} expected a ndarray object. ({data!r}, {type(data)})")
            raise TypeError(
                f"{self} expected a ndarray object with dtype = {self.dtype} (got {data.dtype})."
            )
        if allow_downcast:
            return np.asarray(data).astype(self.numpy_dtype, copy=False)
        if isinstance(data, np.ndarray | np.generic) and not isinstance(data, np.float64 | np.int_):
            return self._convert_array(np.asarray(data), data)
        return self._convert_python(data, allow_downcast)

    def _convert_array(self, array: np.ndarray, original: Any) -> np.ndarray:
        if array.dtype == self.numpy_dtype:
            return array
        if _takes(self.numpy_dtype, array.dtype):
            return array.astype(self.numpy_dtype)
        kind = array.dtype.kind
        if kind in "OUSV":
            raise self._no_numbers(array.dtype, original)
        text = f"{self} cannot store a value of dtype {array.dtype.name}"
        if kind == "c":
            text += " without losing its imaginary part. If you do not need that, pass value.real."
        else:
            text += f" without risking loss of precision. {self._cures(array.dtype)}"
        raise TypeError(f'{text} Value: "{_short(repr(original))}"')

    def _no_numbers(self, dtype: np.dtype, data: Any) -> TypeError:
        """Return the error of an array of objects or of text."""
        what = "text" if dtype.kind in "US" else "objects, such as None or rows of several lengths"
        return TypeError(
            f"{self} cannot store a value of dtype {dtype.name}, an array of {what}. Give it "
            f"numbers: value.astype({self.dtype!r}) converts those that it holds. "
            f'Value: "{_short(repr(data))}"'
        )

    def _cures(self, dtype: np.dtype) -> str:
        """Return a sentence on what to do with a value of a dtype that would be rounded."""
        cures = [
            f"explicitly cast your data to {self.dtype}: numpy.asarray(value, {self.dtype!r})",
            'set "allow_input_downcast=True" when calling "function", or "allow_downcast=True" '
            'when calling "shared"',
        ]
        if dtype.kind == "f" and self.dtype in ("float16", "float32"):
            cures.append(
                f"compute in {dtype.name}: set the flag floatX={dtype.name}, or give the variable "
                "that dtype"
            )
        elif dtype.kind == "f" and self.numpy_dtype.kind in "iub":
            cures.append(f"give the variable the dtype {dtype.name}")
        numbered = [f"{k}) {cure}" for k, cure in enumerate(cures, 1)]
        return (
            f"If you do not mind this loss, you can: {', '.join(numbered[:-1])}, or {numbered[-1]}."
        )

    def _convert_python(self, data: Any, allow_downcast: bool | None) -> np.ndarray:
        if (
            allow_downcast is None
            and type(data) is float
            and self.dtype == config.floatX
            and self.ndim == 0
        ):
            return np.asarray(data, dtype=self.numpy_dtype)
        exact = np.asarray(data)
        if exact.dtype == self.numpy_dtype:
            return exact.astype(self.numpy_dtype)  # of the same typenum and byte order
        if exact.dtype.kind == "c" and self.numpy_dtype.kind != "c":
            raise TypeError(f"can't convert complex to float: {data!r} into {self}")
        try:
            with np.errstate(all="ignore"):
                converted = exact.astype(self.numpy_dtype)
        except ValueError:
            if exact.dtype.kind not in "US":
                raise
            raise ValueError(f"could not convert string to float: {data!r}") from None
        if (exact == converted).all() or np.array_equal(
            exact, converted, equal_nan=exact.dtype.kind in "fc"
        ):
            return converted
        if exact.dtype.kind not in "iufcb":
            raise self._no_numbers(exact.dtype, data)
        different = (exact != converted) & ((exact == exact) | (converted == converted))
        first = np.flatnonzero(different)[0]
        before, after = np.ravel(exact)[first], np.ravel(converted)[first]
        raise TypeError(
            f"{self} cannot store accurately value {_short(str(data))}: it is {exact.dtype.name}, "
            f"and in {self.dtype} {before.item()!r} would be {after.item()!r}. "
            f"{self._cures(exact.dtype)}"
        )

    def value_zeros(self, shape: int | Sequence[int]) -> np.ndarray:
        """Return an array of zeros of this dtype."""
        return np.zeros(shape, dtype=self.numpy_dtype)

    @staticmethod
    def values_eq(a: Any, b: Any, force_same_dtype: bool = True) -> bool:
        """Return whether two arrays are equal, NaN equal to NaN."""
        if a.shape != b.shape or (force_same_dtype and a.dtype != b.dtype):
            return False
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))

    @staticmethod
    def values_eq_approx(
        a: Any,
        b: Any,
        allow_remove_inf: bool = False,
        allow_remove_nan: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> bool:
        """Return whether two arrays are equal up to rounding of their dtype.

        The tolerance is relative 1e-5 and absolute 1e-8 for float64, wider for narrower dtypes.
        allow_remove_inf, allow_remove_nan: whether b may hold any value where a is infinite or NaN.
        """
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.kind not in "fc":
            return bool(np.array_equal(a, b))
        default_rtol, default_atol = _tolerances(a.dtype.name)
        rtol = default_rtol if rtol is None else rtol
        atol = default_atol if atol is None else atol
        close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        if allow_remove_inf:
            close |= np.isinf(a)
        if allow_remove_nan:
            close |= np.isnan(a)
        return bool(np.all(close))

    def tolerances(self) -> tuple[float, float]:
        """Return the relative and the absolute tolerance of ``values_eq_approx``."""
        return _tolerances(self.dtype)

    @staticmethod
    def may_share_memory(a: Any, b: Any) -> bool:
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return np.may_share_memory(a, b)
        return False

    def get_shape_info(self, obj: Any) -> Any:
        return obj.shape

    def get_size(self, shape_info: Any) -> int:
        """Return the size of an array of a shape, in bytes."""
        return int(np.prod(shape_info, dtype=np.int64)) * self.numpy_dtype.itemsize

    # --- variables --------------------------------------------------------------------------------

    def convert_variable(self, var: Var) -> Tensor | None:
        if var.type == self:
            same: Tensor = var
            return same
        other = var.type
        if (
            type(other) is type(self)
            and other.dtype == self.dtype
            and other.ndim == self.ndim
            and all(
                mine == theirs or theirs
                for mine, theirs in zip(self.broadcastable, other.broadcastable, strict=True)
            )
        ):
            converted: Tensor = var._with_broadcastable(self.broadcastable)
            return converted
        return None

    def filter_variable(self, other: TensorLike, allow_convert: bool = True) -> Tensor:
        if hasattr(other, "_as_TensorVariable"):
            other = other._as_TensorVariable()
        var: Tensor = super().filter_variable(other, allow_convert)  # type: ignore[assignment]
        return var

    def to_scalar_type(self) -> Scalar:
        return get_scalar_type(self.dtype)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and other.dtype == self.dtype
            and other.broadcastable == self.broadcastable
        )

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        if self.name:
            return self.name
        pattern = self.broadcastable
        if pattern in _NAMES:
            shape = _NAMES[pattern]
        elif not any(pattern) and len(pattern) > 1:
            shape = f"{len(pattern)}D"
        else:
            shape = str(pattern)
        return f"TensorType({self.dtype}, {shape})"

    def __repr__(self) -> str:
        return str(self)


_NARROW = {"float16": (1e-2, 5e-3), "float32": (1e-5, 1e-5), "complex64": (1e-5, 1e-5)}


def _takes(own: np.dtype, dtype: np.dtype) -> bool:
    """Return whether arrays of ``dtype`` become ``own``, one of opwise's dtypes, without a word."""
    given, wanted = dtypes.name_of(dtype), dtypes.name_of(own)
    return given in dtypes.ALL and dtypes.upcast(wanted, given) == wanted


def _tolerances(dtype: str) -> tuple[float, float]:
    rtol, atol = _NARROW.get(dtype, (1e-5, 1e-8))
    factor = 10.0**config.tensor.cmp_sloppy
    return rtol * factor, atol * factor


def values_eq_approx_remove_inf(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays of one shape and dtype agree except where a is infinite."""
    return TensorType.values_eq_approx(a, b, allow_remove_inf=True)


def values_eq_approx_remove_nan(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays of one shape and dtype agree except where a is NaN."""
    return TensorType.values_eq_approx(a, b, allow_remove_nan=True)


def values_eq_approx_remove_inf_nan(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays of one shape and dtype agree except where a is infinite or NaN."""
    return TensorType.values_eq_approx(a, b, allow_remove_inf=True, allow_remove_nan=True)


def values_eq_approx_always_true(a: object, b: object) -> bool:
    """Return True, for variables whose values are arbitrary."""
    return True


def _warn_float64() -> None:
    message = (
        "You are creating a TensorVariable with float64 dtype. You requested an action via the "
        "Theano flag warn_float64={ignore,warn,raise,pdb}. Declare it in another dtype, as "
        "T.fvector does, or set floatX=float32."
    )
    if config.warn_float64 == "raise":
        raise Exception(message)
    if config.warn_float64 == "pdb":
        import pdb  # slow to import

        pdb.set_trace()
        return
    provenance.warn(message)


_cache: dict[tuple[str, tuple[bool, ...]], TensorType] = {}


def tensor_type(dtype: str, broadcastable: tuple[bool, ...]) -> TensorType:
    """Return a TensorType; the same object for equal arguments. dtype: a name, not 'floatX'."""
    key = (dtype, broadcastable)
    found = _cache.get(key)
    if found is None:
        found = TensorType(dtype, broadcastable)
        _cache[key] = found
    return found
