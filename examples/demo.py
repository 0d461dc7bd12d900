"""Demo: place the workloads of examples/repo, lose the primary data centre, and see what moves, why, and what would happen next."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
WIDTH = 140

TAINT = """\
    - key: maintenance.example.com/power
      effect: NoExecute
"""

# No configuration, hooks or signing key of the user; fixed dates, so that two runs of the demo make the same commits.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Pat Platform",
    "GIT_AUTHOR_EMAIL": "pat@example.com",
    "GIT_COMMITTER_NAME": "Pat Platform",
    "GIT_COMMITTER_EMAIL": "pat@example.com",
}


class Demo(NamedTuple):
    """A repository in `directory`, which is replaced, and the program that places its workloads."""

    directory: Path
    gitsched: Path

    @property
    def fleet(self) -> Path:
        return self.directory / "fleet"

    def show(self, command: str, lines: int | None = None, when: str = "") -> None:
        """Print a command, run it in the repository and print its first lines. `when` is the time of a commit."""
        print("$", command, flush=True)
        columns = WIDTH + len(str(self.directory))  # room for the path in messages
        environment = ENVIRONMENT | {"XDG_CACHE_HOME": str(self.directory / "cache"), "COLUMNS": str(columns)}
        if when:
            environment |= {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        program = re.sub("^gitsched ", lambda _: f"{shlex.quote(str(self.gitsched))} ", command)
        done = subprocess.run(["sh", "-c", program], cwd=self.fleet, env=environment, check=False, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{done.stdout}{done.stderr}demo: {command} ended with {done.returncode}")
        shown = [line for line in done.stdout.splitlines() if line]
        print("".join(f"  {line}\n" for line in shown[:lines]), end="")
        if lines is not None and len(shown) > lines:
            print(f"  ... and {len(shown) - lines} lines")


def main(demo: Demo) -> None:
    shutil.rmtree(demo.directory, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "repo", demo.fleet)

    title("1. A fleet in Git: ten clusters, workloads and policies. Place them")
    demo.show("git init -q -b main . && git add . && git commit -qm 'The fleet'", when="2026-01-12T09:00:00+00:00")
    demo.show("gitsched reconcile", lines=1)

    title("2. Frankfurt, the primary data centre, loses power: commit a taint for its clusters")
    for path in sorted((demo.fleet / "clusters").glob("fra-*.yaml")):
        path.write_text(tainted(path.read_text(encoding="utf-8")), encoding="utf-8")
    demo.show("git diff --shortstat")
    demo.show("git commit -qam 'Frankfurt: no power'", when="2026-01-12T14:30:00+00:00")

    title("3. Plan: what that commit changes, as text and as a page")
    demo.show("gitsched plan --report html=../plan.html", lines=8)

    title("4. Why does the shop's cart leave Frankfurt?")
    demo.show("gitsched explain -n shop deployment/cart --why-not fra-prod-1")

    title("5. What if Dublin, the backup, fails as well?")
    demo.show("gitsched simulate --lose dub-prod-1", lines=4)

    title("6. Reconcile: commit the new placements. Every decision is a commit")
    demo.show("gitsched reconcile", lines=1)
    demo.show("git log --format='%h %s' placements")

    fleet = demo.fleet.relative_to(Path.cwd()) if demo.fleet.is_relative_to(Path.cwd()) else demo.fleet
    program = demo.gitsched.relative_to(Path.cwd()) if demo.gitsched.is_relative_to(Path.cwd()) else demo.gitsched
    print(f"""
The plan as a page, for a browser: {demo.directory / "plan.html"}
The fleet at a glance:             git -C {fleet} show placements:README.md
Another question:                  {program} explain -C {fleet} -n payments deployment/api""")


def title(text: str) -> None:
    print(f"\n== {text}", flush=True)


def tainted(cluster: str) -> str:
    """Return the text of a Cluster with an additional taint; everything else stays unchanged."""
    if "\n  taints:\n" in cluster:
        return cluster.replace("\n  taints:\n", f"\n  taints:\n{TAINT}", 1)
    return cluster.replace("\nspec:\n", f"\nspec:\n  taints:\n{TAINT}", 1)


if __name__ == "__main__":
    main(Demo(ROOT / ".demo", Path(sys.executable).with_name("gitsched")))
