"""Status: what a process tells the command that started it about the profile it should write.

The command ``opwise`` hands a pipe on; a process that was started in another way tells nobody.
"""

from __future__ import annotations

import json
import os

#: the variable that names the pipe: its number in the process, and its inode to know it by
_PIPE = "OPWISE_STATUS_PIPE"
#: letters of a value: a message of a few stays within what a pipe takes at once
_MOST = 200


def environment(pipe):
    """Return the variables by which a process that inherits the end of a pipe tells into it."""
    return {_PIPE: f"{pipe}:{os.fstat(pipe).st_ino}"}


def send(**message):
    """Tell whoever started this process; nothing happens where nobody listens."""
    number, _, inode = os.environ.get(_PIPE, "").partition(":")
    try:
        pipe = int(number)
        # the number may by now be that of another file, as in a process without that pipe
        if os.fstat(pipe).st_ino != int(inode):
            return
        short = {name: value[:_MOST] for name, value in message.items()}
        os.write(pipe, json.dumps({"process": os.getpid(), **short}).encode() + b"\n")
    except (ValueError, OSError):
        return
