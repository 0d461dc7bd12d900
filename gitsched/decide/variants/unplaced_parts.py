"""Find workloads that no cluster gets because of how the source has them: kustomizations change them and nothing builds the result, or they
are defined differently in several files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import KustomizedDocument, make_duplicate_findings
from gitsched.decide.pod_amounts import runs_pods
from gitsched.model.document import Document
from gitsched.model.finding import Finding, locate_document
from gitsched.model.mistakes import KUSTOMIZE_UNBUILT
from gitsched.report.lines import format_key


def find_unbuilt(
    parts: Iterable[tuple[Document, KustomizedDocument]], is_known: Callable[[Document], bool], config: Config
) -> Iterator[Finding]:
    """Yield a warning about each object with pods that kustomizations change and that nothing builds. `is_known`: it is placed, or a
    policy selects it, which is another finding."""
    for document, part in parts:
        if part.code == "kustomized" and not part.chart and runs_pods(document, config) and not is_known(document):
            message = (
                f"{format_key(document.key)} is selected by no policy, so that it runs in no cluster: kustomize changes it, and nothing "
                f"builds the result: {part.describe()}; place the overlay with a Bundle (spec.path), or name it in "
                "source.kustomize.build"
            )
            yield Finding("warning", KUSTOMIZE_UNBUILT, message, locate_document(document), document.key.resource)


def find_unused_copies(copies: Iterable[tuple[Document, ...]], config: Config) -> Iterator[Finding]:
    """Yield warnings about objects with pods that are defined more than once and that no policy selects: nothing else names them."""
    running = [documents for documents in copies if runs_pods(documents[0], config)]
    return (finding._replace(severity="warning") for finding in make_duplicate_findings(running))
