"""gitsched uncordon: end drains and cordons, as edits of the documents of clusters."""

from __future__ import annotations

from gitsched.cli.maintenance import make_command

command = make_command(
    "uncordon",
    """End a drain or a cordon: remove the taints of `gitsched drain` and `gitsched cordon` from the documents in the worktree. Commits
    nothing.

    Other taints stay, and are listed with their lines. What left returns by `gitsched rebalance`, as the output says.
    """,
    ("A cluster", "uncordon cloud-1"),
    ("All clusters with a label", "uncordon -l ownership=cloud"),
)
