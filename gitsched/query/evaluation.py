"""Bring results up to date: step by step, only those of which something that they read has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gitsched.query.canonical import Key
from gitsched.query.errors import CycleError, Interrupt, Node, QueryFailedError, Suspension, UntrackedReadError
from gitsched.query.pages import EVICTED, FAILED, TRANSIENT, UNLOADED, VALUE, Item
from gitsched.query.reader import Reader

if TYPE_CHECKING:
    from gitsched.query.schema import Query, Step
    from gitsched.query.tables import Tables

MAX_DEPTH = 20
"""How many queries compute each other directly. Longer chains are computed from their end, so that Python's stack stays small."""


class StepState:
    """What is to be done in one step. `pending` are, by page, the reads that have changed; `dirty` are results to compute, `unsure` others
    that read one of these in the same step, and `deltas` how many more of the emitted rows there are than the relations have."""

    __slots__ = ("deltas", "dirty", "gone", "pending", "unsure")

    def __init__(self) -> None:
        self.pending: dict[int, set[int]] = {}
        self.dirty: set[Node] = set()
        self.gone: set[Node] = set()
        self.unsure: set[Node] = set()
        self.deltas: dict[Node, int] = {}

    def copy(self) -> StepState:
        """Return an independent copy."""
        other = StepState()
        other.pending = {page: reads.copy() for page, reads in self.pending.items()}
        other.dirty, other.gone, other.unsure = self.dirty.copy(), self.gone.copy(), self.unsure.copy()
        other.deltas = self.deltas.copy()
        return other


