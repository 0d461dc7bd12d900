"""The operator's allow-list: which hosts are contacted, and which tokens are read and sent where."""

from __future__ import annotations

import pytest

from gitsched.model.allow_list import METRICS, STATUSES, AllowList, parse_host_rule, parse_remote, parse_token_rule
from tests.tables import each_row

HOSTS = """
    url                             | allowed                     | verdict
    https://prom.example.com        | prom.example.com            | allowed
    https://PROM.example.com.:9090/ | prom.example.com            | allowed
    https://a.b.example.com         | *.example.com               | allowed
    https://prom.example.com:9090   | prom.example.com:9090       | allowed
    https://prom.example.com        | prom.example.com:443        | allowed
    https://prom.example.com        | https://prom.example.com    | allowed
    http://127.0.0.1:9090           | 127.0.0.1                   | allowed
    http://[::1]:9090               | [::1]:9090                  | allowed
    http://localhost                | localhost                   | allowed
    http://prom.monitoring.svc:9090 | http://prom.monitoring.svc  | allowed
    https://prom.example.com:9091   | prom.example.com:9090       | does not allow its host
    https://prom.example.com        |                             | does not allow its host
    http://127.0.0.1:9090           |                             | does not allow its host
    https://example.com             | *.example.com               | does not allow its host
    https://notexample.com          | *.example.com               | does not allow its host
    https://example.com@evil.com    | example.com                 | does not allow its host evil.com
    https://example.com.evil.com    | example.com                 | does not allow its host
    http://prom.example.com         | prom.example.com            | only https is allowed
    http://prom.example.com         | https://prom.example.com    | only https is allowed
    http://127.0.0.1.example.com    | *.example.com               | only https is allowed
    ftp://prom.example.com          | prom.example.com            | not an http or https URL
"""
TOKENS = """
    source          | url                      | allowed                         | verdict
    env PROM        | https://prom.example.com | env:PROM                        | allowed
    env PROM        | https://prom.example.com | env:PROM@prom.example.com       | allowed
    file /run/token | https://prom.example.com | file:/run/token                 | allowed
    file /run//token | https://prom.example.com | file:/run/token@*.example.com  | allowed
    env PROM        | http://127.0.0.1:80      | env:PROM                        | allowed
    env PROM        | https://prom.example.com |                                 | does not allow reading the environment variable PROM
    env AWS         | https://prom.example.com | env:PROM                        | does not allow reading the environment variable AWS
    env prom        | https://prom.example.com | env:PROM                        | does not allow reading the environment variable prom
    file PROM       | https://prom.example.com | env:PROM                        | does not allow reading the file PROM
    file /run/../etc/shadow | https://prom.example.com | file:/run/token         | does not allow reading the file /run/../etc/shadow
    env PROM        | https://evil.com         | env:PROM@prom.example.com       | does not allow sending the token
    env PROM        | http://prom.example.com  | env:PROM                        | sent over https only
"""


def read_rows(table: str) -> list[list[str]]:
    return [[column.strip() for column in line.split("|")] for line in table.strip().splitlines()[1:]]


@each_row("row", read_rows(HOSTS))
def test_only_hosts_of_the_list_are_contacted_and_only_over_https(row: list[str]) -> None:
    url, allowed, verdict = row
    rules = tuple(map(parse_host_rule, allowed.split()))
    refusal = AllowList(metrics=rules).find_host_refusal(url, METRICS)
    assert verdict in (refusal or "allowed")
    assert AllowList(metrics=rules).find_host_refusal(url, STATUSES), "a host is allowed for one purpose"


@each_row("row", read_rows(TOKENS))
def test_only_tokens_of_the_list_are_read_and_sent_to_their_hosts(row: list[str]) -> None:
    (kind, name), url, allowed, verdict = row[0].split(), *row[1:]
    found = AllowList(tokens=tuple(map(parse_token_rule, allowed.split()))).find_token_refusal({kind: name}, url)
    assert verdict in (found or "allowed")


def test_the_refusal_says_which_option_and_which_line_would_allow_it() -> None:
    nothing = AllowList()
    assert nothing.find_host_refusal("https://prom.example.com/x?secret", METRICS) == (
        "the operator does not allow its host prom.example.com; to allow it: --metrics-host prom.example.com, or prom.example.com in "
        "allow.hosts.metrics of the operator's settings"
    )
    assert nothing.find_token_refusal({"env": "PROM"}, "https://prom.example.com") == (
        "the operator does not allow reading the environment variable PROM; to allow it: --allow-token env:PROM@prom.example.com, or "
        "env: PROM in allow.tokens of the operator's settings"
    )


@each_row("text", ["", "*", "*prom", "a b", "prom/x", "ftp://prom", "prom:0", "prom:70000", "prom:x", "[::1]:x", "user@prom"])
def test_a_malformed_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_host_rule(text)


@pytest.mark.parametrize("text", ["", "PROM", "env:", "env:A-B", "env:A=B", "file:token", "file:", "env:PROM@", "env:PROM@a/b"])
def test_a_malformed_token_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_token_rule(text)


@pytest.mark.parametrize(
    ("prefix", "name", "expected"),
    [
        ("github.com", "github.com/example/app", True),
        ("github.com/example", "github.com/example/app", True),
        ("github.com/example/", "github.com/example", True),
        ("github.com/example", "github.com/example2/app", False),
        ("github.com", "github.com.evil.com/a", False),
    ],
)
def test_a_prefix_allows_repositories_below_it(prefix: str, name: str, expected: bool) -> None:
    assert AllowList(remotes=(parse_remote(prefix),)).allows_remote(name) == expected
