"""``advise``, the entry. It imports what it needs when it is called: most programs never do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from opwise.compile.executable import Function
    from opwise.tuning.tips import Advice


def advise(f: Function, *args: Any, budget: float = 5.0, file: TextIO | None = None) -> Advice:
    """Try changes that may make ``f(*args)`` faster, and return what was measured.

    f: a compiled function. budget: about how many seconds to spend; the advice lists the changes
    for which there was no time. file: an open file to print the advice to.

    Changes are tried on copies of the function and its shared variables. The function, its shared
    variables, its profile and the arguments stay as they are. Raises TypeError if ``f`` is not a
    compiled function or the number of arguments is wrong, and whatever the function raises.
    """
    from opwise.tuning.progress import shown
    from opwise.tuning.trial import trial

    with shown(budget) as progress:
        advice = trial(f, args, {}, budget, progress=progress)
    if file is not None:
        print(advice, file=file)
    return advice
