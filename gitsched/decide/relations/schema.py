"""The database of relations: its inputs, its queries in the order of their steps, and the rows that these emit.

An entry is a companion or a target of one: the key of the workload that delivers it, or its own, and the number of the part. The code of a
query is imported when one of its results is computed.
"""

from __future__ import annotations

from gitsched.query.schema import Query, Relation, Schema, Step

OBJECT, SETTINGS = "object", "settings"
PLACED, ROLLOUTS = "placed", "rollouts"
"""The inputs: the facts of each object, and the settings about objects that clusters have by themselves; where the source has Rollouts,
what these read of each placed workload, and what they select."""

FACTS, ASSUMPTIONS = "facts", "assumptions"
PLACED_FACTS, ROLLOUT_RULES = "placed facts", "rollout rules"
REQUIRES, CONTAINS, BUILT, WRITES, MAKES, BOUND = "requires", "contains", "built", "writes", "makes", "bound"
"""By object: what requires it, contains it, has it in a variant, writes it where it is delivered, would write it, and binds it."""
CUSTOM, DEFINITIONS, RESOURCES, CLAIMS, SHARED = "custom", "definitions", "resources", "claims", "shared"
"""By group and kind the custom objects and their definition; by namespace and name custom resources, claims and shared Services."""
CHARTS, WORDS, MEMBERS, NAMESPACES, FAR = "charts", "words", "members", "namespaces", "far companions"
"""By namespace charts, words of manifests, companions and their targets; all namespaces with any of these; companions with targets in other
namespaces."""
ANNOTATIONS = "annotations"
"""Values of the annotation about companions that have no meaning."""
UNUSABLE = "unusable"
"""Namespaces with objects that may run pods, and that the source has broken, defined differently, or changed by kustomizations."""
COMPANIONS = "companions"
ANY_NAMESPACE = "*"
"""The group of all charts in CHARTS: no namespace has this name."""

DIRECT, ROLLOUT = "direct rollout", "rollout"
"""By workload the Rollout that selects it or its policy, and the one that it belongs to: that, or one of a workload that brings it
along."""
RECORD_ROLLOUTS, ROLLOUT_CLUSTERS, ROLLOUT_OVERLAPS = "rollouts of records", "clusters of rollouts", "overlapping rollouts"
"""By namespace and name of records the Rollout of their workload; by Rollout the clusters of its workloads, and "" if it has any; and the
Rollouts that select the same workload."""

WORD_INDEX, MEMBER_INDEX, FAR_INDEX = "word index", "member index", "far index"

MISSING, REPORTED, REPORTED_COUNT = "missing", "reported", "reported count"
ALONE, OF_KIND = ("alone", "", ""), "kind"
"""The groups of REPORTED: objects with a finding of their own, and, with group and kind, those of each kind that clusters often have by
themselves."""

TARGETS, TARGETED, PLACEMENT = "targets", "targeted", "companion placement"
OWN_COMPANIONS = "own companions"
"""The companions that go wherever a target goes."""
SEPARATED, UNSELECTED, RELATED = "separated", "unselected", "related"
"""Companions that do not go where their targets go; by API and policy those that no policy selects; by object those that it is or has."""
UNTARGETED = "untargeted"
"""Services that select nothing."""
SEPARATED_COUNT, UNSELECTED_COUNT, UNTARGETED_COUNT = "separated count", "unselected count", "untargeted count"

_VERSION = "5"
"""To be changed with the form of facts and results; the code of the queries is a part of the key of a plan state."""
_FACTS, _OBJECTS, _MISSING, _COMPANIONS = (
    f"gitsched.decide.relations.{name}:" for name in ("object_facts", "object_queries", "missing_objects", "companion_placement")
)
_ROLLOUTS = "gitsched.decide.rollouts.rollout_members:"

SCHEMA = Schema(
    (OBJECT, SETTINGS, PLACED, ROLLOUTS),
    (
        Step(
            "objects",
            (
                Query(FACTS, f"{_FACTS}read_object", each=OBJECT),
                Query(ASSUMPTIONS, f"{_OBJECTS}read_assumptions", stored=False),
                Query(PLACED_FACTS, f"{_ROLLOUTS}read_placed", each=PLACED),
                Query(ROLLOUT_RULES, f"{_ROLLOUTS}read_rules", stored=False),
            ),
            (
                *(Relation(name, 4) for name in (REQUIRES, CONTAINS, BUILT, WRITES, MAKES, BOUND)),
                *(Relation(name, 2) for name in (CUSTOM, DEFINITIONS, RESOURCES, CLAIMS, SHARED)),
                *(Relation(name) for name in (CHARTS, WORDS, MEMBERS, NAMESPACES, FAR, ANNOTATIONS, UNUSABLE)),
                Relation(COMPANIONS, 5),
            ),
        ),
        Step(
            "indexes",
            (
                Query(WORD_INDEX, f"{_MISSING}index_words", stored=False),
                Query(MEMBER_INDEX, f"{_COMPANIONS}index_members", stored=False),
                Query(FAR_INDEX, f"{_COMPANIONS}index_far", stored=False),
                Query(DIRECT, f"{_ROLLOUTS}find_direct", each=PLACED),
            ),
            (Relation(RECORD_ROLLOUTS, 2), Relation(ROLLOUT_OVERLAPS)),
        ),
        Step(
            "missing objects",
            (
                Query(MISSING, f"{_MISSING}find_missing", each=REQUIRES),
                Query(ROLLOUT, f"{_ROLLOUTS}find_rollout", each=PLACED),
            ),
            (Relation(REPORTED, 3), Relation(ROLLOUT_CLUSTERS)),
        ),
        Step(
            "targets",
            (
                Query(TARGETS, f"{_COMPANIONS}find_targets", each=COMPANIONS),
                Query(REPORTED_COUNT, f"{_MISSING}count_reported", each=REPORTED),
            ),
            (Relation(TARGETED, 5),),
        ),
        Step("own companions", (Query(OWN_COMPANIONS, f"{_COMPANIONS}list_own_companions", stored=False),)),
        Step(
            "companions",
            (Query(PLACEMENT, f"{_COMPANIONS}place_companion", each=COMPANIONS),),
            (Relation(SEPARATED), Relation(UNTARGETED), Relation(UNSELECTED, 2), Relation(RELATED, 4)),
        ),
        Step(
            "totals",
            (
                Query(SEPARATED_COUNT, f"{_COMPANIONS}count_separated", each=SEPARATED),
                Query(UNTARGETED_COUNT, f"{_COMPANIONS}count_untargeted", each=UNTARGETED),
                Query(UNSELECTED_COUNT, f"{_COMPANIONS}count_unselected", each=UNSELECTED),
            ),
        ),
    ),
    version=_VERSION,
)
