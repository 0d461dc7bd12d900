"""What a plan is computed from: the content of the source, the previous output, times and observations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gitsched.decide.guard.guard_settings import NO_GUARD_INPUT, GuardInput
from gitsched.model.observation import Observations
from gitsched.named_tuples import NamedTuple
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.decide.catalog import KustomizedDocument, RawDocument
    from gitsched.decide.incremental.plan_state import PlanTimes, PreviousOutput
    from gitsched.decide.last_valid_files import LastValidFile
    from gitsched.decide.skipped_workloads import SkippedWorkload
    from gitsched.model.finding import Finding
    from gitsched.model.holds import Releases
    from gitsched.model.progress import Progress
    from gitsched.model.rollouts import RolloutInput
    from gitsched.model.variants import TemplateVariants


class SourceTree(NamedTuple):
    """The content of a source tree.

    `file_findings` are the findings of each file by path; `other_findings` belong to no file that was read. `last_valid` maps the path of
    each broken file to its last valid bytes. `kustomized` are the documents that kustomizations build and change, `builds`
    says how kustomize roots were built. `variants` are what clusters get in place of templates: see
    `gitsched.model.variants`. `replaced` are documents as files have them, in whose place there is what builds make of them. `tenancy`
    says which tenant owns which document, and `tenants` are the Tenants that the next run trusts, as gitsched.json records them.
    `unverified` are files without documents that may have had some in the last run. `incomplete`: builds failed, whose objects are missing.
    """

    documents: tuple[RawDocument, ...]
    file_findings: Mapping[str, tuple[Finding, ...]]
    other_findings: tuple[Finding, ...]
    config: Config
    last_valid: Mapping[str, LastValidFile]
    kustomized: tuple[KustomizedDocument, ...] = ()
    builds: BuildRecord = NOTHING_BUILT
    variants: TemplateVariants = {}
    replaced: tuple[KustomizedDocument, ...] = ()
    unverified: tuple[str, ...] = ()
    tenancy: Tenancy | None = None
    tenants: tuple[Mapping[str, Any], ...] = ()
    incomplete: bool = False


class PlanInput(NamedTuple):
    """Everything that a plan is computed from.

    `list_allowed` returns the digests of withheld changes that are allowed. With `withholds`, changes over the limits of the guard are
    left out of the plan; otherwise they are only reported. `releases` are the held workloads and clusters that are released. `guard` is
    what the guard reads besides the settings of the source. `wakeups` are times after which the input is another one without a change of
    the source, because facts become stale. `adopted` says why objects that
    gitsched took over keep their placement, by key as text; with `fixed` every object keeps that of its record. `skipped` are workloads
    that have no documents or records here because of a bug, and whose files stay. `progress` is called with how many workloads are decided.
    `written` says that the files of the plan are written; otherwise only its decisions are read, and records need no content.
    """

    source: SourceTree
    previous: PreviousOutput
    times: PlanTimes
    observations: Observations = Observations()
    list_allowed: Callable[[], Collection[str]] = tuple
    withholds: bool = False
    releases: Releases | None = None
    guard: GuardInput = NO_GUARD_INPUT
    wakeups: tuple[datetime, ...] = ()
    rollouts: RolloutInput | None = None
    adopted: Mapping[str, str] = {}
    fixed: bool = False
    skipped: tuple[SkippedWorkload, ...] = ()
    progress: Progress | None = None
    written: bool = True
