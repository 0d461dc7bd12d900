"""The loop of `gitsched apply --watch` goes on after errors and bugs."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from gitsched.model.errors import GitschedError, Permanent, Temporary
from gitsched.model.merge_patch import ApplyReport
from gitsched.watch import Wakeup, apply_loop
from gitsched.watch.apply_loop import watch_and_apply

REPORT = ApplyReport("", False, (), ())


@pytest.mark.parametrize("place", ["run", "listener"])
@pytest.mark.parametrize(
    "error", [KeyError("secret-value"), Temporary("busy"), Permanent("refused"), OSError(28, "full")], ids=repr
)
def test_the_loop_goes_on_after_an_error(
    error: Exception, place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(apply_loop, "compute_backoff", lambda _failures, _error: timedelta())
    wakeup, calls = Wakeup(), list[str]()

    def call(name: str) -> ApplyReport:
        calls.append(name)
        if name == place and calls.count(name) < 3:
            raise error
        if name == "listener":
            wakeup.stop()
        return REPORT

    def listen(_: ApplyReport) -> None:
        call("listener")

    with caplog.at_level(logging.ERROR):
        watch_and_apply(lambda: call("run"), interval=timedelta(milliseconds=1), listener=listen, wakeup=wakeup)
    assert calls.count("run") == 3
    assert len(caplog.records) == 2
    assert "secret-value" not in caplog.text
    is_bug = not isinstance(error, (GitschedError, OSError))
    assert caplog.text.count("this is a bug: internal error") == (2 if is_bug else 0)
