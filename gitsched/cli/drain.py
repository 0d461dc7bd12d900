"""gitsched drain: drain clusters, as edits of their documents."""

from __future__ import annotations

from gitsched.cli.maintenance import make_command

command = make_command(
    "drain",
    """Drain clusters: edit their documents in the worktree so that workloads leave them, and show what moves, what is held, what lacks
    replicas, and in which order to go on. Commits nothing.

    Adds the taint gitsched.io/drain with the effect NoExecute (Karmada) or NoSelect (Open Cluster Management) to spec.taints. Workloads
    that tolerate it stay.
    """,
    ("A cluster", "drain cloud-1"),
    ("What would happen if all clusters with a label are drained", "drain -l ownership=cloud --dry-run"),
)
