"""URLs with which kustomizations name other repositories."""

from __future__ import annotations

import pytest

from gitsched.build.remote_base import RemoteBase, is_allowed, parse_remote_base

OID = "93468e78be8cb6980dec3cd97ef400de6d54064b"
HTTPS, NAME = "https://github.com/example/app", "github.com/example/app"

PINNED = {
    f"https://github.com/example/app/config/base?ref={OID}": (HTTPS, NAME, "config/base"),
    f"https://github.com/example/app/config/base/?ref={OID}": (HTTPS, NAME, "config/base"),
    f"https://github.com/example/app//config/base?ref={OID}": (HTTPS, NAME, "config/base"),
    f"https://github.com/example/app.git//config?ref={OID}&timeout=90s": (f"{HTTPS}.git", NAME, "config"),
    f"https://github.com/example/app.git/config?version={OID}": (f"{HTTPS}.git", NAME, "config"),
    f"https://github.com/example/app?ref={OID}": (HTTPS, NAME, ""),
    f"https://ada@github.com/example/app?ref={OID}": ("https://ada@github.com/example/app", NAME, ""),
    f"github.com/example/app/config?ref={OID}": (HTTPS, NAME, "config"),
    f"github.com/example/app//config?ref={OID}": (HTTPS, NAME, "config"),
    f"gh:example/app//config?ref={OID}": (HTTPS, NAME, "config"),
    f"git::https://github.com/example/app//config?ref={OID}": (HTTPS, NAME, "config"),
    f"git@github.com:example/app.git//config?ref={OID}": ("git@github.com:example/app.git", NAME, "config"),
    f"git@github.com:example/app/config?ref={OID}": ("git@github.com:example/app", NAME, "config"),
    f"git::git@github.com:example/app.git?ref={OID}": ("git@github.com:example/app.git", NAME, ""),
    f"ssh://git@git.example.com:2222/a/b.git/c?ref={OID}": (
        "ssh://git@git.example.com:2222/a/b.git",
        "git.example.com:2222/a/b",
        "c",
    ),
    f"https://git.example.com/group/sub/app.git//c?ref={OID}": (
        "https://git.example.com/group/sub/app.git",
        "git.example.com/group/sub/app",
        "c",
    ),
    f"https://dev.azure.com/org/project/_git/app/c?ref={OID}": (
        "https://dev.azure.com/org/project/_git/app",
        "dev.azure.com/org/project/_git/app",
        "c",
    ),
    f"file:///srv/git/app.git//c?ref={OID}": ("file:///srv/git/app.git", "/srv/git/app", "c"),
    f"https://raw.githubusercontent.com/example/app/{OID}/deploy/a.yaml": (HTTPS, NAME, "deploy/a.yaml"),
    f"https://github.com/example/app/raw/{OID}/deploy/a.yaml": (HTTPS, NAME, "deploy/a.yaml"),
    f"https://gitlab.com/group/sub/app/-/raw/{OID}/a.yaml": (
        "https://gitlab.com/group/sub/app",
        "gitlab.com/group/sub/app",
        "a.yaml",
    ),
    f"https://codeberg.org/example/app/raw/commit/{OID}/a.yaml": (
        "https://codeberg.org/example/app",
        "codeberg.org/example/app",
        "a.yaml",
    ),
}


@pytest.mark.parametrize(("text", "expected"), PINNED.items())
def test_a_pinned_base_names_a_repository_a_commit_and_a_path(text: str, expected: tuple[str, str, str]) -> None:
    url, name, path = expected
    assert parse_remote_base(text) == RemoteBase(url, name, OID, path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://github.com/example/app/config?ref=v1.2.0", "not pinned to a commit, but to v1.2.0"),
        (f"https://github.com/example/app/config?ref={OID[:12]}", "not pinned to a commit, but to 93468e78be8c"),
        ("github.com/example/app/config", "not pinned to a commit"),
        ("https://raw.githubusercontent.com/example/app/main/a.yaml", "names no commit"),
        ("https://github.com/example/app/releases/download/v1/a.yaml", "names no commit"),
        ("https://example.com/a.yaml", "names no commit"),
        ("s3::https://example.com/a", "not a URL that gitsched fetches from"),
        ("https://example.com/app", "names no repository"),
    ],
)
def test_what_is_not_pinned_is_explained(text: str, reason: str) -> None:
    found = parse_remote_base(text)
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.parametrize("text", ["../base", "base", "a.yaml", "apps.example/base", "./a@b", "base//web"])
def test_paths_are_no_remote_bases(text: str) -> None:
    assert parse_remote_base(text) is None


@pytest.mark.parametrize(
    ("prefixes", "allowed"),
    [
        (("github.com",), True),
        (("github.com/example",), True),
        (("github.com/example/",), True),
        (("github.com/example/app",), True),
        (("github.com/exam",), False),
        (("github.com/example/app/config",), False),
        (("hub.com",), False),
        ((), False),
        (None, True),
    ],
)
def test_prefixes_end_at_members_of_the_path(prefixes: tuple[str, ...] | None, allowed: bool) -> None:
    assert is_allowed(RemoteBase(HTTPS, NAME, OID, ""), prefixes) is allowed


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/../..//a",
        "https://github.com/example/../other/app//config",
        "https://github.com/example/./../other/app//config",
        "https://github.com/example/%2e%2e/other/app//config",
        "https://github.com/example/%2E./other/app.git/config",
        "https://github.com/example/..%2fother/app.git/config",
        "https://github.com/example/app%5c..//config",
        "https://github.com/example/a%252e//config",
        "https://github.com/example/a\\..//config",
        "https://github.com/example/a#/../..//config",
        "https://github.com/example/a b//config",
        "git@github.com:example/../other/app.git//config",
        "ssh://git@github.com/example/../other/app.git//config",
        "file:///srv/allowed/../other/.git//config",
        f"https://github.com/example/../other/raw/{OID}/a.yaml",
        f"https://raw.githubusercontent.com/example/../{OID}/a.yaml",
        "https://other.test#@github.com/example/app//config",
        "https://other.test\\@github.com/example/app//config",
        "https://other.test%00@github.com/example/app//config",
        "https://other.test%2f@github.com/example/app//config",
        "https://github.com\\.other.test/example/app//config",
        "ssh://-oProxyCommand=x@github.com/example/app.git//config",
        "ssh://-oProxyCommand=x/example/app.git//config",
    ],
)
def test_a_url_that_another_program_may_read_differently_names_nothing(text: str) -> None:
    found = parse_remote_base(text if OID in text else f"{text}?ref={OID}")
    assert isinstance(found, str)
    assert "does not accept" in found


def test_a_space_in_the_name_of_a_project_may_be_encoded() -> None:
    found = parse_remote_base(f"https://dev.azure.com/example/My%20Project/_git/app/config?ref={OID}")
    assert isinstance(found, RemoteBase)
    assert (found.name, found.path) == ("dev.azure.com/example/My%20Project/_git/app", "config")
