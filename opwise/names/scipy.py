"""Whether scipy is installed, under the names that modules of Theano had for it."""

from __future__ import annotations

from opwise.tensor.linalg.operands import has_scipy

imported_scipy = imported_scipy_special = imported_scipy_signal = has_scipy()
