"""Fetch commit statuses from a forge: what each cluster reports about the output commit it runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from gitsched.apis.gitsched.config import ForgeConfig
from gitsched.metrics.providers import ProviderRequest, find_token, join_url
from gitsched.metrics.queries import ProviderUnreachable
from gitsched.model.observation import DELIVERY_STATUS, DeliveryStatus, ObservationKey

if TYPE_CHECKING:
    from gitsched.metrics.http_client import HttpClient

_PAGE_SIZE, _MAX_PAGES = 100, 50


class ForgeStatusApi(NamedTuple):
    """How a forge is asked: the path of a commit's statuses below the address, where they are in the answer, and its words.

    `states` has the words that are final; `header` and `scheme` are what a token is sent in.
    """

    base_url: str
    path: str
    list_field: str
    context_field: str
    state_field: str
    states: Mapping[str, str]
    token_header: str
    token_scheme: str


_GITHUB = {"success": "Success", "failure": "Failure", "error": "Failure"}
FORGE_STATUS_APIS: Mapping[str, ForgeStatusApi] = {
    "github": ForgeStatusApi(
        "https://api.github.com", "repos/{}/commits/{}/status", "statuses", "context", "state", _GITHUB, "Authorization", "Bearer "
    ),
    "gitea": ForgeStatusApi(
        "", "api/v1/repos/{}/commits/{}/status", "statuses", "context", "status", _GITHUB, "Authorization", "token "
    ),
    "gitlab": ForgeStatusApi(
        "https://gitlab.com",
        "api/v4/projects/{}/repository/commits/{}/statuses",
        "",
        "name",
        "status",
        {"success": "Success", "failed": "Failure", "canceled": "Failure"},
        "PRIVATE-TOKEN",
        "",
    ),
}


def fetch_commit_statuses(
    forge: ForgeConfig,
    commits: Iterable[tuple[str, datetime]],
    wanted: Collection[str],
    timeout: float,
    hosts: Collection[str] | None,
) -> dict[ObservationKey, DeliveryStatus]:
    """The last final word of each wanted cluster: `commits` (id and date) are asked in their order, until all have
    spoken.

    The time of a word is the date of the commit that it is about. Raises Unreachable, whose text has nothing secret.
    """
    from gitsched.metrics.http_client import HttpClient  # httpx takes its time to load

    dialect = FORGE_STATUS_APIS[forge.type]
    address = forge.url or dialect.base_url
    token = find_token({"tokenFrom": forge.token_from})
    headers = ((dialect.token_header, dialect.token_scheme + token),) if token else ()
    pattern = re.compile("(.+)".join(map(re.escape, forge.context.split("{cluster}"))))
    deadline, waiting = time.monotonic() + timeout, set(wanted)
    found: dict[ObservationKey, DeliveryStatus] = {}
    with HttpClient(hosts, secure=address.lower().startswith("https:")) as client:
        for commit, date in commits:
            if not waiting:
                break
            path = dialect.path.format(quote(forge.repository, safe="" if forge.type == "gitlab" else "/"), commit)
            for context, word in _list_statuses(client, dialect, join_url(address, path), headers, deadline):
                match, state = pattern.fullmatch(context), dialect.states.get(word)
                if match is not None and state is not None and match[1] in waiting:
                    found[DELIVERY_STATUS, "", match[1], commit] = DeliveryStatus(state, date)
                    waiting.discard(match[1])
    return found


def _list_statuses(
    client: HttpClient, dialect: ForgeStatusApi, url: str, headers: tuple[tuple[str, str], ...], deadline: float
) -> Iterator[tuple[str, str]]:
    """Context and state of every status of a commit; a context's last one comes first, or is the only one."""
    for page in range(1, _MAX_PAGES + 1):
        answer = client.send(
            ProviderRequest(f"{url}?per_page={_PAGE_SIZE}&limit={_PAGE_SIZE}&page={page}", None, headers), deadline
        )
        entries = _parse_statuses(answer.data, dialect.list_field)
        yield from ((str(entry.get(dialect.context_field)), str(entry.get(dialect.state_field))) for entry in entries)
        if len(entries) < _PAGE_SIZE:
            break


def _parse_statuses(data: bytes, member: str) -> list[dict[str, Any]]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProviderUnreachable("its answer is no JSON") from error
    entries = body.get(member) if member and isinstance(body, dict) else body
    if entries is None:
        return []  # a commit without any status, as some forges say it
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ProviderUnreachable("its answer has no list of statuses")
    return entries
