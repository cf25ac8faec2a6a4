"""What a process that multiprocessing starts anew runs in place of the user's main program."""

from opwise.py2 import hook

if __name__ != "opwise.py2.spawned":  # the name that multiprocessing gives a main program
    hook.run_spawned(globals())
