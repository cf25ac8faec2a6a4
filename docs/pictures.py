"""Take the pictures of docs/profiling.md and docs/notebook.md from what their commands wrote.

python docs/refresh.py --folder FOLDER PAGE && python docs/pictures.py FOLDER, for each page. Needs
the extras plot, browser and notebook, and a Chromium.
"""

from __future__ import annotations

import argparse
import html
import json
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from opwise.profiling.profile import Profile

PICTURES = Path(__file__).resolve().parent / "pictures"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(argv).folder.absolute()
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium)
        view = browser.new_page(viewport={"width": 1400, "height": 860})
        if (folder / "net.profile.json").exists():
            profiles(folder, view)
        if (folder / "notebook.ipynb").exists():
            notebook(folder, view)
        browser.close()


def profiles(folder, view):
    """Take the pictures of docs/profiling.md."""
    before, after, net = (
        Profile.load(folder / f"{name}.json") for name in ("before", "after", "net.profile")
    )
    net.plot(PICTURES / "plot.png", n=8)
    net.report(folder / "report.html")
    before.report_diff(after, folder / "diff.html")
    view.goto((folder / "report.html").as_uri())
    view.wait_for_timeout(1500)
    view.screenshot(path=PICTURES / "report.png")
    view.set_viewport_size({"width": 1400, "height": 1240})
    view.evaluate("document.getElementById('flame').scrollIntoView()")
    view.wait_for_timeout(1500)
    view.screenshot(path=PICTURES / "below.png")
    view.set_viewport_size({"width": 1400, "height": 860})
    view.goto((folder / "diff.html").as_uri())
    view.wait_for_timeout(1500)
    view.screenshot(path=PICTURES / "diff.png")


def notebook(folder, view):
    """Take the picture of docs/notebook.md: the last line of each cell, and what it shows."""
    cells = json.loads((folder / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    parts = []
    for number, cell in enumerate(cells[:2], start=1):
        source = html.escape("".join(cell["source"]).strip())
        parts.append(f"<pre>In [{number}]: {source}</pre>")
        for output in cell["outputs"]:
            parts += output.get("data", {}).get("text/html", [])
    style = "body { margin: 16px; font: 14px sans-serif } pre { background: #f4f4f4; padding: 8px }"
    view.set_viewport_size({"width": 1000, "height": 400})
    view.set_content(f"<!doctype html><style>{style}</style>{''.join(parts)}")
    view.screenshot(path=PICTURES / "notebook.png", full_page=True)


if __name__ == "__main__":
    main()
