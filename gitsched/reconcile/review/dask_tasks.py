"""Compute a function of bytes on the workers of a Dask cluster. Results are bytes: nothing that the cluster sends is unpickled here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from distributed import Client
from distributed.security import Security

import gitsched
from gitsched.model.errors import GitschedError, Permanent, Temporary
from gitsched.model.finding import format_count, format_names
from gitsched.reconcile.review.refused_pickles import PickleRefused, pickles_refused
from gitsched.report.lines import escape_unprintable

Compute = Callable[[bytes], bytes]
MakeTasks = Callable[[int], Sequence[bytes]]
Receive = Callable[[int, bytes], object]
Results = asyncio.Queue[tuple[int, Any]]

CONNECT_SECONDS = 10.0
"""How long the scheduler may take to answer, for the connection and for each question."""
WORKER_SECONDS = 120.0
"""How long the cluster may have no worker: some clusters start workers when there are tasks."""
RESULT_SECONDS = 1800.0
"""How long no result may come while there are workers."""
_POLL_SECONDS = 1.0
_MAX_RESULT = 1 << 30
"""The number of bytes of one result."""
_QUIET = ("distributed", "tornado", "asyncio", "dask")
"""Loggers whose messages have tracebacks; what matters of them is an error here."""


def run_tasks(address: str, compute: Compute, make_tasks: MakeTasks, receive: Receive) -> None:
    """Call a function that workers import with tasks on a Dask cluster, and `receive` with the number and the result of each as it comes.
    `make_tasks` returns the tasks, given the number of threads of all workers.

    Raise Temporary or Permanent if the cluster does not answer, has other versions of gitsched, or sends anything but bytes. What `receive`
    raises ends the run.
    """
    _silence_loggers()
    with pickles_refused() as refused, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask's own versions need not be equal
        try:
            asyncio.run(_run(address, compute, make_tasks, receive, refused))
        except GitschedError:
            raise
        except Exception as error:
            if refused:
                raise _describe_refused(refused) from None
            raise Temporary(f"the Dask cluster at {address} failed: {type(error).__name__}: {_format(error)}") from error


def _silence_loggers() -> None:
    known = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _QUIET]
    for name in (*_QUIET, *known):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _describe_refused(refused: Sequence[str]) -> Permanent:
    return Permanent(
        f"a task failed on the Dask cluster, or a worker sent something else than a result: a pickle that refers to {_format(refused[0])}. "
        "It was not loaded, because that would run code of the worker here; the logs of the workers and the scheduler say more"
    )


def _format(text: object) -> str:
    """Return text of another machine for a message."""
    return escape_unprintable(str(text)[:300])


@contextlib.asynccontextmanager
async def _connect(address: str) -> AsyncIterator[Client]:
    """Yield a client of a scheduler. Raise Temporary if it does not answer, Permanent without the certificates that TLS needs."""
    try:
        security = Security(require_encryption=True) if address.startswith("tls://") else Security()
    except (OSError, ValueError) as error:
        raise Permanent(f"Dask's configuration of TLS is not valid: {error}") from error
    files = security.get_tls_config_for_role("client")
    if address.startswith("tls://") and not (files["ca_file"] and files["cert"]):
        raise Permanent(
            "TLS needs certificates: set distributed.comm.tls.ca-file, distributed.comm.tls.client.cert and .key in Dask's "
            "configuration, "
            "or DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ..__CLIENT__CERT and ..__CLIENT__KEY"
        )
    client: Client | None = None
    try:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                client = Client(
                    address,
                    asynchronous=True,
                    security=security,
                    set_as_default=False,
                    deserializers=["msgpack", "error"],
                    direct_to_workers=False,
                    timeout=CONNECT_SECONDS,
                )
                await client
        except TimeoutError as error:
            raise Temporary(f"there is no answer from a Dask scheduler at {address} after {CONNECT_SECONDS:.0f} s") from error
        except PickleRefused:
            raise
        except Exception as error:  # as many kinds as there are servers that are no scheduler
            raise Temporary(f"there is no Dask scheduler at {address}: {_format(error) or type(error).__name__}") from error
        for topic in ("print", "warn"):
            client.unsubscribe_topic(topic)  # workers could write to this terminal
        yield client
    finally:
        if client is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_POLL_SECONDS):
                    await client.close()


async def _run(address: str, compute: Compute, make_tasks: MakeTasks, receive: Receive, refused: Sequence[str]) -> None:
    async with _connect(address) as client:
        async with asyncio.timeout(CONNECT_SECONDS):
            await _check_versions(client)
            threads = sum((await client.nthreads()).values())
        tasks = make_tasks(max(threads, 1))
        results: Results = asyncio.Queue()
        running = [asyncio.create_task(_compute(client, compute, *entry, results)) for entry in enumerate(tasks)]
        try:
            await _receive(client, len(tasks), results, receive, refused)
        finally:
            for one in running:
                one.cancel()


async def _check_versions(client: Client) -> None:
    """Raise Permanent unless the workers that there are have this version of gitsched."""
    found: dict[str, set[str]] = {}
    answer: Any = client.get_versions(packages=["gitsched"])
    for name, versions in (await answer)["workers"].items():
        version = versions.get("packages", {}).get("gitsched") if isinstance(versions, dict) else None
        if version != gitsched.__version__:
            found.setdefault(_format(version) if version else "no gitsched", set()).add(_format(name))
    if found:
        listed = "; ".join(f"{format_names(sorted(names))}: {version}" for version, names in sorted(found.items()))
        raise Permanent(f"workers have another version of gitsched than {gitsched.__version__}, which is here: {listed}")


async def _compute(client: Client, compute: Compute, number: int, task: bytes, results: Results) -> None:
    future = client.submit(compute, task, pure=False)
    try:
        results.put_nowait((number, await client.gather(future)))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # Dask raises the latter for a lost connection, too
        results.put_nowait((number, error))


async def _receive(client: Client, count: int, results: Results, receive: Receive, refused: Sequence[str]) -> None:
    last = alive = time.monotonic()
    while count:
        if refused:
            raise _describe_refused(refused)
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                number, result = await results.get()
        except TimeoutError:
            now = time.monotonic()
            async with asyncio.timeout(CONNECT_SECONDS):
                alive = now if await client.nthreads() else alive
            if now - max(alive, last) > WORKER_SECONDS:
                raise Temporary(f"the Dask cluster has had no worker for {WORKER_SECONDS:.0f} s") from None
            if now - last > RESULT_SECONDS:
                raise Temporary(
                    f"no result came from the Dask cluster for {RESULT_SECONDS:.0f} s: {format_count(count, 'task')} left"
                ) from None
            continue
        last = time.monotonic()
        count -= 1
        if refused:
            raise _describe_refused(refused)
        if isinstance(result, BaseException):
            raise Temporary(f"a task failed on the Dask cluster: {type(result).__name__}: {_format(result)}")
        if type(result) is not bytes or len(result) > _MAX_RESULT:
            raise Permanent(f"a worker returned something else than the bytes of a result: {_format(type(result).__name__)}")
        receive(number, result)
