"""Where a resident process listens: taken before anything else begins, so that an address in use is told at once."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket

from gitsched.model.errors import Permanent

_ADDRESS = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]*)):([0-9]{1,5})")
_BACKLOG = 128
_ABSENT = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}
"""A machine without IPv6 may still name such addresses: one of several may be missing."""


def listen(address: str) -> list[socket.socket]:
    """Sockets for `HOST:PORT`, `[IPv6]:PORT` or `:PORT`, which is every address of this machine; port 0 is any free one.

    Permanent, in words for the operator, where that cannot be.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[3]) > 65535:
        raise Permanent(f"cannot listen on {address!r}: an address is HOST:PORT, [IPv6]:PORT or :PORT")
    host, port = match[1] or match[2] or None, int(match[3])
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise Permanent(f"cannot listen on {address}: {getattr(error, 'strerror', None) or error}") from error
    with contextlib.ExitStack() as opened:
        sockets: list[socket.socket] = []
        refused: OSError | None = None
        for family, _, _, _, place in dict.fromkeys(found):
            # The second family takes the port that the first one was given.
            taken = sockets[0].getsockname()[1] if sockets and port == 0 else port
            try:
                sockets.append(opened.enter_context(_bind(family, (place[0], taken, *place[2:]))))
            except OSError as error:
                refused = error
                if error.errno not in _ABSENT:
                    break
        if refused is not None and (not sockets or refused.errno not in _ABSENT):
            raise Permanent(f"cannot listen on {address}: {os.strerror(refused.errno or 0)}") from refused
        opened.pop_all()
        return sockets


def name_socket(opened: socket.socket) -> str:
    """The address of a socket as people write it."""
    host, port = opened.getsockname()[:2]
    return f"[{host}]:{port}" if opened.family == socket.AF_INET6 else f"{host}:{port}"


def _bind(family: int, place: tuple[str | int, ...]) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(place)
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened
