"""Traffic: the bytes that an Apply must read and write, where that is known exactly.

An Op has a method ``traffic(node, inputs, outputs)``: from the ArrayProfiles of its operands, None
for what is no array, to two lists, the bytes read of each input and those written of each output;
or to None where these are not exact.
"""

from __future__ import annotations

from opwise.graph import aliasing


class Meter:
    """Counts the traffic of Applys in the order in which they run.

    array: from a cell of the program to the ArrayProfile of what it held, or None.
    """

    def __init__(self, array):
        self._array = array
        #: of each cell that shows another's memory, the one that has it
        self._homes = {}

    def measure(self, step, inputs, outputs):
        """Return the bytes that a step of a program reads and writes, None if that is not exact.

        Memory that several operands show is read once.
        """
        told = _told(step.node, inputs, outputs)
        self._settle(step, told)
        if told is None:
            return None
        read, written = told
        by_home = {}
        for cell, array, count in zip(step.inputs, inputs, read, strict=True):
            if count and array is not None and _repeats(array):
                return None
            if count:
                by_home.setdefault(self._home(cell), {})[cell] = count
        counts = [self._of_home(home, parts) for home, parts in by_home.items()]
        return None if None in counts else sum(counts) + sum(written)

    def _settle(self, step, told):
        """Note whose memory the outputs show. What is declared a view may have been a copy."""
        for k, cell in enumerate(step.outputs):
            shared = aliasing.viewed_inputs(step.node, k)
            overwrites = k in step.node.op.destroy_map
            copied = told is not None and told[1][k] > 0 and not overwrites
            if shared and not copied:
                self._homes[cell] = self._home(step.inputs[shared[0]])

    def _home(self, cell):
        return self._homes.get(cell, cell)

    def _of_home(self, home, parts):
        """Return the bytes that operands in one memory show together, None if that is unknown."""
        most = max(parts.values())
        if len(parts) == 1:
            return most
        whole = self._array(home)
        # several parts may overlap, unless one of them is everything
        return most if whole is not None and most == whole.bytes else None


def _told(node, inputs, outputs):
    """Return what an Op tells of its traffic: (bytes read, bytes written) by operand, or None."""
    tell = getattr(node.op, "traffic", None)
    if tell is None:
        return None
    try:
        told = tell(node, inputs, outputs)
        return None if told is None else (list(map(int, told[0])), list(map(int, told[1])))
    except Exception:  # a user's Op may raise anything; a profile is not lost for that
        return None


def _repeats(array):
    """Return whether an array shows an element several times."""
    return any(n > 1 and not step for n, step in zip(array.shape, array.strides, strict=True))


# --- methods of Ops -------------------------------------------------------------------------------


def each_once(op, node, inputs, outputs):
    """``traffic`` of an Op that reads all of every input and writes all of every output."""
    if None in inputs or None in outputs:
        return None
    return [a.bytes for a in inputs], [a.bytes for a in outputs]


def nothing(op, node, inputs, outputs):
    """``traffic`` of an Op that shows memory in another way, or makes it without writing to it."""
    return [0] * len(inputs), [0] * len(outputs)


def number(op, node, inputs, outputs):
    """``traffic`` of an Op that turns an array of one number into what is no array, or back."""
    size = (inputs[0] or outputs[0]).bytes
    return [size], [size]


def written(op, node, inputs, outputs):
    """``traffic`` of an Op that writes its outputs and reads no input."""
    return [0] * len(inputs), [a.bytes for a in outputs]


def view_or_copy(op, node, inputs, outputs):
    """``traffic`` of an Op that shows its first input in C order, or copies it if it must."""
    if not is_contiguous(inputs[0]) and is_contiguous(outputs[0]):
        return each_once(op, node, inputs, outputs)
    return nothing(op, node, inputs, outputs)


def accumulates(factor):
    """Return the ``traffic`` of an Op that adds to its first input times input ``factor``.

    The first input is not read where the factor is a constant 0; whether it is read is unknown
    where the factor is no constant.
    """

    def traffic(op, node, inputs, outputs):
        value = getattr(node.inputs[factor], "data", None)
        if value is None or None in inputs:
            return None
        read, into = each_once(op, node, inputs, outputs)
        return ([0, *read[1:]] if value == 0 else read), into

    return traffic


def no_flops(op, inputs, outputs):
    """``flops`` of an Op that only moves elements."""
    return 0


def is_contiguous(array):
    """Return whether the elements of an ArrayProfile lie side by side in C order."""
    expected = array.bytes
    if expected == 0:
        return True
    for n, step in zip(array.shape, array.strides, strict=True):
        expected //= n
        if n > 1 and step != expected:
            return False
    return True
