"""Protocols of the metrics providers: request, token and response parser of each (one class and one line in PROTOCOLS)."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote_plus, urlunsplit

from gitsched.metrics.queries import InvalidMetricValue, ProviderUnreachable
from gitsched.model.allow_list import AllowList, Purpose, name_token_source
from gitsched.model.document import as_object
from gitsched.model.urls import parse_http_url
from gitsched.named_tuples import NamedTuple

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MAX_NUMBER_LENGTH = 400


def parse_number(value: object, metric: str) -> float:
    """Parse a finite number: a JSON number, a boolean (1 or 0) or a decimal string. Raises InvalidMetricValue."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _MAX_NUMBER_LENGTH or not _NUMBER.fullmatch(text):
            raise InvalidMetricValue(f"Invalid value for metric '{metric}'")
        number = float(text)
    elif isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    else:
        raise InvalidMetricValue(f"Invalid value for metric '{metric}'")
    if not math.isfinite(number):
        raise InvalidMetricValue(f"The value of the metric '{metric}' is not finite")
    return number


_MAX_TOKEN_SIZE = 1 << 14


def find_token(spec: Mapping[str, Any], url: object, allow: AllowList, purpose: Purpose) -> str:
    """Return the token to send to `url`, from `tokenFrom`, else `token`, else "".

    This is the only place that reads a variable or file which a document names. Raises ProviderUnreachable if the operator does not allow
    the host or the token, before anything is read, and if there is no token.
    """
    source = as_object(spec.get("tokenFrom"))
    refusal = allow.find_host_refusal(str(url), purpose) or allow.find_token_refusal(source, str(url))
    if refusal:
        raise ProviderUnreachable(refusal)
    kind, name = name_token_source(source)
    if not name:
        return _check_token(str(spec.get("token") or ""))
    if kind == "env":
        token, missing = os.environ.get(name, ""), f"the environment variable {name} is not set"
    else:
        token, missing = _read_token_file(name), f"the file {name} contains no token"
    if not token.strip():
        raise ProviderUnreachable(missing)
    return _check_token(token.strip())


def _read_token_file(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_TOKEN_SIZE + 1)
        text = data.decode()
    except (OSError, ValueError):
        return ""
    if len(data) > _MAX_TOKEN_SIZE:
        raise ProviderUnreachable(f"the file {path} has more than {_MAX_TOKEN_SIZE} bytes, so that it contains no token")
    return text


def _check_token(token: str) -> str:
    """Reject a token with characters that a header cannot contain, because httpx would quote it in its error message."""
    if not all("!" <= character <= "~" or character == " " for character in token):
        raise ProviderUnreachable("its token contains characters that are not allowed in a header")
    return token


class ProviderRequest(NamedTuple):
    """An HTTP request; `body` is JSON, None for a GET."""

    url: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


class ProviderResponse(NamedTuple):
    """The body of a 2xx response and its media type, in lower case and without parameters."""

    media_type: str
    data: bytes


class ProviderProtocol(Protocol):
    """Interface of a provider protocol. `title` is its name in messages."""

    title: str

    def make_request(self, spec: Mapping[str, Any], metric: str, token: str, /) -> ProviderRequest:
        """Return the request for a metric; `spec` is the provider's configuration. Raises ProviderUnreachable for an invalid URL."""
        ...

    def parse_response(self, response: ProviderResponse, metric: str) -> float:
        """Return the finite number in a response. Raises InvalidMetricValue, or ProviderUnreachable for a malformed response."""
        ...


class PrometheusProtocol:
    """Prometheus' instant query API. Only a series whose `__name__` is the metric counts, so expressions are not supported."""

    title = "Prometheus"

    def make_request(self, spec: Mapping[str, Any], metric: str, token: str, /) -> ProviderRequest:
        return ProviderRequest(
            join_url(spec["url"], "api/v1/query", f"query={quote_plus(metric, safe=_QUERY_SAFE)}"), None, make_bearer_header(token)
        )

    def parse_response(self, response: ProviderResponse, metric: str) -> float:
        body = _parse_json(response, metric)
        data = body.get("data") if isinstance(body, dict) else None
        entries = data.get("result") if isinstance(data, dict) else None
        for entry in filter(None, entries if isinstance(entries, list) else ()):
            labels = entry.get("metric") if isinstance(entry, dict) else None
            if not isinstance(labels, dict) or "__name__" not in labels:
                break  # an expression, or not a vector
            if labels["__name__"] == metric:
                value = entry.get("value")
                return parse_number(value[1] if isinstance(value, list) and len(value) > 1 else None, metric)
        raise InvalidMetricValue(f"Metric '{metric}' not in Prometheus response")


