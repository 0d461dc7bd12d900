"""What is built of a source tree."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.decide.catalog import KustomizedDocument, RawDocument
from gitsched.model.finding import Finding
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.failed_builds import FailedBuilds
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord


class BuiltRoots(NamedTuple):
    """What the roots that settings name build, and what delivery tools build.

    `resources` are the files whose objects are built, `inputs` other files that are no objects, such as charts; both include those of an
    earlier commit whose objects are kept. `failed`: there is an error. `unplaced` are objects that a delivery tool builds and that cannot
    be placed, `dependencies` files with objects on which builds depend. `depends_on_policies`: other policies may need other builds.
    `failures` are the builds that fail, None if they may not be known. `charts` are the directories of the charts that are rendered, by
    Flux as well. `unbuilt` are the roots that cannot be built by the files whose objects they build.
    """

    documents: tuple[RawDocument, ...] = ()
    findings: tuple[Finding, ...] = ()
    resources: frozenset[str] = frozenset()
    record: BuildRecord = NOTHING_BUILT
    failed: bool = False
    inputs: frozenset[str] = frozenset()
    unplaced: tuple[KustomizedDocument, ...] = ()
    dependencies: frozenset[str] = frozenset()
    depends_on_policies: bool = False
    failures: FailedBuilds | None = {}
    charts: frozenset[str] = frozenset()
    unbuilt: Mapping[str, tuple[str, ...]] = {}


NO_ROOTS = BuiltRoots()
