"""Which settings the guard uses, so that a commit cannot loosen the guard and pass under its own limits; and what the output branch
records about that.

The limits of a run are the stricter ones of the planned commit and of the trusted side: the base of a comparison, else the last commit
that a run has planned without withholding anything. A commit that loosens a limit is trusted once a run of it has withheld nothing, or
if it comes after the changes that are withheld. The same holds for a commit that no longer holds workloads with data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.config import FILE
from gitsched.apis.gitsched.guard_config import DEFAULT_PERIOD, MAX_PERCENT, GuardConfig, GuardLimit
from gitsched.model.changes import NO_RATE, MoveRate
from gitsched.model.document import as_object
from gitsched.model.finding import FROZEN, Finding, Location
from gitsched.model.time import format_duration, format_time, parse_duration, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import FREEZE

if TYPE_CHECKING:
    from gitsched.decide.guard.change_owners import FindOwner
    from gitsched.model.changes import WithheldChanges
    from gitsched.model.holds import Releases
    from gitsched.model.source_edits import SourceEdits

_UNVERIFIED = "it is not known which documents the last run had"
GUARD_CODES = ("allowance-unused", "changes-withheld", "guard-loosened", "moves-waiting", FROZEN)
"""Codes of findings about the guard, which each run finds again."""


class GuardRecord(NamedTuple):
    """What gitsched.json says about the guard.

    `settings` are those of the last source commit without withheld changes. While changes are withheld, `digest` is theirs, and `planned`
    are the settings of the source commit that they came with. `frozen` is the reason in the file FREEZE of the output branch, or "".
    `keeps_holds` says that workloads with data stay held although the source no longer holds any: the commit that says so came with their
    moves. `unverified` are files because of which changes are withheld: those without documents that may have had some before. `released`
    are workloads with data that were released and whose moves are withheld, as in a trailer. `base` is the source commit before the
    withheld changes, and `rate` is about moves that observations alone cause.
    """

    settings: GuardConfig = GuardConfig()
    digest: str = ""
    planned: GuardConfig = GuardConfig()
    frozen: str = ""
    keeps_holds: bool = False
    unverified: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    base: str = ""
    rate: MoveRate = NO_RATE

    def has_changed(self, before: GuardRecord) -> bool:
        """Return whether the output branch has to record this in place of an earlier record. A period and the moves that wait in it are
        only recorded together with another change, but that moves wait is."""
        if bool(self.rate.waiting) != bool(before.rate.waiting):
            return True
        return self._replace(rate=NO_RATE) != before._replace(rate=NO_RATE)


class GuardInput(NamedTuple):
    """What the guard reads besides the planned commit.

    `trusted` are the settings of the trusted side; None if there is none, as in a first run. `record` is that of the last run. `frozen`
    is the reason in the file FREEZE of the output branch, or "". `limits` and `allowed` are options of the run: limits that take
    precedence over all settings, and digests of changes that are allowed. `unverified` are files of the source without documents that
    may have had some in the last run. `find_former_owner` returns whose path had the document of an object that is gone: the name of a
    tenant, "" for the platform, None if that is not known. `find_base` returns the last source commit that a run has planned and that came
    without withheld changes, "" if it is not known. `list_edits` returns what people changed since then; None if that is not known.
    """

    trusted: GuardConfig | None = None
    record: GuardRecord = GuardRecord()
    frozen: str = ""
    limits: tuple[GuardLimit, ...] = ()
    allowed: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    find_former_owner: FindOwner | None = None
    find_base: Callable[[], str] = str
    list_edits: Callable[[], SourceEdits | None] = lambda: None

    def choose_settings(self, own: GuardConfig) -> GuardConfig:
        """Return the settings for the changes of a commit with its `own` settings."""
        return self._complete(own if self.trusted is None else own.tighten(self.trusted))

    def choose_later_settings(self, own: GuardConfig, withheld: WithheldChanges) -> GuardConfig | None:
        """Return the settings of a commit that came after the withheld changes and changed the guard; None if there is no such commit."""
        if self.trusted is None or withheld.digest != self.record.digest or own == self.record.planned:
            return None
        return self._complete(own)

    def trust_release(self, own: GuardConfig, *, held_before: bool) -> GuardInput | None:
        """Return the input for a commit that no longer holds workloads, and came after the moves of all workloads that are held; None for
        any other commit. `held_before`: the last run held all workloads that would be held now."""
        if self.trusted is None or own.hold_stateful or self.record.keeps_holds or not held_before:
            return None
        return self._replace(trusted=self.trusted._replace(hold_stateful=False))

    def _complete(self, config: GuardConfig) -> GuardConfig:
        unverified = _UNVERIFIED if self.unverified else ""
        reasons = dict.fromkeys(filter(None, (config.freeze, self.frozen, unverified)))
        return config.replace_limits(self.limits)._replace(freeze="; ".join(reasons))

    def make_record(
        self, own: GuardConfig, withheld: WithheldChanges, releases: Releases | None = None, *, holds: bool = False
    ) -> GuardRecord:
        """Return the record of a run that has withheld these changes, has these `releases`, and `holds` workloads with data."""
        keeps_holds = holds and not own.hold_stateful
        trusted = own if self.trusted is None else self.trusted
        # The last period counts until it ends, also where nothing moves.
        rate = withheld.rate if withheld.rate.start is not None else self.record.rate._replace(waiting={})
        if not withheld.moves:
            settings = own._replace(hold_stateful=own.hold_stateful or keeps_holds)
            return GuardRecord(settings, frozen=self.frozen, keeps_holds=keeps_holds, rate=rate)
        known, released = withheld.digest == self.record.digest, tuple[str, ...]()
        if releases is not None:
            released = tuple(
                str(move.key).lower()
                for move in withheld.moves
                if releases.releases(move.key, move.before.keys() - move.after.keys())
            )
        return GuardRecord(
            trusted,
            withheld.digest,
            self.record.planned if known else own,
            self.frozen,
            keeps_holds,
            self.unverified,
            released,
            self.find_base(),
            rate,
        )

    def list_cures(self, own: GuardConfig) -> Iterator[str]:
        """Yield what lifts a freeze; nothing where a commit with these `own` settings lifts it."""
        if self.frozen:
            yield f"remove the file {FREEZE} from the output branch, or run gitsched freeze --lift"
        if own.freeze:
            yield f"remove guard.freeze from {FILE}"

    def _describe_freeze(self, own: GuardConfig, freeze: str, digest: str) -> str:
        """Return why placements are frozen, and how to lift that; "" where a commit lifts it, and nothing is withheld."""
        cures = list(self.list_cures(own))
        if cures:
            return f"Placements are frozen: {freeze}. To lift it, {'; '.join(cures)}"
        kept = f"the changes that came with that stay withheld until they are allowed with --allow {digest}, or reverted"
        return f"{FILE} has no guard.freeze any more ({freeze}), but {kept}" if digest else ""

    def list_findings(self, own: GuardConfig, digest: str, allowed: Collection[str]) -> list[Finding]:
        """Return the findings about a freeze, a commit that loosens the guard, and allowances of other changes than the withheld ones."""
        findings = []
        freeze = self._replace(unverified=()).choose_settings(own).freeze
        text = self._describe_freeze(own, freeze, digest) if freeze else ""
        if text:
            findings.append(Finding("info", FROZEN, text))
        loosened = list(own.list_loosened(self.trusted)) if self.trusted is not None else []
        if loosened:
            message = (
                f"The guard allows more than before: {', '.join(loosened)}. The changes of this commit are limited as before, and "
                "what is withheld or held now stays so until it is allowed or released; the new settings count after the first run "
                "with them that withholds nothing"
            )
            findings.append(Finding("warning", "guard-loosened", message, Location(FILE, 1, 1), is_change=True))
        for other in sorted({*self.allowed, *allowed} - {digest}):
            message = f"{other[:100]} allows no change of this run: {f'withheld are {digest}' if digest else 'nothing is withheld'}"
            cure = "use the digest that plan and reconcile print" if digest else "remove it"
            findings.append(Finding("warning", "allowance-unused", f"{message}; {cure}"))
        return findings


NO_GUARD_INPUT = GuardInput()
DEFAULT_GUARD = GuardRecord()


def write_guard_record(record: GuardRecord) -> dict[str, Any]:
    """Return the member `guard` of gitsched.json; {} for the default settings and without withheld changes."""
    members = _write_settings(record.settings)
    if record.digest:
        released = {"released": list(record.released)} if record.released else {}
        base = {"base": record.base} if record.base else {}
        members["withheld"] = {"digest": record.digest, **_write_settings(record.planned), **released, **base}
    if record.frozen:
        members["frozen"] = record.frozen
    if record.keeps_holds:
        members["keepsHolds"] = True
    if record.unverified:
        members["unverified"] = list(record.unverified)
    if record.rate.start is not None:
        waiting = {"waiting": dict(record.rate.waiting)} if record.rate.waiting else {}
        members["rate"] = {"start": format_time(record.rate.start), "passed": dict(record.rate.passed), **waiting}
    return members


def read_guard_record(value: Mapping[str, Any]) -> GuardRecord:
    """Read the member `guard` of gitsched.json. What is malformed counts as a default."""
    withheld = as_object(value.get("withheld"))
    digest, frozen, base = withheld.get("digest"), value.get("frozen"), withheld.get("base")
    return GuardRecord(
        _read_settings(value),
        digest if isinstance(digest, str) else "",
        _read_settings(withheld),
        frozen if isinstance(frozen, str) else "",
        value.get("keepsHolds") is True,
        _read_texts(value.get("unverified")),
        _read_texts(withheld.get("released")),
        base if isinstance(base, str) else "",
        _read_rate(as_object(value.get("rate"))),
    )


def has_guard_changed(recorded: Mapping[str, Any] | None, guard: GuardRecord, releases: Releases | None) -> bool:
    """Return whether the output branch has to record other settings of the guard, another freeze, other withheld changes, or a release:
    also one that releases nothing, so that its trailers do not count again. `recorded` is None in a first run."""
    record = read_guard_record(recorded or {})
    if releases is not None and (releases.clusters or not releases.workloads <= {*record.released}):
        return True
    if recorded is None or (not recorded and guard == DEFAULT_GUARD):
        return False
    return guard.has_changed(record)


def _read_rate(value: Mapping[str, Any]) -> MoveRate:
    start = parse_time(value.get("start"))
    if start is None:
        return NO_RATE
    passed = {name: count for name, count in as_object(value.get("passed")).items() if type(count) is int and count > 0}
    waiting = {name: digest for name, digest in as_object(value.get("waiting")).items() if isinstance(digest, str)}
    return MoveRate(start, passed, waiting)


def _read_texts(value: Any) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


def _write_settings(config: GuardConfig) -> dict[str, Any]:
    """Return the limits that differ from the defaults, and the freeze; null for a limit that is turned off."""
    defaults = GuardConfig().limits
    limits = {
        scope: changed
        for scope, known in defaults.items()
        if (
            changed := {
                effect: config.limits.get(scope, {}).get(effect)
                for effect in sorted({*known, *config.limits.get(scope, {})})
                if config.limits.get(scope, {}).get(effect) != known.get(effect)
            }
        )
    }
    members: dict[str, Any] = {"limits": limits} if limits else {}
    if config.freeze:
        members["freeze"] = config.freeze
    if not config.hold_stateful:
        members["holdStateful"] = False
    if config.period != DEFAULT_PERIOD:
        members["period"] = format_duration(config.period)
    if config.limits_evictions:
        members["limitEvictions"] = True
    return members


def _read_settings(value: Mapping[str, Any]) -> GuardConfig:
    limits: dict[str, dict[str, float]] = {scope: dict(known) for scope, known in GuardConfig().limits.items()}
    for scope, entries in as_object(value.get("limits")).items():
        for effect, percent in as_object(entries).items() if scope in limits else ():
            if percent is None:
                limits[scope].pop(effect, None)
            elif isinstance(percent, int | float) and not isinstance(percent, bool) and 0 <= percent <= MAX_PERCENT:
                limits[scope][effect] = float(percent)
    freeze = value.get("freeze")
    return GuardConfig(
        limits,
        freeze if isinstance(freeze, str) else "",
        value.get("holdStateful") is not False,
        parse_duration(value.get("period")) or DEFAULT_PERIOD,
        value.get("limitEvictions") is True,
    )
