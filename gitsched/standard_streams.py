"""The standard streams of the process: a closed one behaves as /dev/null, and a failed write is reported once or not at all."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_ENCODING_OPTION = "gitsched-encoding"
"""The option -X with which a process that is started again in UTF-8 mode gets the encoding of the terminal."""


def use_utf8_mode() -> None:
    """Start the process again in Python's UTF-8 mode if the locale has another encoding: paths in Git are UTF-8 in every locale."""
    if sys.flags.utf8_mode or sys.getfilesystemencoding() == "utf-8" or not sys.executable:
        return
    encoding = sys.stdout.encoding if sys.stdout is not None else "utf-8"
    options = ["-X", "utf8", "-X", f"{_ENCODING_OPTION}={encoding}"]
    os.execv(sys.executable, [sys.executable, *options, *sys.orig_argv[1:]])  # noqa: S606 - this program


def open_standard_streams() -> None:
    """Open /dev/null where a standard descriptor is closed, else the next file that is opened would get its number and be read or
    written as that stream.

    What the encoding of an output does not have is escaped. Writes fail as `_Output` describes.
    """
    for number in range(3):
        try:
            os.get_inheritable(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(number, True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open until the process ends
    encoding = sys._xoptions.get(_ENCODING_OPTION)
    sys.stdout = _open_output(_Output(1, "standard output"), sys.stdout, encoding)
    sys.stderr = _open_output(_Output(2), sys.stderr, encoding)


def _open_output(output: _Output, stream: TextIO | None, encoding: str | bool | None) -> io.TextIOWrapper:
    """Return the stream to replace one of Python's, which is None for a descriptor that was closed."""
    chosen = encoding if isinstance(encoding, str) else stream.encoding if stream is not None else "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(output), chosen, "backslashreplace", line_buffering=output.isatty() or output.fileno() == 2
    )


class _Output(io.FileIO):
    """An output of which the reader may go away, such as `| head` or a closed terminal: the rest is discarded.

    Other failures, such as a full disk, raise OSError with the title of the output, for the first write that fails. Without a title they
    are ignored, because nothing is left to report them to.
    """

    def __init__(self, number: int, title: str = "") -> None:
        super().__init__(number, "w", closefd=False)
        self._title, self._failed = title, False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write and return the number of bytes. Waits if another process has made the output non-blocking."""
        try:
            while (count := super().write(data)) is None:
                self._wait()
            return count
        except OSError as error:
            if self._title and not self._failed and not self._has_no_reader(error):
                self._failed = True  # the rest stays in the buffer, which is written again at exit
                raise OSError(error.errno, error.strerror, self._title) from error
            return memoryview(data).nbytes

    def _wait(self) -> None:
        import select  # rarely needed

        poll = select.poll()
        poll.register(self, select.POLLOUT)
        poll.poll()

    def _has_no_reader(self, error: OSError) -> bool:
        return error.errno == errno.EPIPE or (error.errno == errno.EIO and stat.S_ISCHR(os.fstat(self.fileno()).st_mode))
