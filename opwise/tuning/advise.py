"""``advise``, the entry. What it needs is imported when it is called: most programs never do."""

from __future__ import annotations

from opwise.graph import hooks


def advise(f, *args, budget=5.0, file=None):
    """Try what might make ``f(*args)`` faster, and return the Advice: what did, and what did not.

    f: a compiled function. budget: about how many seconds the measuring may take; what did not fit
    in is listed. file: what has ``write``; the advice is printed there too.

    Every tip was tried on copies of the function, which start from copies of its shared variables:
    neither they nor the function, its profile or the arguments are changed. Raises TypeError for
    what is no compiled function and for a wrong number of arguments, and what the function itself
    raises.
    """
    from opwise.tuning.progress import shown
    from opwise.tuning.trial import trial

    with shown(budget) as progress:
        advice = trial(f, args, {}, budget, progress=progress)
    if file is not None:
        print(advice, file=file)
    return advice


def _remember(function):
    from opwise.tuning.remember import remember

    remember(function)


hooks.advise = advise
hooks.remember = _remember
