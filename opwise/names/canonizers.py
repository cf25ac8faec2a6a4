"""``theano.tensor.opt``: the passes that bring the sums or products of a graph into one form."""

from __future__ import annotations

from opwise.optimizers.navigators import in2out
from opwise.optimizers.rules.canonicalize import (
    local_add_canonizer,
    local_fill_sink,
    local_mul_canonizer,
)

add_canonizer = in2out(local_add_canonizer, local_fill_sink, name="add_canonizer_group")
mul_canonizer = in2out(local_mul_canonizer, local_fill_sink, name="mul_canonizer_groups")
