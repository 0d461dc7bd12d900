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
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote_plus, urlunsplit

from gitsched.metrics.queries import InvalidMetricValue, ProviderUnreachable
from gitsched.model.urls import parse_http_url

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MAX_NUMBER_LENGTH = 400


def parse_number(value: object, metric: str) -> float:
    """A finite number: a JSON number, a boolean (1 or 0), or a text that is nothing but a decimal number. Raises Invalid."""
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


_MAX_TOKEN_LENGTH = 1 << 14


def find_token(spec: Mapping[str, Any]) -> str:
    """The token of a provider: `tokenFrom` before `token`, "" without either. Raises Unreachable where it is not there."""
    place = spec.get("tokenFrom")
    if isinstance(place, dict) and place.get("env"):
        token = os.environ.get(str(place["env"]), "")
        lack = f"the environment variable {place['env']} is not set"
    elif isinstance(place, dict) and place.get("file"):
        token, lack = _read_token_file(str(place["file"])), f"there is no token in {place['file']}"
    else:
        return _check_token(str(spec.get("token") or ""))
    if not token.strip():
        raise ProviderUnreachable(lack)
    return _check_token(token.strip())


def _read_token_file(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(_MAX_TOKEN_LENGTH).decode()
    except (OSError, ValueError):
        return ""


def _check_token(token: str) -> str:
    """A token that cannot be in a header would be told in the error of the client."""
    if not all("!" <= character <= "~" or character == " " for character in token):
        raise ProviderUnreachable("its token has characters that no header can have")
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
    """The whole contract. `title` is what people call it."""

    title: str

    def make_request(self, spec: Mapping[str, Any], metric: str, token: str, /) -> ProviderRequest:
        """The request for a metric; `spec` is what the provider's document says. Raises Unreachable for an address that is none."""
        ...

    def parse_response(self, answer: ProviderResponse, metric: str) -> float:
        """The finite number in an answer. Raises Invalid, or Unreachable for what is no answer."""
        ...


class PrometheusProtocol:
    """The instant query API. An entry counts if its `__name__` is the metric, so that an expression never does."""

    title = "Prometheus"

    def make_request(self, spec: Mapping[str, Any], metric: str, token: str, /) -> ProviderRequest:
        return ProviderRequest(
            join_url(spec["url"], "api/v1/query", f"query={quote_plus(metric, safe=_QUERY_SAFE)}"), None, make_bearer_header(token)
        )

    def parse_response(self, answer: ProviderResponse, metric: str) -> float:
        body = _parse_json(answer, metric)
        data = body.get("data") if isinstance(body, dict) else None
        entries = data.get("result") if isinstance(data, dict) else None
        for entry in filter(None, entries if isinstance(entries, list) else ()):
            labels = entry.get("metric") if isinstance(entry, dict) else None
            if not isinstance(labels, dict) or "__name__" not in labels:
                break  # an expression, or no vector
            if labels["__name__"] == metric:
                value = entry.get("value")
                return parse_number(value[1] if isinstance(value, list) and len(value) > 1 else None, metric)
        raise InvalidMetricValue(f"Metric '{metric}' not in Prometheus response")


class KsqlProtocol:
    """KSQL's query endpoint, in front of Kafka."""

    title = "Kafka"

    def make_request(self, spec: Mapping[str, Any], metric: str, token: str, /) -> ProviderRequest:
        statement = f"SELECT {spec['value_column']} FROM {spec['table']} WHERE {spec['comparison_column']} = '{metric}';"  # noqa: S608 - Krake's own statement; documents of a trusted branch only
        return ProviderRequest(
            join_url(spec["url"], "query"), {"ksql": statement, "streamsProperties": {}}, make_bearer_header(token)
        )

    def parse_response(self, answer: ProviderResponse, metric: str) -> float:
        body = _parse_json(answer, metric)
        row = body[1].get("row") if isinstance(body, list) and len(body) > 1 and isinstance(body[1], dict) else None
        columns = row.get("columns") if isinstance(row, dict) else None
        if not isinstance(columns, list) or not columns:
            raise InvalidMetricValue(f"The value of the metric '{metric}' cannot be read from the KSQL response")
        return parse_number(columns[0], metric)


class InfluxProtocol:
    """InfluxDB 2: a Flux query for the last value of an hour, answered in annotated CSV."""

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

    def parse_response(self, answer: ProviderResponse, metric: str) -> float:
        try:
            rows = list(csv.reader(io.StringIO(answer.data.decode(), newline="")))
        except (UnicodeDecodeError, csv.Error) as error:
            raise ProviderUnreachable("its answer is no CSV") from error
        notes: dict[str, list[str]] = {}
        header: list[str] = []
        for row in rows:
            if not row:
                notes, header = {}, []
            elif row[0].startswith("#"):
                notes[row[0]] = row
            elif not notes.keys() >= {"#datatype", "#group"}:
                raise ProviderUnreachable("its answer is no annotated CSV")
            elif not header:
                header = row
            elif len(row) < len(header):
                raise ProviderUnreachable("a record of its answer ends too early")
            else:
                types, defaults = (dict(zip(header, notes.get(note, ()), strict=False)) for note in ("#datatype", "#default"))
                return _parse_record(dict(zip(header, row, strict=False)), types, defaults, metric)
        raise InvalidMetricValue(f"Metric '{metric}' not in InfluxDB response")


PROTOCOLS: Mapping[str, ProviderProtocol] = {
    "prometheus": PrometheusProtocol(),
    "kafka": KsqlProtocol(),
    "influx": InfluxProtocol(),
}

_QUERY_SAFE = "-._~!$'()*,:@/?"


def make_bearer_header(token: str) -> tuple[tuple[str, str], ...]:
    """The header of a bearer token; none without one."""
    return (("Authorization", f"Bearer {token}"),) if token else ()


def join_url(url: object, path: str, query: str = "") -> str:
    """A path below a provider's address, whose own path stays and whose query goes. Raises Unreachable for what is no HTTP address."""
    parts = parse_http_url(str(url))
    if parts is None:
        raise ProviderUnreachable("its address is no http or https URL")
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{path}", query, ""))


def _parse_json(answer: ProviderResponse, metric: str) -> Any:
    if answer.media_type != "application/json" and not ("/" in answer.media_type and answer.media_type.endswith("+json")):
        raise ProviderUnreachable("its answer is not called JSON")
    try:
        return json.loads(answer.data.decode())  # JSON that is exchanged is UTF-8, without a mark
    except (ValueError, RecursionError) as error:
        raise InvalidMetricValue(f"The answer about the metric '{metric}' is no JSON") from error


def _parse_record(record: Mapping[str, str], types: Mapping[str, str], defaults: Mapping[str, str], metric: str) -> float:
    """The value of a record; an empty one is its column's default, and each must be what its column says."""
    if "error" in record:
        raise ProviderUnreachable("it answered with an error")
    kind, text = types.get("_value", ""), record.get("_value") or defaults.get("_value", "")
    if kind == "boolean" and text in ("true", "false"):
        return float(text == "true")
    broken = kind in ("long", "unsignedLong") and not text.strip().lstrip("+-").isdecimal()
    if broken or kind in ("boolean", "base64Binary") or kind.startswith("dateTime"):
        raise InvalidMetricValue(f"Invalid value for metric '{metric}'")
    return parse_number(text, metric)


def _quote_flux_string(text: str) -> str:
    """A string literal of Flux."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
