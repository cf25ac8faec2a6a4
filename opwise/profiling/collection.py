"""Python's garbage collector, held still while much data is made of which none is garbage."""

import gc
from contextlib import contextmanager


@contextmanager
def no_collection():
    """Keep the garbage collector still while data are made that hold no garbage.

    It would walk through all graphs of the process again and again, which takes most of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
