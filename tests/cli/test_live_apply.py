"""Limits of an apply: what happens when the API server stops to answer in the middle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from gitsched.kubectl.client import KubectlClient, KubectlOptions, classify_error
from gitsched.model.document import Body, Key
from gitsched.model.errors import GitschedError, Permanent, Temporary
from gitsched.model.merge_patch import ApplicablePatches, MergePatch
from gitsched.reconcile.output.live_apply import MAX_ATTEMPTS, MAX_CONSECUTIVE_FAILURES, LiveApplier, LiveRecords
from tests.local import PATIENCE

PATCHES = tuple(
    MergePatch(
        Key("sources.knative.dev", "KafkaSource", "shop", f"s{number}"), "sources.knative.dev/v1", ("status", "placements"), [{}]
    )
    for number in range(20)
)
RECORDS = LiveRecords("0" * 40, (), ())


class FailingStore:
    """Objects exist; every patch fails, and reading fails if `unreadable`."""

    def __init__(self, unreadable: bool = False) -> None:
        self.unreadable = unreadable
        self.reads = self.patches = 0

    def read(self, targets: Iterable[tuple[str, Key]]) -> Iterator[tuple[list[Key], dict[Key, Body] | GitschedError]]:
        for _, key in targets:
            self.reads += 1
            yield [key], Temporary("connection refused") if self.unreadable else {key: {"kind": key.kind}}

    def patch(self, patch: MergePatch, *, dry_run: bool = False) -> None:
        self.patches += 1
        raise Temporary("connection refused")


def test_patches_are_given_up_when_the_server_does_not_answer() -> None:
    store = FailingStore()
    report = LiveApplier(store, pause=lambda _: None).apply(RECORDS, ApplicablePatches(PATCHES))
    assert store.patches == MAX_ATTEMPTS * MAX_CONSECUTIVE_FAILURES
    assert {result.state for result in report.results} == {"temporary"}
    assert len(report.results) == len(PATCHES), "each object has a result"


def test_nothing_is_patched_when_nothing_can_be_read() -> None:
    store = FailingStore(unreadable=True)
    with pytest.raises(Temporary):
        LiveApplier(store, pause=lambda _: None).apply(RECORDS, ApplicablePatches(PATCHES))
    assert store.patches == 0
    assert store.reads == MAX_ATTEMPTS * MAX_CONSECUTIVE_FAILURES, (
        "each attempt ends early, since each read may wait for its timeout"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('Error from server (Forbidden): kafkasources "x" is forbidden', Permanent),
        ("Error from server (ServiceUnavailable): overloaded", Temporary),
        ("E1122 06:00:00.000000 1 memcache.go:265] couldn't get\nThe connection to the server x was refused - did you", Temporary),
        ('error: the server doesn\'t have a resource type "kafkasource"', Permanent),
    ],
)
def test_errors_of_kubectl_are_classified_by_their_last_line(text: str, error: type[GitschedError]) -> None:
    found = classify_error("get", text)
    assert isinstance(found, error)
    assert str(found) == f"kubectl get: {text.splitlines()[-1]}"


SCRIPTS = {
    "sleep 60": (0.2, Temporary, r"kubectl patch did not finish within 0\.2 s"),
    "exit 1": (PATIENCE, Permanent, r"kubectl patch: no output"),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_errors_of_kubectl_do_not_repeat_the_patch(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.kubectl.client._EXIT_TIMEOUT", 0)
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\n{script}\n")
    kubectl.chmod(0o755)
    timeout, expected, message = SCRIPTS[script]
    with pytest.raises(expected, match=f"^{message}$"):
        KubectlClient(KubectlOptions(timeout=timeout, executable=str(kubectl))).patch(PATCHES[0])


def test_a_kubectl_that_cannot_be_executed_is_an_error_that_remains(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text("")
    for path in (tmp_path / "kubectl", tmp_path, tmp_path / "kubectl/x", tmp_path / "none"):
        with pytest.raises(Permanent):
            KubectlClient(KubectlOptions(executable=str(path))).patch(PATCHES[0])
