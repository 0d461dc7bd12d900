"""The kind Tenant."""

from __future__ import annotations

from typing import Final

TENANT: Final = "Tenant"
TENANT_KIND: Final = ("gitsched.io", TENANT)
"""The group and kind of a Tenant, as `Key` begins with."""
TENANT_CHANGED: Final = "tenant-changed"
"""The code of findings about Tenants that differ from those of the trusted side."""
TENANT_LIMIT: Final = "tenant-limit"
"""The code of the finding that a workload exceeds a limit of its Tenant."""
