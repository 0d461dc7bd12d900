"""Why a FederatedResourceQuota refuses a change, and how it would allow it."""

from __future__ import annotations

from gitsched.apis.karmada.interpreter import parse_quantities
from gitsched.model.document import Document, as_object
from gitsched.model.finding import locate_document
from gitsched.model.quantity import Quantity, format_resource_amount, get_unit
from gitsched.named_tuples import NamedTuple


class QuotaRefusal(NamedTuple):
    """Why a quota refuses a change: the message of Karmada's webhook, the quota, a resource, and how much of it is too much."""

    message: str
    quota: Document
    resource: str
    excess: int

    @property
    def amount(self) -> str:
        """How much more the quota would have to allow, as in "500m cpu"."""
        return f"{format_resource_amount(self.resource, self.excess, binary=False)} {self.resource}"

    def raise_quota(self) -> Document:
        """Return the quota with so much more."""
        spec = as_object(self.quota.body.get("spec"))
        limit = parse_quantities(spec.get("overall")).get(self.resource, Quantity(0))
        more = str(Quantity(limit.nano + self.excess * get_unit(self.resource), limit.binary))
        overall = {**as_object(spec.get("overall")), self.resource: more}
        return self.quota._replace(body={**self.quota.body, "spec": {**spec, "overall": overall}})

    def __str__(self) -> str:
        where = locate_document(self.quota)
        place = f" ({where.path}:{where.line})" if where is not None else ""
        return f"{self.quota.key.title}{place} allows {self.amount} less"
