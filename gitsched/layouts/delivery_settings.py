"""List the settings of documents of Flux and Argo CD that say how objects are applied, and that no object of `gitsched export` has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gitsched.build.tool_fields import FIELD_ROWS
from gitsched.layouts.layout import LeftOut
from gitsched.layouts.repository_files import DeliveryDocument
from gitsched.model.document import as_object, get_field
from gitsched.render.delivery_tools import ARGO_DELIVERY, FLUX_DELIVERY, ArgoOptions

_OF_DELIVERY: Final = {"decryption", "kubeConfig", "project"}
"""Fields that say how objects are delivered, besides those without an effect on what these are."""


def list_lost_settings(document: DeliveryDocument) -> Iterator[LeftOut]:
    """Yield the fields of a Kustomization, Application or ApplicationSet that say only how, when or by whom its objects are applied, and
    whose values the objects of `gitsched export` do not have."""
    spec = as_object(document.body.get("spec"))
    if document.kind == "ApplicationSet":
        spec = as_object(get_field(spec, "template", "spec"))
    kind = "Kustomization" if document.kind == "Kustomization" else "Application"
    written = FLUX_DELIVERY if kind == "Kustomization" else {**ARGO_DELIVERY, "project": ArgoOptions().project}
    for row in FIELD_ROWS:
        for path in row.list_paths() if row.kind == kind else ():
            if row.treatment == "no effect" or path[0] in _OF_DELIVERY:
                value = get_field(spec, *path)
                if value is not None and (value or None) != (get_field(written, *path) or None):
                    yield LeftOut(document.place, ".".join(path))
