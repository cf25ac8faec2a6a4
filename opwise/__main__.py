"""``python -m opwise``: the command ``opwise``."""

from opwise.command.main import main

if __name__ == "__main__":
    main(prog_name="opwise")
