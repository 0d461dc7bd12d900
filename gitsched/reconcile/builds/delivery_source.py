"""Read the settings that Flux and Argo CD need for an output branch: address, branch, cluster directories, signing."""

from __future__ import annotations

from collections.abc import Collection

from gitsched.git.output import OutputRepository
from gitsched.git.remote_refs import find_remote_url
from gitsched.model.errors import Permanent
from gitsched.model.urls import strip_credentials
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.armed_tools import ArmedTool, list_armed_tools
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.review.ignored_settings import log_ignored_settings
from gitsched.reconcile.run import Planned, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source_plan import use_plan
from gitsched.render.delivery_tools import OutputBranch
from gitsched.render.hub_directory import HUB_KUSTOMIZATION


class DeliverySource(NamedTuple):
    """`clusters` are the sorted names of those with a directory. `signed` says that the operator signs commits.

    `has_applications` says that the output has Applications of Bundles, `prunes_applications` that Argo CD deletes what leaves a cluster.
    `armed` are the objects of Flux and Argo CD in the source that delete what the output branch takes over. `unpushed` says that the branch
    has to be pushed, "" if origin has it, as far as this clone knows.
    """

    branch: OutputBranch
    clusters: tuple[str, ...]
    signed: bool
    has_applications: bool
    prunes_applications: bool
    armed: tuple[ArmedTool, ...] = ()
    unpushed: str = ""


def read_delivery_source(settings: RunSettings, url: str | None, own: Collection[str] = ()) -> DeliverySource:
    """Return the address of the output and its clusters. Nothing is written.

    `url` is the address that delivery tools use, if it differs from the remote that is pushed to. Raises Permanent if they can use neither.
    `own` are names of the objects that deliver the output branch.
    """
    context = open_context(settings._replace(observations="recorded"))
    fetched = fetch(context)
    output = fetched.output
    origin = find_remote_url(output.repository, "origin")
    known = url or output.remote or origin
    address = strip_credentials(known)
    if address is None:
        what = f"{known!r} is not a URL" if url else "the output has no URL"
        raise Permanent(f"{what} that a cluster can reach; set --url to an https or ssh URL")
    branch = OutputBranch(address, output.branch, fetched.prefix)

    def make_source(planned: Planned) -> DeliverySource:
        return DeliverySource(
            branch,
            tuple(sorted(planned.plan.cluster_facts)),
            context.settings.signing is not None,
            HUB_KUSTOMIZATION in planned.plan.files,
            planned.config.delivery.argocd.prune,
            armed,
            _describe_unpushed(fetched.output, fetched.output_head, "origin" if origin is not None else address),
        )

    armed = list_armed_tools(context.source.repository, fetched.source.tree, own)
    planned, found = use_plan(context, fetched, settings.now, make_source)
    log_ignored_settings(planned.plan)
    return found


def _describe_unpushed(output: OutputRepository, head: str | None, remote: str) -> str:
    """Return how the output branch of this clone gets to a remote; "" if origin has it, or if nothing is known of it."""
    if output.remote is not None or output.unfetched:
        return ""
    if head is None:
        return f"there is no branch {output.branch} yet: gitsched reconcile --push {remote} makes and pushes it"
    tracked = output.repository.resolve_ref(f"refs/remotes/origin/{output.branch}")
    if tracked is not None and output.repository.has_ancestor(tracked, head):
        return ""
    return (
        f"delivery tools read branch {output.branch} from its remote: git push {remote} {output.branch}, "
        f"and from then on gitsched reconcile --push {remote}"
    )