class KsqlProtocol:
    """The query endpoint of ksqlDB on Kafka."""

    title = "Kafka"

    def make_request(self, spec: Mapping[str, Any], metric: str, token: str, /) -> ProviderRequest:
        statement = f"SELECT {spec['value_column']} FROM {spec['table']} WHERE {spec['comparison_column']} = '{metric}';"  # noqa: S608 - Krake's own statement; documents of a trusted branch only
        return ProviderRequest(
            join_url(spec["url"], "query"), {"ksql": statement, "streamsProperties": {}}, make_bearer_header(token)
        )

    def parse_response(self, response: ProviderResponse, metric: str) -> float:
        body = _parse_json(response, metric)
        row = body[1].get("row") if isinstance(body, list) and len(body) > 1 and isinstance(body[1], dict) else None
        columns = row.get("columns") if isinstance(row, dict) else None
        if not isinstance(columns, list) or not columns:
            raise InvalidMetricValue(f"The value of the metric '{metric}' cannot be read from the KSQL response")
        return parse_number(columns[0], metric)


class InfluxProtocol:
    """InfluxDB 2: a Flux query for the last value of the past hour, with a response in annotated CSV."""

    title = "InfluxDB"

    def make_request(self, spec: Mapping[str, Any], metric: str, token: str, /) -> ProviderRequest:
        flux = (
            f"from(bucket: {_quote_flux_string(spec['bucket'])})\n|> range(start: -1h)\n"
            f"|> filter(fn: (r) => r._measurement == {_quote_flux_string(metric)})\n|> last()\n"
        )
        dialect = {
            "header": True,
            "delimiter": ",",
            "annotations": ["datatype", "group", "default"],
            "commentPrefix": "#",
            "dateTimeFormat": "RFC3339",
        }
        url = join_url(spec["url"], "api/v2/query", f"org={quote_plus(spec['org'])}")
        return ProviderRequest(
            url, {"query": flux, "dialect": dialect}, (("Authorization", f"Token {token}"), ("Accept", "application/csv"))
        )

    def parse_response(self, response: ProviderResponse, metric: str) -> float:
        try:
            rows = list(csv.reader(io.StringIO(response.data.decode(), newline="")))
        except (UnicodeDecodeError, csv.Error) as error:
            raise ProviderUnreachable("its response is not valid CSV") from error
        annotations: dict[str, list[str]] = {}
        header: list[str] = []
        for row in rows:
            if not row:
                annotations, header = {}, []
            elif row[0].startswith("#"):
                annotations[row[0]] = row
            elif not annotations.keys() >= {"#datatype", "#group"}:
                raise ProviderUnreachable("its response is not annotated CSV")
            elif not header:
                header = row
            elif len(row) < len(header):
                raise ProviderUnreachable("a record in its response is incomplete")
            else:
                types, defaults = (dict(zip(header, annotations.get(note, ()), strict=False)) for note in ("#datatype", "#default"))
                return _parse_record(dict(zip(header, row, strict=False)), types, defaults, metric)
        raise InvalidMetricValue(f"Metric '{metric}' not in InfluxDB response")


PROTOCOLS: Mapping[str, ProviderProtocol] = {
    "prometheus": PrometheusProtocol(),
    "kafka": KsqlProtocol(),
    "influx": InfluxProtocol(),
}

_QUERY_SAFE = "-._~!$'()*,:@/?"


def make_bearer_header(token: str) -> tuple[tuple[str, str], ...]:
    """Return the header for a bearer token; no header for an empty token."""
    return (("Authorization", f"Bearer {token}"),) if token else ()


def join_url(url: object, path: str, query: str = "") -> str:
    """Append a path to a provider's URL and replace its query. Raises ProviderUnreachable for an invalid URL."""
    parts = parse_http_url(str(url))
    if parts is None:
        raise ProviderUnreachable("its address is not an http or https URL")
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{path}", query, ""))


def _parse_json(response: ProviderResponse, metric: str) -> Any:
    if response.media_type != "application/json" and not ("/" in response.media_type and response.media_type.endswith("+json")):
        raise ProviderUnreachable("its response does not have a JSON media type")
    try:
        return json.loads(response.data.decode())  # RFC 8259: UTF-8 without a byte order mark
    except (ValueError, RecursionError) as error:
        raise InvalidMetricValue(f"The response for the metric '{metric}' is not valid JSON") from error


def _parse_record(record: Mapping[str, str], types: Mapping[str, str], defaults: Mapping[str, str], metric: str) -> float:
    """Return the value of a record, or its column's default if it is empty. The value must match the type of its column."""
    if "error" in record:
        raise ProviderUnreachable("it answered with an error")
    kind, text = types.get("_value", ""), record.get("_value") or defaults.get("_value", "")
    if kind == "boolean" and text in ("true", "false"):
        return float(text == "true")
    not_integer = kind in ("long", "unsignedLong") and not text.strip().lstrip("+-").isdecimal()
    if not_integer or kind in ("boolean", "base64Binary") or kind.startswith("dateTime"):
        raise InvalidMetricValue(f"Invalid value for metric '{metric}'")
    return parse_number(text, metric)


def _quote_flux_string(text: str) -> str:
    """Return a Flux string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
