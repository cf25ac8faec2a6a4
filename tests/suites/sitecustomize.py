"""Python imports this when it starts: the processes that tests spawn need the shims as well."""

import sys

if "--multiprocessing-fork" in sys.orig_argv:
    import shims  # noqa: F401
