"""Every input of the corpus, and some mutations of each: no traceback, and no document changes what is decided about others.

`make fuzz` looks for more, and writes what fails to the corpus.
"""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

from tests.search_depth import count_examples

from .__main__ import CORPUS, Session, read_corpus
from .garbage import GARBAGE, list_broken
from .targets import TARGETS
from .text_mutation import mutate_text

EXAMPLES = {"parse": 60, "settings": 40, "schedule": 12, "collect": 20, "history": 3}
"""Mutated inputs of each target, so that each takes half a second."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_corpus_has_no_failure(path: Path) -> None:
    assert TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.search
@pytest.mark.parametrize("name", TARGETS)
def test_mutations_have_no_failure(name: str, tmp_path: Path) -> None:
    random, corpus, session = Random(name), read_corpus(name), Session(name, 0, tmp_path)
    for _ in range(count_examples(EXAMPLES[name])):
        session.run(mutate_text(random.choice(corpus), random, corpus))
    assert session.documents > 0
    assert not session.failed, sorted(tmp_path.rglob("*.yaml"))


def test_a_failure_is_kept_once_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(data: bytes) -> int:
        raise ValueError(data) if data else AssertionError

    session = Session("parse", 0, tmp_path)
    session.check = fail
    for data in (b"a", b"b", b""):
        session.run(data)
    session.report()
    assert sorted(path.read_bytes() for path in tmp_path.rglob("*.yaml")) == [b"", b"a"]
    assert "3 inputs, 0 documents, 0 documents/s, 2 tracebacks (exit code 3), 1 broken promises" in capsys.readouterr().out


def test_garbage_is_garbage() -> None:
    broken = [bool(list_broken(data)) for data in GARBAGE]
    assert broken.count(True) > 10