class Evaluation:
    """Computes results. `changed` are those that have changed since they were taken, `failures` those that failed by themselves; `computed`
    counts the computations."""

    def __init__(self, tables: Tables, load: Callable[[str, Key], Any], states: list[StepState] | None = None) -> None:
        self.tables, self.schema, self.load = tables, tables.schema, load
        self.identify = tables.identify
        self.states = states if states is not None else [StepState() for _ in self.schema.steps]
        self.changed: dict[str, set[Key]] = {}
        self.failures: dict[Node, str] = {}
        self.computed = 0
        self._active: dict[Node, None] = {}
        """The results that wait for each other, from the first one on: on the stack, and after a suspension `_waiting`."""
        self._waiting: dict[Node, None] = {}

    # Changes

    def announce(self, name: str, key: Key) -> None:
        """Note for all readers of an input, result or group that it has changed."""
        read = self.identify(name, key)
        own = self.schema.step_of.get(name, -1) if name not in self.schema.relations else -1
        for number in self.tables.readers.list_pages(read):
            query = self.tables.name_of(number)
            step = self.schema.step_of[query]
            if step != own:
                self.states[step].pending.setdefault(number, set()).add(read)
            elif (page := self.tables.results[query].find(number)) is not None:
                self.states[step].dirty.update((query, reader) for reader in page.list_readers({read}))

    def announce_key(self, name: str, key: Key, *, exists: bool) -> None:
        """Note that an input or a group came or went, for the queries that are computed for each."""
        for query in self.schema.followers[name]:
            state, node = self.states[self.schema.step_of[query.name]], (query.name, key)
            (state.dirty if exists else state.gone).add(node)
            (state.gone if exists else state.dirty).discard(node)

    # Steps

    def settle(self, last: int) -> None:
        """Bring all results of the steps up to one up to date, and the rows that they emit."""
        for number in range(last + 1):
            state = self.states[number]
            self.prepare(number)
            while state.dirty:
                for node in sorted(state.dirty):
                    if node in state.dirty:
                        self.bring_current(node)
            state.unsure.clear()
            self._apply_rows(number)

    def prepare(self, number: int) -> None:
        """Find the results of a step to compute, after all earlier steps: those that read something that has changed."""
        state, step = self.states[number], self.schema.steps[number]
        for page_number, reads in sorted(state.pending.items()):
            name = self.tables.name_of(page_number)
            page = self.tables.results[name].find(page_number)
            if page is not None:
                readers = ((key, page.items[key]) for key in page.list_readers(reads))
                state.dirty.update((name, key) for key, item in readers if not (item.expected and self._is_expected(item, reads)))
        state.pending.clear()
        for node in sorted(state.gone):
            self._drop(node, state)
        state.gone.clear()
        for node in sorted(state.dirty):
            query = self.schema.queries[node[0]]
            # What nobody reads is not computed again, nor what is not kept before it is read.
            if not query.each and not (query.stored and self.tables.readers.list_pages(self.identify(*node))):
                self._drop(node, state)
        if step.recursive:
            self._find_unsure(number, step)

    def _drop(self, node: Node, state: StepState) -> None:
        """Remove a result, if there is one, with the rows that it emits."""
        name, key = node
        item = self.tables.results[name].get(key)
        state.unsure.discard(node)
        if item is None:
            return
        state.dirty.discard(node)
        self.tables.results[name].remove(key)
        self._count_rows(state, item, -1)
        self.announce(name, key)
        if self.schema.queries[name].each:
            self._note_change(name, key)

    def _is_expected(self, item: Item, reads: set[int]) -> bool:
        """Return whether all that a result has read of something are inputs with the digests that it expects."""
        found = ((name, key, self.tables.entries[name].get(key)) for name, key, _ in item.expected)
        same = {(name, key, now.data) for name, key, now in found if now is not None}.intersection(item.expected)
        return reads.intersection(item.reads) <= {self.identify(name, key) for name, key, _ in same}

    def _find_unsure(self, number: int, step: Step) -> None:
        """Find all results of a step that read results to compute, directly or not."""
        state, names = self.states[number], {query.name for query in step.queries}
        found = list(state.dirty)
        while found:
            name, key = found.pop()
            read = self.identify(name, key)
            for page_number in self.tables.readers.list_pages(read):
                reader = self.tables.name_of(page_number)
                page = self.tables.results[reader].find(page_number) if reader in names else None
                for one in page.list_readers({read}) if page is not None else ():
                    node = reader, one
                    if node not in state.dirty and node not in state.unsure:
                        state.unsure.add(node)
                        found.append(node)

    def _apply_rows(self, number: int) -> None:
        """Change the relations by the rows that a step has emitted, and note the groups that have changed."""
        state = self.states[number]
        groups: dict[Node, bool] = {}
        for (name, row), delta in sorted(state.deltas.items()):
            if not delta:
                continue
            table, prefix = self.tables.entries[name], self.schema.relations[name].prefix
            before = table.get(row)
            count = (int(before.data) if before is not None else 0) + delta
            group = row[:prefix]
            if (before is None) != (count == 0) and (name, group) not in groups:
                groups[name, group] = bool(self.list_rows(name, group, 1))
            if count:
                table.put(row, Item(b"%d" % count))
            elif before is not None:
                table.remove(row)
        state.deltas.clear()
        for (name, group), existed in groups.items():
            self.announce(name, group)
            exists = bool(self.list_rows(name, group, 1))
            if exists != existed:
                self.announce_key(name, group, exists=exists)

    # Results

    def bring_current(self, node: Node) -> None:
        """Bring one result up to date, after the earlier steps. Chains longer than MAX_DEPTH are computed in parts."""
        suspended: list[tuple[Node, list[Node]]] = [(node, [])]
        try:
            while suspended:
                (name, key), path = suspended[-1]
                try:
                    self._ensure(self.schema.queries[name], key)
                except Suspension as suspension:
                    suspension.path.reverse()
                    self._waiting.update(dict.fromkeys(suspension.path))
                    suspended.append((suspension.node, suspension.path))
                else:
                    suspended.pop()
                    for one in path:
                        del self._waiting[one]
        finally:
            self._waiting.clear()

    def read_value(self, query: Query, key: Key, *, is_settled: bool = False) -> Any:
        """Return a result that is up to date; None for a query that is computed for each of some keys if this is none of them. In a step
        that `is_settled` each result is up to date."""
        item = self.tables.results[query.name].get(key) if is_settled else None
        if item is None or item.value is UNLOADED or item.kind == EVICTED:
            item = self._ensure(query, key)
            if item is None:
                return None
            if item.value is UNLOADED:
                item.value = self.schema.codec.decode(item.data)
        if item.kind == FAILED:
            name, failed_key, reason = item.value
            raise QueryFailedError((name, failed_key), reason)
        return item.value

    def load_input(self, name: str, key: Key) -> Any:
        """Return the value of an input; None if there is none of this key."""
        if self.tables.entries[name].get(key) is None:
            return None
        try:
            return self.load(name, key)
        except Exception as error:
            raise Interrupt(error) from error

    def list_rows(self, name: str, group: Key, first: int | None) -> tuple[Key, ...]:
        """Return the rows of a group without the strings of the group."""
        rows: list[Key] = []
        size = len(group)
        for row, _ in self.tables.entries[name].list_from(group):
            if row[:size] != group or len(rows) == first:
                break
            rows.append(row[size:])
        return tuple(rows)

    def compare(self, query: Query, key: Key, item: Item) -> bool:
        """Return whether computing a result again gives the same result, reads and rows. Nothing is changed."""
        other = self._compute(query, key)
        has_reads = item.reads == other.reads or (bool(item.expected) and set(item.reads).issuperset(other.reads))
        same = item.is_same_result(other) and has_reads and item.rows == other.rows
        return same and (item.value is UNLOADED or item.kind != VALUE or self.schema.codec.encode(item.value) == item.data)

    def _ensure(self, query: Query, key: Key) -> Item | None:
        """Return the result of a query, up to date and with its value."""
        name, node = query.name, (query.name, key)
        state, table = self.states[self.schema.step_of[name]], self.tables.results[name]
        item = table.get(key)
        if node in state.unsure and node not in state.dirty and item is not None:
            self._verify(node, item, state)
        is_dirty = node in state.dirty
        if item is not None and not is_dirty:
            if item.kind != EVICTED and (item.kind != TRANSIENT or item.value is not UNLOADED):
                return item
        elif item is None and query.each and not is_dirty:
            return None
        found = self._compute(query, key)
        table.put(key, found)
        state.dirty.discard(node)
        state.unsure.discard(node)
        if item is None or item.rows != found.rows:
            self._count_rows(state, found, 1)
            if item is not None:
                self._count_rows(state, item, -1)
        if item is None or not item.is_same_result(found):
            if item is not None and not is_dirty and query.stored:
                raise Interrupt(UntrackedReadError((node,)))
            if query.each or is_dirty:
                self.announce(name, key)
            if query.each:
                self._note_change(name, key)
        return found

    def _verify(self, node: Node, item: Item, state: StepState) -> None:
        """Bring what a result reads in its own step up to date, in the order in which it reads it, until something has changed."""
        self._enter(node)
        try:
            for name, key in item.peers:
                self._ensure(self.schema.queries[name], key)
                if node in state.dirty:
                    return
        except Suspension as suspension:
            suspension.path.append(node)
            raise
        finally:
            del self._active[node]
        state.unsure.discard(node)

    def _compute(self, query: Query, key: Key) -> Item:
        node = query.name, key
        self._enter(node)
        self.computed += 1
        reader = Reader(self, node, self.schema.step_of[query.name])
        value: Any = UNLOADED
        data, kind = b"", TRANSIENT
        try:
            value = query.load()(reader, key)
            if query.stored:
                data, kind = self.schema.codec.encode(value), VALUE
        except QueryFailedError as error:
            value, kind = (*error.node, error.reason), FAILED
        except (MemoryError, RecursionError, OSError) as error:
            raise Interrupt(error) from error
        except Exception as error:  # noqa: BLE001 - the failure is the result, and concerns only what reads it
            reason = f"{type(error).__name__}: {error}"
            value, kind = (*node, reason), FAILED
            self.failures[node] = reason
        except Suspension as suspension:
            suspension.path.append(node)
            raise
        finally:
            reader.close()
            del self._active[node]
        if kind == FAILED:
            return Item(self.schema.codec.encode(value), kind, tuple(reader.reads), tuple(reader.peers), value=value)
        rows = tuple(sorted(reader.rows)) if reader.rows else ()
        return Item(data, kind, tuple(reader.reads), tuple(reader.peers), rows, reader.expected, value)

    def _enter(self, node: Node) -> None:
        """Note that a result waits for others. Raise Interrupt if it waits for itself, and Suspension if too many wait."""
        if node in self._active or node in self._waiting:
            path = [*self._waiting, *self._active]
            raise Interrupt(CycleError(path[path.index(node) :]))
        if len(self._active) >= MAX_DEPTH:
            raise Suspension(node)
        self._active[node] = None

    def _count_rows(self, state: StepState, item: Item, sign: int) -> None:
        for row in item.rows:
            state.deltas[row] = state.deltas.get(row, 0) + sign

    def _note_change(self, name: str, key: Key) -> None:
        self.changed.setdefault(name, set()).add(key)
