"""How each kind of provider is asked, and how its answer is read: one class and one line in PROTOCOLS for each."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote_plus, urlunsplit

from gitsched.metrics.failures import Invalid, Unreachable
from gitsched.metrics.numbers import read_number
from gitsched.model.web import split_address


class Request(NamedTuple):
    """An HTTP request; `body` is JSON, None for a GET."""

    url: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


class Answer(NamedTuple):
    """The body of a 2xx response and its media type, in lower case and without parameters."""

    media: str
    data: bytes


class Dialect(Protocol):
    """The whole contract. `title` is what people call it."""

    title: str

    def ask(self, spec: Mapping[str, Any], metric: str, token: str, /) -> Request:
        """The request for a metric; `spec` is what the provider's document says. Raises Unreachable for an address that is none."""
        ...

    def read(self, answer: Answer, metric: str) -> float:
        """The finite number in an answer. Raises Invalid, or Unreachable for what is no answer."""
        ...


class Prometheus:
    """The instant query API. An entry counts if its `__name__` is the metric, so that an expression never does."""

    title = "Prometheus"

    def ask(self, spec: Mapping[str, Any], metric: str, token: str, /) -> Request:
        return Request(join(spec["url"], "api/v1/query", f"query={quote_plus(metric, safe=_SAFE)}"), None, bear(token))

    def read(self, answer: Answer, metric: str) -> float:
        body = _read_json(answer, metric)
        data = body.get("data") if isinstance(body, dict) else None
        entries = data.get("result") if isinstance(data, dict) else None
        for entry in filter(None, entries if isinstance(entries, list) else ()):
            labels = entry.get("metric") if isinstance(entry, dict) else None
            if not isinstance(labels, dict) or "__name__" not in labels:
                break  # an expression, or no vector
            if labels["__name__"] == metric:
                value = entry.get("value")
                return read_number(value[1] if isinstance(value, list) and len(value) > 1 else None, metric)
        raise Invalid(f"Metric '{metric}' not in Prometheus response")


class Ksql:
    """KSQL's query endpoint, in front of Kafka."""

    title = "Kafka"

    def ask(self, spec: Mapping[str, Any], metric: str, token: str, /) -> Request:
        statement = f"SELECT {spec['value_column']} FROM {spec['table']} WHERE {spec['comparison_column']} = '{metric}';"  # noqa: S608 - Krake's own statement; documents of a trusted branch only
        return Request(join(spec["url"], "query"), {"ksql": statement, "streamsProperties": {}}, bear(token))

    def read(self, answer: Answer, metric: str) -> float:
        body = _read_json(answer, metric)
        row = body[1].get("row") if isinstance(body, list) and len(body) > 1 and isinstance(body[1], dict) else None
        columns = row.get("columns") if isinstance(row, dict) else None
        if not isinstance(columns, list) or not columns:
            raise Invalid(f"The value of the metric '{metric}' cannot be read from the KSQL response")
        return read_number(columns[0], metric)


class Influx:
    """InfluxDB 2: a Flux query for the last value of an hour, answered in annotated CSV."""

    title = "InfluxDB"

    def ask(self, spec: Mapping[str, Any], metric: str, token: str, /) -> Request:
        flux = (
            f"from(bucket: {_flux(spec['bucket'])})\n|> range(start: -1h)\n"
            f"|> filter(fn: (r) => r._measurement == {_flux(metric)})\n|> last()\n"
        )
        dialect = {
            "header": True,
            "delimiter": ",",
            "annotations": ["datatype", "group", "default"],
            "commentPrefix": "#",
            "dateTimeFormat": "RFC3339",
        }
        url = join(spec["url"], "api/v2/query", f"org={quote_plus(spec['org'])}")
        return Request(
            url, {"query": flux, "dialect": dialect}, (("Authorization", f"Token {token}"), ("Accept", "application/csv"))
        )

    def read(self, answer: Answer, metric: str) -> float:
        try:
            rows = list(csv.reader(io.StringIO(answer.data.decode(), newline="")))
        except (UnicodeDecodeError, csv.Error) as error:
            raise Unreachable("its answer is no CSV") from error
        notes: dict[str, list[str]] = {}
        header: list[str] = []
        for row in rows:
            if not row:
                notes, header = {}, []
            elif row[0].startswith("#"):
                notes[row[0]] = row
            elif not notes.keys() >= {"#datatype", "#group"}:
                raise Unreachable("its answer is no annotated CSV")
            elif not header:
                header = row
            elif len(row) < len(header):
                raise Unreachable("a record of its answer ends too early")
            else:
                types, defaults = (dict(zip(header, notes.get(note, ()), strict=False)) for note in ("#datatype", "#default"))
                return _read_record(dict(zip(header, row, strict=False)), types, defaults, metric)
        raise Invalid(f"Metric '{metric}' not in InfluxDB response")


PROTOCOLS: Mapping[str, Dialect] = {"prometheus": Prometheus(), "kafka": Ksql(), "influx": Influx()}

_SAFE = "-._~!$'()*,:@/?"


def bear(token: str) -> tuple[tuple[str, str], ...]:
    """The header of a bearer token; none without one."""
    return (("Authorization", f"Bearer {token}"),) if token else ()


def join(url: object, path: str, query: str = "") -> str:
    """A path below a provider's address, whose own path stays and whose query goes. Raises Unreachable for what is no HTTP address."""
    parts = split_address(str(url))
    if parts is None:
        raise Unreachable("its address is no http or https URL")
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{path}", query, ""))


def _read_json(answer: Answer, metric: str) -> Any:
    if answer.media != "application/json" and not ("/" in answer.media and answer.media.endswith("+json")):
        raise Unreachable("its answer is not called JSON")
    try:
        return json.loads(answer.data.decode())  # JSON that is exchanged is UTF-8, without a mark
    except (ValueError, RecursionError) as error:
        raise Invalid(f"The answer about the metric '{metric}' is no JSON") from error


def _read_record(record: Mapping[str, str], types: Mapping[str, str], defaults: Mapping[str, str], metric: str) -> float:
    """The value of a record; an empty one is its column's default, and each must be what its column says."""
    if "error" in record:
        raise Unreachable("it answered with an error")
    kind, text = types.get("_value", ""), record.get("_value") or defaults.get("_value", "")
    if kind == "boolean" and text in ("true", "false"):
        return float(text == "true")
    broken = kind in ("long", "unsignedLong") and not text.strip().lstrip("+-").isdecimal()
    if broken or kind in ("boolean", "base64Binary") or kind.startswith("dateTime"):
        raise Invalid(f"Invalid value for metric '{metric}'")
    return read_number(text, metric)


def _flux(text: str) -> str:
    """A string literal of Flux."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
