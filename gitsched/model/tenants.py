"""The kind Tenant."""

from __future__ import annotations

from typing import Final

TENANT: Final = "Tenant"
TENANT_KIND: Final = ("gitsched.io", TENANT)
"""The group and kind of a Tenant, as `Key` begins with."""
