"""Demo: make a repository from examples/repo, place its workloads, and place them again after a power failure in Frankfurt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEMO = ROOT / ".demo"
FLEET = DEMO / "fleet"
GITSCHED = Path(sys.executable).with_name("gitsched")

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
    "XDG_CACHE_HOME": str(DEMO / "cache"),
}


def main() -> None:
    shutil.rmtree(DEMO, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "repo", FLEET)

    title("A fleet in Git: 10 clusters, its workloads and its policies")
    show("git", "init", "--quiet", ".")
    show("git", "symbolic-ref", "HEAD", "refs/heads/main")
    commit("The fleet", "2026-01-12T09:00:00+00:00")
    show(GITSCHED, "reconcile")

    title("Frankfurt, the primary data centre, loses power: commit a taint")
    for path in sorted((FLEET / "clusters").glob("fra-*.yaml")):
        path.write_text(tainted(path.read_text(encoding="utf-8")), encoding="utf-8")
    show("git", "diff", "--stat")
    commit("Frankfurt: no power", "2026-01-12T14:30:00+00:00")

    title("Plan: what that commit would change")
    show(GITSCHED, "plan")

    title("Reconcile: commit the new placements")
    show(GITSCHED, "reconcile")
    show("git", "log", "--format=%h %ad %s", "--date=iso-strict", "placements")

    title("Look around")
    fleet = FLEET.relative_to(Path.cwd()) if FLEET.is_relative_to(Path.cwd()) else FLEET
    print(f"""\
The decisions are on branch `placements` of {fleet}. Try, in that directory:

  git log --stat placements                       every decision is a commit
  git show placements:README.md                   the fleet at a glance
  git diff placements~1 placements -- placements  which workload went where
  git worktree add --detach ../placements placements   the files, as a delivery tool sees them
  kubectl kustomize ../placements/clusters/dub-prod-1
  {GITSCHED.relative_to(ROOT) if GITSCHED.is_relative_to(ROOT) else GITSCHED} --help""")


def tainted(cluster: str) -> str:
    """Return the text of a Cluster with an additional taint; everything else stays unchanged."""
    if "\n  taints:\n" in cluster:
        return cluster.replace("\n  taints:\n", f"\n  taints:\n{TAINT}", 1)
    return cluster.replace("\nspec:\n", f"\nspec:\n  taints:\n{TAINT}", 1)


def commit(subject: str, when: str) -> None:
    dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    show("git", "add", ".")
    show("git", "commit", "--quiet", "-m", subject, environment=ENVIRONMENT | dates)


def show(*command: str | Path, environment: dict[str, str] = ENVIRONMENT) -> None:
    """Print a command, run it in the repository of the fleet, and stop the demo if it fails."""
    words = [Path(word).name if isinstance(word, Path) else word for word in command]
    print("$", " ".join(f"'{word}'" if " " in word else word for word in words), flush=True)
    code = subprocess.run(list(map(str, command)), cwd=FLEET, env=environment, check=False).returncode
    if code:
        sys.exit(f"demo: {' '.join(words)} ended with {code}")


def title(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    main()
