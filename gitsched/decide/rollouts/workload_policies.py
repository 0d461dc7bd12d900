"""What the policies of workloads say about clusters that these workloads are not, or no longer, placed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.rendered_tree import BlobLookup, RenderCache, render_workload
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.delivery import DeliveryConfig
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import TemplateVariants


class WorkloadPolicies:
    """Asks the engines of the policy APIs. `templates` may be read on demand, and `find_blob` returns the blob of a path in the previous
    output."""

    def __init__(
        self,
        engines: Iterable[PolicyEngine],
        templates: Mapping[Key, Document],
        variants: TemplateVariants,
        delivery: DeliveryConfig,
        find_blob: BlobLookup,
    ) -> None:
        self._engines = {engine.name: engine for engine in engines}
        self.templates, self.variants, self._delivery, self._find_blob = templates, variants, delivery, find_blob

    def may_place(self, outcome: Outcome, cluster: str) -> bool:
        """Return whether the policy of a workload may choose a cluster, in whatever state the cluster is."""
        engine, template = self._engines.get(outcome.api), self.templates.get(outcome.key)
        return engine is not None and template is not None and engine.may_place(template, cluster)

    def render(self, outcome: Outcome, target: TargetCluster) -> WorkloadFiles | None:
        """Return the files of a workload if its only target is this one; None if the manifest there cannot be told."""
        engine, template = self._engines.get(outcome.api), self.templates.get(outcome.key)
        if engine is None or template is None:
            return None
        plain = target._replace(body=None, bodies=(), evicting=False, keeps_manifest=False)
        customized = engine.customize(template, plain)
        if customized.keeps_manifest:
            return None
        alone = outcome._replace(targets=(customized,))
        unwritten = RenderCache(written=False)
        return render_workload(alone, template, False, self._find_blob, unwritten, self.variants, self._delivery)
