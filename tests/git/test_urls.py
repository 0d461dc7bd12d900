"""Validate, redact and compare repository URLs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitsched.git import Repository, process, remote_refs
from gitsched.git.urls import check_url, identify_repository, is_url, redact
from gitsched.model.errors import Permanent

REFUSED = [
    "",
    " ",
    "-x",
    "--upload-pack=touch /x",
    "-oProxyCommand=touch /x",
    "ext::sh -c touch% /x",
    "ext::https://example.org/",
    "fd::17",
    "transport::address",
    "http::https://example.org/x",
    "a+b.c-d::x",
    "git://example.org/x",
    "git+ssh://example.org/x",
    "ftp://example.org/x",
    "ftps://example.org/x",
    "rsync://example.org/x",
    "javascript://example.org/x",
    "http://example.org/x",
    "http://127.0.0.1.example.org/x",
    "http://localhost.example.org/x",
    "http://127.0.0.1@example.org/x",
    "HTTP://example.org/x",
    "https://",
    "https:///x",
    "https://-x.example.org/x",
    "https://example.org:port/x",
    "https://[::1/x",
    "https://example.org/x\n",
    "https://example.org/\nx",
    "https://example.org/%0aHost:%20x",
    "https://example.org/%0D%0a",
    "https://example.org/%00",
    "https://example.org/\x00",
    "https://example.org/\x1b[31m",
    "https://example.org/\u2028",
    " https://example.org/x",
    "https://example.org/x ",
    "https://example.org/" + "x" * 5000,
    "ssh://-oProxyCommand=touch/x",
    "ssh://-oProxyCommand=touch@example.org/x",
    "ssh://git@-x/x",
    "ssh://example.org/-x",
    "ssh:///x",
    "-git@example.org:x",
    "git@-oProxyCommand=x:y",
    "git@example.org:-x",
    "host:-x",
    "file://host/x",
    "file://",
    "file:",
    "x",
    "../x",
    "./-x",
    "~/x",
    "C::x",
    "\\\\host\\share",
]
TAKEN = [
    "https://example.org/x.git",
    "HTTPS://example.org/x.git",
    "https://user:token@example.org:8443/x/y.git",
    "https://example.org/with%20space",
    "https://[2001:db8::1]/x",
    "ssh://git@example.org:22/x.git",
    "ssh://example.org/~me/x.git",
    "git@example.org:group/x.git",
    "example.org:x.git",
    "git@[2001:db8::1]:x.git",
    "file:///srv/x.git",
    "/srv/x.git",
    "http://127.0.0.1:8080/x",
    "http://localhost/x",
    "http://[::1]:3000/x",
]


@pytest.mark.parametrize("url", REFUSED)
def test_unsafe_urls_are_rejected_before_a_process_starts(url: str, monkeypatch, work: Path):
    repository = Repository(work)
    head = repository.resolve("HEAD")
    monkeypatch.setattr(process.subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    for attempt in (
        lambda: check_url(url),
        lambda: remote_refs.read_remote_ref(url, "refs/heads/main"),
        lambda: remote_refs.fetch(repository, url, ["refs/heads/main:refs/heads/x"]),
        lambda: remote_refs.push(repository, url, "refs/heads/x", head, None),
    ):
        with pytest.raises(Permanent) as caught:
            attempt()
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("url", TAKEN)
def test_safe_urls_are_accepted(url: str):
    assert check_url(url) == url


@pytest.mark.parametrize(
    "ref", ["--all", "main", "refs/heads/../../config", "refs/heads/*", "refs/heads/a b", "refs/heads/a\n", "-d"]
)
def test_invalid_refs_are_rejected_before_a_process_starts(ref: str, monkeypatch, work: Path):
    repository = Repository(work)
    head = repository.resolve("HEAD")
    monkeypatch.setattr(process.subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    for attempt in (
        lambda: remote_refs.read_remote_ref("/srv/x", ref),
        lambda: remote_refs.fetch(repository, "/srv/x", [f"{ref}:refs/heads/x"]),
        lambda: remote_refs.fetch(repository, "/srv/x", [f"+refs/heads/x:{ref}"]),
        lambda: remote_refs.push(repository, "/srv/x", ref, head, None),
    ):
        with pytest.raises(Permanent):
            attempt()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fatal: https://ada:s3cret@example.org/x", "fatal: https://***@example.org/x"),
        ("'https://s3cret@example.org/x'", "'https://***@example.org/x'"),
        ("https://ada:s3cr@et@example.org/x", "https://***@example.org/x"),
        ("HTTPS://s3cret@example.org", "HTTPS://***@example.org"),
        ("ssh://git:s3cret@example.org/x", "ssh://git:***@example.org/x"),
        ("ssh://git@example.org/x git@example.org:x", "ssh://git@example.org/x git@example.org:x"),
        ("https://example.org/x?access_token=s3cret&a=b", "https://example.org/x?access_token=***&a=b"),
        ("Authorization: Basic s3cret", "Authorization: Basic ***"),
        ("https://example.org/a@b", "https://example.org/a@b"),
    ],
)
def test_secrets_are_redacted(text: str, shown: str):
    assert redact(text) == shown


def test_an_existing_path_is_not_a_url(tmp_path: Path, monkeypatch):
    assert [is_url(name) for name in ("https://x/y", "git@x:y", "x:y", "ext::x", "/srv/x", "./x:y", "x/y:z", "x", ".")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
        False,
        False,
    ]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x:y").mkdir()
    assert not is_url("x:y")


def test_two_urls_of_one_repository_have_one_id():
    for same in (
        [
            "https://example.org/a/b",
            "https://u:p@example.org:8443/a/b.git",
            "ssh://git@example.org/a/b.git/",
            "git@Example.org:a/b.git",
        ],
        ["/srv/a", "file:///srv/a", "/srv/a/.git", "/srv/x/../a/"],
    ):
        assert len({identify_repository(url) for url in same}) == 1
    different = ["https://example.org/a", "https://example.org/b", "https://example.com/a", "/srv/a", "/srv/a.git", "/srv"]
    assert len({identify_repository(url) for url in different}) == len(different)


def test_git_inherits_credentials_but_no_variables_that_redirect_it(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "credential.helper")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "mine")
    kept = {"SSH_AUTH_SOCK": "/s", "GIT_SSH_COMMAND": "ssh -i k", "HTTPS_PROXY": "p", "MY_TOKEN": "t", "GIT_ASKPASS": "a"}
    dropped = [
        "DIR",
        "INDEX_FILE",
        "WORK_TREE",
        "OBJECT_DIRECTORY",
        "ALTERNATE_OBJECT_DIRECTORIES",
        "NAMESPACE",
        "TRACE",
        "TRACE_CURL",
    ]
    dropped += [
        "COMMON_DIR",
        "CONFIG_PARAMETERS",
        "ALLOW_PROTOCOL",
        "EXTERNAL_DIFF",
        "SSL_NO_VERIFY",
        "CURL_VERBOSE",
        "SHALLOW_FILE",
    ]
    for name, value in {**kept, **{f"GIT_{name}": "x" for name in dropped}}.items():
        monkeypatch.setenv(name, value)
    environment = process.clean_environment([("protocol.allow", "never")])
    assert {name: environment[name] for name in kept} == kept
    assert not {f"GIT_{name}" for name in dropped} & environment.keys()
    assert environment["GIT_CONFIG_COUNT"] == "2"
    assert (environment["GIT_CONFIG_KEY_0"], environment["GIT_CONFIG_KEY_1"]) == ("credential.helper", "protocol.allow")
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert environment["HOME"] == os.environ["HOME"]


@pytest.mark.parametrize("text", ["a" * 300_000, "a+" * 300_000 + "://", "https://" + "a@" * 300_000, "x://" * 100_000])
def test_redaction_takes_linear_time(text: str):
    """The output of a server can be long."""
    assert len(redact(text)) <= len(text)
