"""Errors of the operating system and of libgit2 that no caller handled, as messages: they are no bugs."""

from __future__ import annotations

import errno

from gitsched.model.errors import GitschedError, Permanent, Temporary

_PERMANENT_ERRNOS = frozenset(
    {
        errno.EACCES,
        errno.EBADF,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    }
)


def is_bug(error: BaseException) -> bool:
    """Return whether an error is a bug: no message to the user, no failure of the operating system or of libgit2, no lack of memory."""
    return not isinstance(error, (GitschedError, MemoryError)) and convert_system_error(error) is None


def make_write_error(path: object, error: OSError) -> GitschedError:
    """Return the error to report for a file that cannot be written: Temporary where the disk is full or fails."""
    permanent = error.errno in (*_PERMANENT_ERRNOS, errno.EEXIST, errno.ENOENT)
    return (Permanent if permanent else Temporary)(f"cannot write {path}: {error.strerror}")


def convert_system_error(error: BaseException) -> GitschedError | None:
    """Return the error to report for a failed system call, or for libgit2; None for any other error.

    It is Temporary unless the same call fails until someone changes files or permissions: a full disk, a failing one, too many open
    files, or a file that another process has replaced.
    """
    if isinstance(error, OSError):
        subject = f"{error.filename}: " if error.filename else ""
        message = f"{subject}{error.strerror or error or type(error).__name__}"
        return (Permanent if error.errno in _PERMANENT_ERRNOS else Temporary)(message)
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):  # Path.resolve() before Python 3.13
        return Permanent(f"{error.args[0].partition(' from ')[2]}: its symbolic links form a loop")
    if type(error).__module__ == "_pygit2":
        return Temporary(f"the repository cannot be read or written: {error}")
    return None
