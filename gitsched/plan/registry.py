"""Every policy API, in the order in which they are asked. A new one is one package under apis/ and one line here."""

from __future__ import annotations

from gitsched.apis.gitsched.config import GROUP
from gitsched.apis.karmada.api import API as KARMADA
from gitsched.apis.knative.api import API as KNATIVE
from gitsched.apis.krake.api import API as KRAKE
from gitsched.apis.ocm.api import API as OCM
from gitsched.apis.world import Api

APIS: tuple[Api, ...] = (KARMADA, KRAKE, OCM, KNATIVE)

RESERVED = frozenset({GROUP}).union(*(api.groups for api in APIS))
"""API groups whose documents are read by gitsched and never placed as they are."""
