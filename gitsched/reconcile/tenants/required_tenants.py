"""Refuse to write while it is not known what tenants may do: Tenants that the operator requires are missing, or one cannot be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Final

from gitsched.decide.plan_input import SourceTree
from gitsched.model.allow_list import OPERATOR_FILE
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, format_names

REQUIRED: Final = "tenant-required"
UNREADABLE: Final = "tenant-unreadable"


def check_required_tenants(source: SourceTree, required: Iterable[str], *, refuses: bool) -> SourceTree:
    """Return the source with a finding if the rules of tenants are not known.

    With `refuses`, as in a run that writes, raise Permanent instead: without its rules a tenant could do what the platform can.
    """
    missing = list_missing(required, [] if source.tenancy is None else [tenant.name for tenant in source.tenancy.paths.own])
    if missing:
        message = (
            f"the operator requires Tenants that the source does not define: {format_names(missing)}; define them, or remove them from "
            f"tenants.required in {OPERATOR_FILE}"
        )
        source = source._replace(other_findings=(*source.other_findings, Finding("error", REQUIRED, message)))
    problems = [finding for finding in source.other_findings if finding.code in (REQUIRED, UNREADABLE)]
    if refuses and problems:
        raise Permanent(f"nothing is written: {'; '.join(map(str, problems[:3]))}")
    return source


def list_missing(required: Iterable[str], names: Collection[str]) -> list[str]:
    """Return the patterns of required Tenants that none of the names matches."""
    return [pattern for pattern in required if not any(fnmatchcase(name, pattern) for name in names)]
