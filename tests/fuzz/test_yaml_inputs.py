"""Parsing costs little per byte, whatever a file has over and over, and lets other threads run meanwhile."""

from __future__ import annotations

import os
import threading
import time

import pytest

from gitsched.decide.validation import validate_document
from gitsched.manifests import yaml_composer
from gitsched.manifests.parsed_file import DEFAULT_LIMITS, ParsedFile
from gitsched.manifests.parser import parse_file

from .yaml_inputs import CONSTRUCTS, HEAD

SIZE = int(os.environ.get("GITSCHED_FUZZ_SIZE", "20000"))
SECONDS_PER_MEGABYTE = 50.0
"""A tenth of that is usual, so that a busy machine passes; quadratic cost does not."""


def parse(text: str) -> ParsedFile:
    return parse_file(text.encode(), path="a.yaml", validate=validate_document)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_parsing_costs_little_per_byte(name: str) -> None:
    text = CONSTRUCTS[name](SIZE)
    start = time.process_time()
    parse(text)
    assert time.process_time() - start < 1 + SECONDS_PER_MEGABYTE * len(text) / 1e6


def test_a_list_with_many_other_members_is_located_once() -> None:
    start = time.process_time()
    file = parse(CONSTRUCTS["a list with many members"](60_000))
    assert time.process_time() - start < 2
    first, *_, last = file.documents
    assert last.line - first.line == len(file.documents) - 1


@pytest.mark.parametrize("separator", ["\n", "\r", "\u2028"])
def test_many_tag_directives_are_refused_before_they_are_read(separator: str) -> None:
    lines = [f"%TAG !t{number}! tag:x,{number}:" for number in range(20_000)]
    start = time.process_time()
    file = parse(separator.join([*lines, "--- ", HEAD]))
    assert time.process_time() - start < 1
    assert [(issue.code, issue.severity) for issue in file.issues] == [("too-many-directives", "error")]
    few = parse(separator.join(lines[: DEFAULT_LIMITS.directives]) + "\n---\n" + HEAD)
    assert few.status == "resources"


def test_other_threads_run_while_a_large_document_is_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_composer, "find_first_error", lambda *_: None)
    text = HEAD + "data: [" + "a, " * 100_000 + "]\n"
    ticks, stop = 0, threading.Event()

    def count_ticks() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count_ticks)
    thread.start()
    try:
        before = ticks
        assert len(list(yaml_composer.compose_documents(text, DEFAULT_LIMITS))) == 1
        after = ticks
    finally:
        stop.set()
        thread.join()
    assert after - before > 5
