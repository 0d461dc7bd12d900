"""What delivery tools reconcile, as it was built."""

from __future__ import annotations

from collections.abc import Container

from gitsched.decide.catalog import KustomizedDocument, RawDocument
from gitsched.model.finding import Finding
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.built_roots import BuiltRoots
from gitsched.reconcile.builds.reconciled_path import NO_BUNDLED_PATHS, BundledPaths
from gitsched.reconcile.cache.failed_builds import FailedBuilds, merge_failed
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord


class ReconciledPaths(NamedTuple):
    """What tools reconcile.

    `documents` are the objects that were built, `unplaced` those that are not placed, `files` all files whose documents are parts of
    reconciled directories, and `inputs` other files that builds depend on. `directories` are those that are built here.
    `depends_on_policies` says that other policies may need other builds. `bundled` are those that Bundles build.
    `has_documents`: the commit has documents of tools. `failures` are as in BuiltRoots.
    `kept_inputs` are files without objects of their own that builds of an earlier commit read, whose objects are kept.
    `charts` are the directories of the charts that are rendered.
    """

    documents: tuple[RawDocument, ...] = ()
    unplaced: tuple[KustomizedDocument, ...] = ()
    findings: tuple[Finding, ...] = ()
    files: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()
    record: BuildRecord = NOTHING_BUILT
    depends_on_policies: bool = False
    failed: bool = False
    bundled: BundledPaths = NO_BUNDLED_PATHS
    has_documents: bool = False
    failures: FailedBuilds | None = {}
    kept_inputs: frozenset[str] = frozenset()
    charts: frozenset[str] = frozenset()

    def add_to(self, roots: BuiltRoots, named: Container[str]) -> BuiltRoots:
        """Return what settings name and what tools reconcile. Where both build an object, that of a directory in `named` counts."""
        chosen = [document for document in self.documents if document.origin is not None and document.origin.root in named]
        known = {document.identity for document in (*roots.documents, *chosen)}
        others = (document for document in self.documents if document.identity not in known)
        record = BuildRecord(
            roots.record.builder or self.record.builder,
            {**self.record.kept, **roots.record.kept},
            roots.record.helm or self.record.helm,
        )
        return BuiltRoots(
            (*roots.documents, *chosen, *others),
            tuple(dict.fromkeys((*roots.findings, *self.findings))),
            roots.resources | self.files,
            record,
            roots.failed or self.failed,
            roots.inputs | self.kept_inputs,
            self.unplaced,
            self.inputs,
            self.depends_on_policies,
            merge_failed(roots.failures, self.failures),
            self.charts,
            roots.unbuilt,
        )


NO_PATHS, NOTHING_RECONCILED = ReconciledPaths(), ReconciledPaths(has_documents=True)
