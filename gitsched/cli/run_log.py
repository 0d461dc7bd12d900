"""The log of `gitsched watch`."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.cli import output
from gitsched.model.finding import format_count
from gitsched.model.time import format_time
from gitsched.report.lines import abbreviate_oid
from gitsched.report.review import Review


class RunLog:
    """The log of the watch process: one line for each run with a change, and new findings."""

    def __init__(self) -> None:
        self.known_findings: frozenset[str] = frozenset()
        self.source: str | None = None
        self.refused = ""
        self.reviewed: Sequence[str] = ()

    def write(self, found: Review) -> None:
        """Log what is new since the last run."""
        current = {str(finding): finding for finding in found.findings if finding.severity != "info"}
        for text, finding in current.items():
            if text not in self.known_findings:
                log = output.LOGGER.error if finding.severity == "error" else output.LOGGER.warning
                log("%s", finding.without_severity, extra={"fields": {"event": "finding", "code": finding.code}})
        self.known_findings = frozenset(current)
        if found.refused and found.refused != self.refused:
            output.LOGGER.error("refused: %s", found.refused, extra={"fields": {"event": "refused", "source": found.source}})
        self.refused = found.refused
        if found.review_messages and found.review_messages != self.reviewed:
            fields = {"event": "review", "source": found.source, "reviewed": list(found.review_messages)}
            output.LOGGER.info("%s", " ".join(line.strip() for line in found.review_messages), extra={"fields": fields})
        self.reviewed = found.review_messages
        if found.after is not None or found.source != self.source:
            self._log_run(found)
        self.source = found.source

    def _log_run(self, found: Review) -> None:
        source, after, wakeup = found.source, None if found.race else found.after, found.next_wakeup
        next_wakeup, states = format_time(wakeup) if wakeup else None, found.states_left
        records = len(found.record_changes)
        fields = {"event": "run", "source": source, "commit": after, "moves": len(found.moves), "records": records}
        fields["nextWakeup"] = next_wakeup
        if after:
            message = f"committed {abbreviate_oid(after)}, {format_count(len(found.moves), 'workload')} moved"
            message += f", {format_count(records, 'recorded decision')} changed" if records else ""
        elif found.after:
            fields |= {"race": found.race, "raceCommit": found.after}
            message = f"another run committed {abbreviate_oid(found.after)} first"
        else:
            message = "nothing to commit"
        output.LOGGER.info(
            "commit %s: %s; %d of %d workloads placed",
            abbreviate_oid(source),
            message,
            states["placed"],
            sum(states.values()),
            extra={"fields": fields},
        )
