"""Benchmarks: programs that measure opwise as a user would run it. They are not installed.

They measure compiled kernels: functions wait for the C compiler, unless OPWISE_FLAGS says
otherwise.
"""

import os

os.environ["OPWISE_FLAGS"] = ",".join(
    ["background_compilation=False", *filter(None, [os.environ.get("OPWISE_FLAGS")])]
)
