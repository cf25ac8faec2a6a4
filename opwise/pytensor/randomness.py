"""What draws random numbers: PyTensor's RandomVariables run numpy's Generator."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.random.op import RandomVariable

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Var
from opwise.pytensor.frontend import translates


@translates(RandomVariable, any_type=True)
def _draw(t: Translator, node: Any, *inputs: Var) -> Var:
    raise Untranslated("numbers are drawn by numpy's Generator")
