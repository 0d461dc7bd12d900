"""Krake: applications onto clusters, clusters onto clouds, Magnum clusters onto projects, by labels and weighted metrics."""

from gitsched.apis.krake.constraints import ConstraintError, parse_label_constraint, parse_metric_constraint

__all__ = ["ConstraintError", "parse_label_constraint", "parse_metric_constraint"]
