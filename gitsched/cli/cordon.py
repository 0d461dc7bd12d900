"""gitsched cordon: keep new workloads away from clusters, as edits of their documents."""

from __future__ import annotations

from gitsched.cli.maintenance import make_command

command = make_command(
    "cordon",
    """Cordon clusters: edit their documents in the worktree so that they get no new workloads, and keep those that they have.
    Commits nothing.

    Adds a taint with the effect NoSchedule (Karmada) or NoSelectIfNew (Open Cluster Management) to spec.taints.
    """,
    ("A cluster", "cordon cloud-1"),
    ("All clusters with a label", "cordon -l ownership=cloud"),
)
