"""Krake: schedule Applications to Clusters, Clusters to clouds and MagnumClusters to Projects by labels and weighted metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gitsched.apis.krake.constraints import ConstraintError as ConstraintError
    from gitsched.apis.krake.constraints import parse_label_constraint as parse_label_constraint
    from gitsched.apis.krake.constraints import parse_metric_constraint as parse_metric_constraint

__all__ = ["ConstraintError", "parse_label_constraint", "parse_metric_constraint"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gitsched.apis.krake import constraints  # imported lazily: most repositories have no Krake documents

    return getattr(constraints, name)
