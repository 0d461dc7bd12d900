"""Fuzz for a time: `python -m tests.fuzz --seconds 900 [TARGET ...]`, or `make fuzz`.

With atheris, libFuzzer chooses the inputs by the coverage of gitsched, and mutates them with the mutations of this package; without, inputs
are mutated at random. Failures are written to the corpus, so that the suite runs them from then on. Prints counts; exits with 1 after a
failure.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from types import ModuleType

CORPUS = Path(__file__).with_name("corpus")
SLOW = 20.0
"""Seconds of one input from which it counts as a failure."""


class Session:
    """Runs one target, and counts."""

    def __init__(self, name: str, seconds: float, failures: Path) -> None:
        from .targets import TARGETS

        self.name, self.check, self._failures = name, TARGETS[name], failures
        self._end, self.inputs, self.documents, self._start = time.monotonic() + seconds, 0, 0, time.monotonic()
        self.failed: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    def run(self, data: bytes) -> None:
        """Check an input. A failure is kept once for each place where it shows."""
        self.inputs += 1
        start = time.process_time()
        try:
            self.documents += self.check(data)
        except AssertionError as error:
            self._fail("broken promise", error, data)
        except Exception as error:  # noqa: BLE001 - what is looked for
            self._fail("traceback (exit code 3)", error, data)
        if time.process_time() - start > SLOW:
            self._fail("slow", TimeoutError(f"{time.process_time() - start:.1f} s"), data)

    def _fail(self, kind: str, error: Exception, data: bytes) -> None:
        self.kinds[kind] += 1
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{type(error).__name__} " + " ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-2:])
        self.failed[place] += 1
        if self.failed[place] > 1:
            return
        path = self._failures / self.name / f"{sha256(data).hexdigest()[:10]}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        sys.stderr.write(f"{kind}: {path}\n{''.join(traceback.format_exception(error))[-2500:]}\n")

    def report(self) -> None:
        spent = time.monotonic() - self._start
        sys.stdout.write(
            f"{self.name}: {self.inputs} inputs, {self.documents} documents, {self.documents / spent:.0f} documents/s, "
            f"{self.kinds['traceback (exit code 3)']} tracebacks (exit code 3), {self.kinds['broken promise']} broken promises, "
            f"{self.kinds['slow']} slow, in {len(self.failed)} places, {spent:.0f} s\n"
        )
        sys.stdout.flush()


def read_corpus(name: str) -> list[bytes]:
    """Return the inputs of a target; every target also gets those of the others."""
    own = sorted((CORPUS / name).glob("*.yaml"))
    others = sorted(path for path in CORPUS.glob("*/*.yaml") if path.parent.name != name)
    return [path.read_bytes() for path in (*own, *others)]


def fuzz_at_random(session: Session, seed: int) -> None:
    """Mutate inputs of the corpus, and what came of them."""
    from .text_mutation import mutate_text

    random, corpus = Random(seed), read_corpus(session.name)
    for data in corpus:
        session.run(data)
    while not session.is_over:
        data = mutate_text(random.choice(corpus), random, corpus)
        session.run(data)
        if random.random() < 0.05:
            corpus.append(data)
            if len(corpus) > 2_000:
                del corpus[random.randrange(1_000, 2_000)]


def fuzz_with_coverage(atheris: ModuleType, session: Session, seed: int, found: Path) -> None:
    """Let libFuzzer choose; ends the process."""
    from .text_mutation import mutate_text

    seeds = read_corpus(session.name)
    found.mkdir(parents=True, exist_ok=True)
    for data in seeds:
        (found / sha256(data).hexdigest()[:10]).write_bytes(data)

    def run(data: bytes) -> None:
        session.run(data)
        if session.is_over:
            session.report()
            os._exit(bool(session.failed))

    def change(data: bytes, size: int, seed: int) -> bytes:
        random = Random(seed)
        return atheris.Mutate(data, size) if random.random() < 0.1 else mutate_text(data, random, seeds)[:size]

    arguments = [
        sys.argv[0],
        str(found),
        f"-artifact_prefix={found}-",
        f"-seed={seed}",
        "-max_len=60000",
        "-verbosity=0",
        "-timeout=300",
        "-rss_limit_mb=4096",
    ]
    atheris.Setup(arguments, run, custom_mutator=change)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failures", type=Path, default=CORPUS, help="where inputs that fail are written")
    parser.add_argument("--found", type=Path, default=Path(".fuzz"), help="where libFuzzer keeps inputs between runs")
    parser.add_argument("--random", action="store_true", help="do not use atheris")
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    os.environ |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    logging.disable(logging.CRITICAL)
    atheris = None
    if not options.random:
        with contextlib.suppress(ImportError):
            atheris = importlib.import_module("atheris")
    names = options.targets or ["parse", "settings", "schedule", "history", "collect"]
    code = 0
    for name in names:
        child = os.fork()
        if child == 0:
            os._exit(_fuzz(name, options, atheris))
        code |= os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code


def _fuzz(name: str, options: argparse.Namespace, atheris: ModuleType | None) -> int:
    instrumented = atheris.instrument_imports(include=["gitsched"]) if atheris is not None else contextlib.nullcontext()
    with _muted_errors() if atheris is not None else contextlib.nullcontext(), instrumented:
        from . import targets  # noqa: F401
    session = Session(name, options.seconds, options.failures)
    if atheris is not None:
        fuzz_with_coverage(atheris, session, options.seed, options.found / name)
    fuzz_at_random(session, options.seed)
    session.report()
    return bool(session.failed)


@contextlib.contextmanager
def _muted_errors() -> Iterator[None]:
    """Hide the line that atheris prints for each module."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


if __name__ == "__main__":
    sys.exit(main())
