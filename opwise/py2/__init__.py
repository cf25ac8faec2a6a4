"""Programs written for Python 2: they are converted while they are imported, and run on Python 3.

``breakages`` is the table of what changed since; ``convert`` turns text into syntax trees, ``hook``
imports and runs the user's modules, ``builtin`` and ``library`` are what converted code calls, and
``pickles`` reads what Python 2 pickled. Nothing here changes other packages.
"""
