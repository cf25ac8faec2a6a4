"""State of the process that only old programs set, by functions that Theano had.

Other state is held by objects that are passed, or by context variables. What is here has to be seen
by all threads, and outlives the call that sets it, as in Theano.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class LegacyState:
    """What old programs, and the package theano, have set."""

    #: the device of functions, in place of the flag ``device``: ``theano.sandbox.cuda.use``
    device: str | None = None
    #: the modules that classes of variables say they are from, by the dotted names of the classes:
    #: the package theano fills it, since programs look for its name
    homes: dict[str, str] = field(default_factory=dict)


legacy = LegacyState()
