"""Screenshots: place the fleet of examples/repo, let its primary data centre fail, and take pictures of the pages of `plan` and `history`.

Run `python examples/screenshots.py` after a change of the pages. It needs Chromium and the extra `test`, and writes docs/images/*.png, in
light and dark. The commits have fixed dates, so that the pictures differ only where the pages do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, COLORS = 1280, 128
MAX_BYTES = 150_000
FRANKFURT = ("fra-prod-1", "fra-prod-2")
TAINT = "spec:\n  taints: [{key: maintenance.example.com/power, effect: NoExecute}]\n"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Fleet:
    """A repository with the example, and the commands in it."""

    def __init__(self, base: Path) -> None:
        self.path = base / "fleet"
        shutil.copytree(ROOT / "examples" / "repo", self.path)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Pat Platform",
            "GIT_AUTHOR_EMAIL": "pat@example.com",
            "GIT_COMMITTER_NAME": "Pat Platform",
            "GIT_COMMITTER_EMAIL": "pat@example.com",
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(base / "cache"),
        }
        self.run("git", "init", "--quiet", "--initial-branch", "main", ".")

    def run(self, *command: str, time: str = "") -> str:
        dates = {"GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time} if time else {}
        done = subprocess.run(command, cwd=self.path, env=self.environment | dates, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout

    def gitsched(self, *arguments: str, time: str) -> str:
        return self.run(sys.executable, "-m", "gitsched", *arguments, "--now", time)

    def commit(self, subject: str, time: str) -> None:
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", subject, time=time)

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.path / file
        text = path.read_text(encoding="utf-8")
        if old not in text:
            sys.exit(f"screenshots: {file} has no {old!r}")
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


def make_pages(base: Path) -> dict[str, Path]:
    """Return the pages by the name of their pictures."""
    fleet = Fleet(base)
    fleet.commit("The fleet", "2026-01-12T09:00:00Z")
    fleet.gitsched("reconcile", time="2026-01-12T09:00:30Z")
    for name in FRANKFURT:
        fleet.edit(f"clusters/{name}.yaml", "spec:\n", TAINT)
    fleet.commit("Frankfurt: no power", "2026-01-12T14:30:00Z")
    plan = base / "plan.html"
    html = fleet.gitsched("plan", "-o", "html", time="2026-01-12T14:30:30Z")
    plan.write_text(html.replace(f" of {fleet.path}", ""), encoding="utf-8")
    fleet.gitsched("reconcile", time="2026-01-12T14:30:30Z")
    fleet.gitsched("reconcile", time="2026-01-12T14:40:00Z")
    for name in FRANKFURT:
        fleet.edit(f"clusters/{name}.yaml", TAINT, "spec:\n")
    fleet.commit("Frankfurt: power is back", "2026-01-12T18:05:00Z")
    fleet.gitsched("reconcile", time="2026-01-12T18:05:30Z")
    history = base / "history.html"
    history.write_text(fleet.gitsched("history", "-o", "html", time="2026-01-12T18:05:30Z"), encoding="utf-8")
    return {"plan": plan, "history": history}


def take(browser: Browser, page: Path, selector: str, height: int, scheme: str, path: Path) -> None:
    """Take a picture of the window with an element at its top."""
    tab = browser.new_page(color_scheme=scheme, viewport={"width": WIDTH, "height": height})
    tab.goto(page.as_uri())
    tab.evaluate("selector => document.querySelector(selector).scrollIntoView()", selector)
    picture = Image.open(BytesIO(tab.screenshot(animations="disabled", caret="hide"))).convert("RGB")
    tab.close()
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MAX_BYTES:
        sys.exit(f"screenshots: {path} has more than {MAX_BYTES} bytes: show less of the page")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        pages = make_pages(Path(directory))
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            take(browser, pages["plan"], "body", 760, scheme, IMAGES / f"plan-{scheme}.png")
            take(browser, pages["plan"], "#topology .legend", 880, scheme, IMAGES / f"topology-{scheme}.png")
            take(browser, pages["history"], "body", 760, scheme, IMAGES / f"history-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
