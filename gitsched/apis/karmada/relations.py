"""What the workloads of one world have to do with each other: who brings whom along, and which class stands for a priority.

Everything else about a workload is decided from its own manifest and record. This is where the rest is asked for, and where it is known
which decisions have to be made anew when something changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names, priority
from gitsched.apis.karmada.activation import TEMPLATE_DIGEST, digest_template, is_lazy
from gitsched.apis.karmada.attachment import Attachment, attach
from gitsched.apis.karmada.dependencies import Dependencies, Owner, quarantined_owners
from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.references import NEEDED_KINDS, Reference, read_references, show_references
from gitsched.model.document import Body, Document, Key, member
from gitsched.model.outcome import Outcome

if TYPE_CHECKING:  # the session makes these
    from gitsched.apis.karmada.session import KarmadaSession


class Relations:
    """Over the session's world. What owners came to is remembered until the world changes."""

    __slots__ = ("_bringing", "_classes", "_dependencies", "_outcomes", "_session")

    def __init__(self, session: KarmadaSession) -> None:
        self._session = session
        policies = session.policies.policies.values()
        self._classes = frozenset(filter(None, map(priority.asked_class, policies)))
        # A Lazy policy, or one that is broken now, may have had propagateDeps when bindings were last written.
        brings = any(policy.spec.get("propagateDeps") or is_lazy(policy) for policy in policies)
        self._bringing = brings or any(key.group == names.POLICY_GROUP for key in session.world.broken)
        self._dependencies = Dependencies(session.world.templates.values() if self._bringing else (), self)
        self._outcomes: dict[Key, Outcome | None] = {}

    def forget(self) -> None:
        """The world is another one."""
        self._outcomes.clear()

    @property
    def learned(self) -> int:
        """How many owners came to need something else since this was made."""
        return self._dependencies.learned

    def references(self, template: Document) -> tuple[Reference, ...]:
        """What a workload brings along, whether that is in the repository or not."""
        return self._dependencies.references.get(template.key, ())

    def place(self, template: Document) -> Outcome | None:
        """Decide a workload, once in a world if others need to know what it came to."""
        key = template.key
        if key not in self._dependencies.references:
            return self._session.decide(template)
        if key not in self._outcomes:
            self._outcomes[key] = self._session.decide(template)
        return self._outcomes[key]

    def attachment(self, template: Document) -> Attachment | None:
        """What the owners of an object ask for; None without owners."""
        if not self._can_be_needed(template):
            return None
        owners = {owner.key: owner for owner in self._owners(template)}
        return attach(sorted(owners.values(), key=lambda owner: owner.binding)) if owners else None

    def settle(self, template: Document, outcome: Outcome) -> Outcome:
        """The outcome of what is attached, at the moment of its latest cause and until its first deadline: its owners' as well."""
        owners = [found for key in self._dependencies.owners(template) if (found := self._outcomes.get(key))]
        ends = [end for end in (outcome.wakeup, *(owner.wakeup for owner in owners)) if end is not None]
        return outcome._replace(time=max((outcome.time, *(owner.time for owner in owners))), wakeup=min(ends, default=None))

    def note(self, binding: Body, template: Document, policy: Policy, attachment: Attachment | None) -> None:
        """Write into a new binding what it owes to others, and what the next run has to know of that."""
        metadata, references = binding["metadata"], self.references(template)
        if references and policy.spec.get("propagateDeps"):
            metadata["annotations"][names.DEPENDENCIES] = show_references(references)
        if is_lazy(policy):
            metadata["annotations"][TEMPLATE_DIGEST] = digest_template(template)
        if attachment is not None:
            metadata["labels"].update(attachment.labels)
        shown = priority.read_priority(policy, self._session.world.templates)
        if shown is not None and template.key.namespace:
            binding["spec"]["schedulePriority"] = shown

    def basis(self, template: Document) -> tuple[object, ...]:
        """What a decision reads besides the workload's own manifest and record."""
        world = self._session.world
        basis: list[object] = []
        if self._can_be_needed(template):
            for key in self._dependencies.owners(template):
                basis += (world.templates[key], world.previous.get(names.binding_key(key)))
            basis += quarantined_owners(self._record(template), world.previous, world.broken)
        if self._classes:
            policy, _ = self._session.governing(template, self._record(template))
            name = priority.asked_class(policy) if policy else ""
            basis += (name, world.templates.get(priority.class_key(name)))
        return tuple(basis)

    def further(self, dirty: frozenset[Key]) -> frozenset[Key]:
        """What else has to be decided anew because these are."""
        templates = self._session.world.templates
        classes = {key.name for key in dirty if (key.group, key.kind) == (priority.GROUP, priority.KIND)} & self._classes
        found: set[Key] = set()
        if classes:
            found.update(template.key for template in templates.values() if self._asks(template, classes))
        if self._bringing:
            found |= self._dependencies.relearn(dirty | found, templates)
        return frozenset(found) - dirty

    def _owners(self, template: Document) -> Iterable[Owner]:
        world = self._session.world
        for key in self._dependencies.owners(template):
            outcome = self.place(world.templates[key])
            if outcome is not None and outcome.documents:
                binding, body = outcome.documents[0]
                yield Owner(key, binding, body)
        yield from quarantined_owners(self._record(template), world.previous, world.broken)

    def _can_be_needed(self, template: Document) -> bool:
        return self._bringing and (template.api_version, template.key.kind) in NEEDED_KINDS

    def _asks(self, template: Document, classes: set[str]) -> bool:
        policy, _ = self._session.governing(template, self._record(template))
        return policy is not None and priority.asked_class(policy) in classes

    def read(self, template: Document) -> tuple[Reference, ...]:
        """The references of a workload whose binding says propagateDeps, or will."""
        shape = self._session.declared.get((template.api_version, template.key.kind))
        references = read_references(template, shape.pod if shape else ())
        if not references:
            return ()
        record = self._record(template)
        policy, claim = self._session.governing(template, record)
        if policy is not None:
            brings = policy.spec.get("propagateDeps") is True
        else:
            brings = claim in self._session.world.broken and member(record or {}, "spec", "propagateDeps") is True
        return references if brings else ()

    def _record(self, template: Document) -> Body | None:
        return self._session.world.previous.get(names.binding_key(template.key))
