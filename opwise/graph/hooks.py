"""Named slots that upper layers fill, for the few things that the graph needs from them."""


def _unfilled(*args, **kwargs):
    raise RuntimeError("opwise.compile is not loaded: import opwise, not only a part of it")


def _as_it_is(value):
    return value


#: (variable, dict from inputs to values) -> value; filled by compile.function
evaluate = _unfilled

#: (inputs, outputs, mode=, name=, allow_input_downcast=) -> callable; filled by compile.function
compile_function = _unfilled

#: (function, *arguments, budget=, file=) -> Advice; filled by tuning.advise
advise = _unfilled

#: (value) -> value: an array of a device as one of the host, another as it is; filled by gpu.device
#: when the first device is used
to_host = _as_it_is

#: (function) -> None: keeps the arguments of its calls, to advise at the end of the program; filled
#: by tuning.advise
remember = _unfilled


def _nothing():
    return {}


#: () -> dict of names and values: how many threads kernels and BLAS use; filled by
#: linkers.resources
parallelism = _nothing
