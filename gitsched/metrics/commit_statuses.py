"""Fetch commit statuses from a forge: what each cluster reports about the output commit it runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gitsched.apis.gitsched.config import ForgeConfig
from gitsched.metrics.providers import ProviderRequest, find_token, join_url
from gitsched.metrics.queries import ProviderUnreachable
from gitsched.model.allow_list import STATUSES, AllowList
from gitsched.model.observation import DELIVERY_STATUS, DeliveryStatus, ObservationKey
from gitsched.model.time import parse_time
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.metrics.http_client import HttpClient

_PAGE_SIZE, _MAX_PAGES = 100, 50


class ForgeStatusApi(NamedTuple):
    """The commit status API of a forge: URL path, and the JSON fields of the response.

    `states` maps the final states of the forge to ours. `token_header` and `token_scheme` say how a token is sent. `time_fields` say when a
    status was set; the first one that there is counts.
    """

    base_url: str
    path: str
    list_field: str
    context_field: str
    state_field: str
    states: Mapping[str, str]
    token_header: str
    token_scheme: str
    time_fields: tuple[str, ...] = ("updated_at", "created_at")


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
        ("finished_at", "created_at"),
    ),
}


def fetch_commit_statuses(
    forge: ForgeConfig,
    commits: Iterable[tuple[str, datetime]],
    clusters: Collection[str],
    timeout: float,
    allow: AllowList,
) -> dict[ObservationKey, DeliveryStatus]:
    """Return the last final status of each cluster.

    `commits` (id and date) are queried in order until every cluster has a status. The time of a status is the date of its commit. Raises
    ProviderUnreachable, whose message contains no secrets, also if the operator does not allow the forge or its token.
    """
    from gitsched.metrics.http_client import HttpClient  # imported lazily: httpx is slow to load

    api = FORGE_STATUS_APIS[forge.type]
    address = forge.url or api.base_url
    token = find_token({"tokenFrom": forge.token_from}, address, allow, STATUSES)
    headers = ((api.token_header, api.token_scheme + token),) if token else ()
    pattern = re.compile("(.+)".join(map(re.escape, forge.context.split("{cluster}"))))
    deadline, missing = time.monotonic() + timeout, set(clusters)
    statuses: dict[ObservationKey, DeliveryStatus] = {}
    with HttpClient(allow, STATUSES, secure=address.lower().startswith("https:")) as client:
        for commit, date in commits:
            if not missing:
                break
            path = api.path.format(quote(forge.repository, safe="" if forge.type == "gitlab" else "/"), commit)
            for context, state_text, since in _list_statuses(client, api, join_url(address, path), headers, deadline):
                match, state = pattern.fullmatch(context), api.states.get(state_text)
                if match is not None and state is not None and match[1] in missing:
                    statuses[DELIVERY_STATUS, "", match[1], commit] = DeliveryStatus(state, date, since)
                    missing.discard(match[1])
                    if not missing:
                        break
    return statuses


def _list_statuses(
    client: HttpClient, api: ForgeStatusApi, url: str, headers: tuple[tuple[str, str], ...], deadline: float
) -> Iterator[tuple[str, str, datetime | None]]:
    """Yield context, state and time of each status of a commit. Of several statuses of one context the forge lists the last one first.

    Raises ProviderUnreachable if there are more statuses than are read.
    """
    for page in range(1, _MAX_PAGES + 1):
        response = client.send(
            ProviderRequest(f"{url}?per_page={_PAGE_SIZE}&limit={_PAGE_SIZE}&page={page}", None, headers), deadline
        )
        entries = _parse_statuses(response.data, api.list_field)
        for entry in entries:
            times = (parse_time(entry.get(field)) for field in api.time_fields)
            since = next((time.replace(microsecond=0) for time in times if time is not None), None)
            yield str(entry.get(api.context_field)), str(entry.get(api.state_field)), since
        if len(entries) < _PAGE_SIZE:
            return
    raise ProviderUnreachable(f"a commit has more than {_MAX_PAGES * _PAGE_SIZE} statuses: the others are not read")


def _parse_statuses(data: bytes, list_field: str) -> list[dict[str, Any]]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProviderUnreachable("its response is not valid JSON") from error
    entries = body.get(list_field) if list_field and isinstance(body, dict) else body
    if entries is None:
        return []  # some forges send null for a commit without statuses
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ProviderUnreachable("its response has no list of statuses")
    return entries
