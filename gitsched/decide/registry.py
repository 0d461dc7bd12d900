"""The policy APIs, in the order in which they are asked. A new API is one package under apis/ and one line here."""

from __future__ import annotations

from gitsched.apis.engine import PolicyAPI
from gitsched.apis.gitsched.config import GROUP
from gitsched.apis.karmada.registration import API as KARMADA
from gitsched.apis.knative.registration import API as KNATIVE
from gitsched.apis.krake.registration import API as KRAKE
from gitsched.apis.ocm.registration import API as OCM

APIS: tuple[PolicyAPI, ...] = (KARMADA, KRAKE, OCM, KNATIVE)

RESERVED = frozenset({GROUP}).union(*(api.groups for api in APIS))
"""API groups whose documents are read by gitsched and never placed as they are."""
