"""Take the pictures of docs/profiling.md from the profiles that its commands wrote into a folder.

python docs/refresh.py --folder FOLDER docs/profiling.md && python docs/pictures.py FOLDER. Needs
the extras plot and browser, and a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from opwise.profiling.profile import Profile

PICTURES = Path(__file__).resolve().parent / "pictures"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(argv).folder.absolute()
    before, after, net = (
        Profile.load(folder / f"{name}.json") for name in ("before", "after", "net.profile")
    )
    net.plot(PICTURES / "plot.png", n=8)
    net.report(folder / "report.html")
    before.report_diff(after, folder / "diff.html")
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium)
        view = browser.new_page(viewport={"width": 1400, "height": 860})
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
        browser.close()


if __name__ == "__main__":
    main()
