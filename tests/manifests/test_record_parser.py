"""Records of an output branch are read part by part, as the other parser reads them as a whole."""

import random

from gitsched.manifests.parser import parse_file
from gitsched.manifests.record_parser import RecordParser
from gitsched.render.yaml import dump
from tests.tables import each_row

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
RECORD = {
    "apiVersion": "work.karmada.io/v1alpha2",
    "kind": "ResourceBinding",
    "metadata": {"name": "web-deployment", "annotations": {"a": '{"b":["c"]}', "on": "yes", "é": "1e3"}},
    "spec": {"clusters": [{"name": "m1", "replicas": 2}, {"name": "m2"}], "replicas": 2, "empty": {}, "ratio": 0.5},
    "status": {"conditions": [{"type": "Scheduled", "status": "True"}]},
}


def test_a_record_is_read_as_the_other_parser_reads_it() -> None:
    for record in (RECORD, {**RECORD, "spec": {"text": "a\nb\n", "end": 1}}):
        data = dump(record).encode()
        assert RecordParser().parse(data) == record
        assert parse_file(data, path="status.yaml", validate=None).documents[0].body == record


def test_equal_parts_of_records_are_one_object() -> None:
    parser = RecordParser()
    first, second = (
        parser.parse(dump({**RECORD, "metadata": {"name": name, "namespace": "shop"}}).encode()) for name in ("a", "b")
    )
    assert first is not None
    assert second is not None
    assert first["spec"]["clusters"] is second["spec"]["clusters"]
    assert first["status"] == second["status"]
    assert [first["metadata"]["name"], second["metadata"]["name"]] == ["a", "b"]
    assert list(first) == list(second) == list(RECORD)


@each_row(
    "data",
    [
        *(b"", b"\xff", b"\xef\xbb\xbfkind: A\n", b"kind: [\n", b"kind: A\nkind: B\n", b"kind: A\n", b"- a\n", b"kind: A\x00\n"),
        *(OBJECT.encode() * 2, f"{OBJECT}---\n{OBJECT}".encode(), f"{OBJECT}a: &a 1\n".encode(), f"{OBJECT}a: yes\n".encode()),
    ],
)
def test_a_damaged_or_edited_record_is_left_to_the_other_parser(data: bytes) -> None:
    assert RecordParser().parse(data) is None


def test_edited_records_are_read_alike_whatever_was_read_before() -> None:
    source, parser = random.Random(1), RecordParser()
    base = dump(RECORD).splitlines()
    inserted = ["", "# note", "  - x", "  yes: 1", "spec:", "status: |", " x: 1", "  text: |", "    more", "...", "\ta: 1", "on:"]
    read = 0
    for _ in range(400):
        lines = list(base)
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(lines))
            edit = source.randrange(5)
            if edit == 0:
                del lines[at]
            elif edit == 1:
                lines.insert(at, source.choice([*lines, *inserted]))
            elif edit == 2:
                lines[at] = source.choice(("", " ", "  ")) + lines[at].removeprefix(source.choice(("", " ", "  ")))
            elif edit == 3:
                lines[at] += source.choice((" # note", ":", " |", " x", "'", "\\"))
            else:
                other = source.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
        data = ("\n".join(lines) + "\n").encode()
        body = parser.parse(data)
        if body is not None:
            read += 1
            file = parse_file(data, path="status.yaml", validate=None)
            assert [document.body for document in file.documents] == [body], data.decode()
    assert read > 50
