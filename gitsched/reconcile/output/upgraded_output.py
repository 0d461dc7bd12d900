"""Read the output branch of an earlier format version in the present form, so that a run decides as if this version had written it."""

from __future__ import annotations

import logging

from gitsched.model.fault import describe_fault
from gitsched.model.planned_files import NewBlob
from gitsched.model.system_errors import is_bug
from gitsched.reconcile.output.output_records import open_records
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.render.format_versions import FORMAT_VERSION, list_upgraded_kinds, upgrade_record
from gitsched.render.output_files import RUN_METADATA, status_path, write_record
from gitsched.render.run_metadata import RunMetadata, upgrade_run_metadata

_log = logging.getLogger("gitsched.reconcile")


def upgrade_output(context: RunContext, fetched: Fetched, record: RunMetadata) -> Fetched:
    """Return the output with gitsched.json and the records under status/ in the present form; everything else stays. No ref moves."""
    repository, tree, prefix, files = fetched.output.repository, fetched.output_tree, fetched.prefix, dict[str, NewBlob]()
    entry = repository.find_entry(tree, f"{prefix}{RUN_METADATA}") if tree else None
    assert entry is not None, "the output has a record"
    files[f"{prefix}{RUN_METADATA}"] = upgrade_run_metadata(repository.blob(entry[0]))
    records, kinds = open_records(context, fetched), list_upgraded_kinds(record.format_version)
    if kinds:
        records.prefetch()
    for group, kind in kinds:
        for key, body in records.of_kind(group, kind):
            try:
                upgraded = upgrade_record(group, kind, body, record.format_version)
            except Exception as error:
                if not is_bug(error):
                    raise
                _log.warning("%s while the record of %s was read in the present form; report this bug", describe_fault(error), key)
                continue
            if upgraded != body and key in records:
                files[f"{prefix}{status_path(key)}"] = write_record(upgraded)
    present = record._replace(format_version=FORMAT_VERSION)
    return fetched._replace(output_tree=repository.make_tree(files, base=tree, read=repository), record=present, rewritten=record)
