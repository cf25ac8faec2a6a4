"""Run files as the cells of a notebook, and print what the last one returns, as text.

python docs/cells.py FILE... needs the extra notebook. --save writes the notebook with its outputs.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--save", type=Path, help="write the notebook to this file")
    args = parser.parse_args(argv)
    import nbformat
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(path.read_text(encoding="utf-8")) for path in args.files]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(notebook, kernel_name="python3", timeout=600, startup_timeout=600)
    client.execute()
    if args.save:
        nbformat.write(notebook, args.save)
    for output in notebook.cells[-1].outputs:
        print(output.data["text/plain"])


if __name__ == "__main__":
    main()
