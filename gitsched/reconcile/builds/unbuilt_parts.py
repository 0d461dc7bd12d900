"""Parts of Bundles and of directories that cannot be built: what was placed of them stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from gitsched.decide.catalog import UNBUILT, KustomizedDocument
from gitsched.decide.variants.kustomized_parts import describe_part
from gitsched.model.finding import format_names
from gitsched.reconcile.builds.built_roots import BuiltRoots
from gitsched.reconcile.bundles.bundle_parts import BundleParts
from gitsched.report.lines import format_key


def list_unbuilt(replaced: Iterable[KustomizedDocument], built: BuiltRoots, bundles: BundleParts) -> Iterator[KustomizedDocument]:
    """Yield the documents, as files have them, that builds read in vain: a directory cannot be built, or a Bundle for some clusters."""
    unplaced = {part.document.origin.path: part for part in built.unplaced if part.document.origin is not None}
    if not (unplaced or built.unbuilt or bundles.unbuilt):
        return
    for part in replaced:
        path = part.document.path
        failing = tuple(key for key in part.bundles if key in bundles.unbuilt)
        names = [f"kustomization {root}" for root in built.unbuilt.get(path, ())]
        if path in unplaced:
            yield part._replace(describe=partial(describe_part, unplaced[path]), code=UNBUILT, bundles=())
        elif names:
            yield part._replace(describe=partial(_describe, names), code=UNBUILT, bundles=())
        elif failing:
            yield part._replace(describe=partial(_describe, [format_key(key) for key in failing]), code=UNBUILT, bundles=failing)


def _describe(names: list[str]) -> str:
    return f"it is part of {format_names(names)}, which cannot be built"
