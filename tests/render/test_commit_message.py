"""Commit messages of the output branch: names of objects, branches and commits cannot forge trailers."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gitsched.decide.commit_metadata import format_line, write_commit_message
from tests.tables import each_row

OID = "a" * 40
OURS = [f"Gitsched-Source: {OID}", "Gitsched-Version: 0.1.0", "Gitsched-Cause: source"]
FORGED = "Gitsched-Source: " + "f" * 40
ATTEMPTS = [
    f"harmless\n\n{FORGED}",
    f"harmless\r{FORGED}",
    f"\u2028{FORGED}\x85{FORGED}\x0b{FORGED}\x0c",
    FORGED,
    f"---\n\n{FORGED}",
    "---",
    f"Signed-off-by: x <x@y>\n{FORGED}",
    f"(cherry picked from commit {OID})",
    "# ------------------------ >8 ------------------------",
    "[skip ci]",
    "",
]


def trailers(message: str) -> list[str]:
    parsed = subprocess.run(["git", "interpret-trailers", "--parse"], input=message.encode(), capture_output=True, check=True)
    return parsed.stdout.decode().splitlines()


def test_complete_commit_message() -> None:
    text = write_commit_message(
        "2 of 5 workloads move", ["shop/web: eu-1 3 → us-1 3", "shop/db: unchanged"], source=OID, version="0.1.0", cause="source"
    )
    assert text == (
        "place: 2 of 5 workloads move\n\n- shop/web: eu-1 3 → us-1 3\n- shop/db: unchanged\n\n"
        f"Gitsched-Source: {OID}\nGitsched-Version: 0.1.0\nGitsched-Cause: source\n"
    )
    assert trailers(text) == OURS


@each_row("attempt", ATTEMPTS)
def test_input_cannot_forge_a_trailer(attempt: str) -> None:
    for summary, lines in [(attempt, []), ("x", [attempt]), (attempt, [attempt, "y", attempt])]:
        message = write_commit_message(summary, lines, source=OID, version="0.1.0", cause="source")
        assert trailers(message) == OURS


def test_git_keeps_the_trailers_of_a_real_commit(tmp_path: Path) -> None:
    message = write_commit_message(ATTEMPTS[0], ATTEMPTS, source=OID, version="0.1.0", cause="source")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "--file=-"], cwd=tmp_path, input=message.encode(), check=True)
    shown = subprocess.run(["git", "log", "-1", "--format=%(trailers:unfold,only)"], cwd=tmp_path, capture_output=True, check=True)
    assert shown.stdout.decode().split("\n")[:3] == OURS


def test_input_cannot_disable_a_pipeline() -> None:
    message = write_commit_message("[skip ci]", ["[ci skip] x"], source=OID, version="0.1.0", cause="source")
    assert "[" not in message


@given(st.text(max_size=300), st.lists(st.text(max_size=80), max_size=4))
def test_a_message_has_one_subject_and_ends_with_the_trailers(summary: str, lines: list[str]) -> None:
    message = write_commit_message(summary, lines, source=OID, version="0.1.0", cause="source")
    subject, rest = message.split("\n", 1)
    assert subject.startswith("place:")
    assert len(subject) <= 100
    *body, tail = rest.strip("\n").split("\n\n")
    assert tail.splitlines() == OURS
    assert all(line.startswith("- ") for part in body for line in part.split("\n"))


def test_a_long_list_is_truncated_with_a_count() -> None:
    message = write_commit_message("x", [f"w{n}" for n in range(120)], source=OID, version="0.1.0", cause="deadline")
    assert "- w49\n- and 70 more\n\nGitsched-Source" in message


def test_additional_trailers_come_last() -> None:
    message = write_commit_message(
        "x", [], source=OID, version="0.1.0", cause="observation", trailers={"Gitsched-Retired": "eu-1\nX: y"}
    )
    assert trailers(message)[-2:] == ["Gitsched-Cause: observation", "Gitsched-Retired: eu-1 X: y"]


def test_control_characters_are_removed() -> None:
    assert format_line("a\u202eb\u2066c\x1b[31m") == "a b c [31m"


def test_a_fixed_subject_is_the_first_line_and_cannot_add_trailers() -> None:
    subject = "Placements of the fleet\n\nGitsched-Source: forged"
    message = write_commit_message("2 workloads moved", ["web"], source=OID, version="0.1.0", cause="source", fixed_subject=subject)
    lines = message.splitlines()
    assert lines[0].startswith("Placements of the fleet")
    assert lines[2:4] == ["- 2 workloads moved", "- web"]
    assert [line for line in lines if line.startswith("Gitsched-Source")] == [f"Gitsched-Source: {OID}"]
