"""The command line: entry point of `python -m gitsched` and of the installed script."""

import signal
import sys
from types import FrameType

from gitsched.standard_streams import open_standard_streams, use_utf8_mode

INTERRUPTED, TERMINATED = 130, 143
_RETRY_SECONDS = 5.0
"""Seconds until the end is requested again, longer than git needs to end: an import may lose an exception of a signal handler."""


def main() -> int:
    """Run one command and return its exit code. An interrupt while modules are imported shows no traceback, either.

    SIGTERM ends a command as Ctrl-C does, so that it ends git and other programs that it started, and deletes its temporary files.
    """
    use_utf8_mode()
    open_standard_streams()
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        from gitsched.cli import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


def _terminate(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
    signal.signal(signal.SIGALRM, _terminate)
    signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS, _RETRY_SECONDS)
    sys.exit(TERMINATED)


if __name__ == "__main__":
    sys.exit(main())
