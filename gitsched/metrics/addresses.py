"""Where a provider may be: which hosts are asked, and which addresses never are."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection

from gitsched.metrics.failures import Unreachable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NEVER = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # link-local: the metadata services of clouds answer there, with credentials
            "fe80::/10",
            "fd00:ec2::254/128",  # the same service of one cloud, at an address that is not link-local
            "fd20:ce::254/128",
            "100.100.100.200/32",
            "168.63.129.16/32",
            "192.0.0.192/32",
            "0.0.0.0/8",
            "::/128",
            "224.0.0.0/4",
            "ff00::/8",
        ),
    )
)
_ADDRESSES = 4
"""Addresses of one name that are tried."""
_CARRIERS = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
"""IPv6 networks whose addresses end with one of IPv4, beside those that `ipaddress` knows."""
_LOOPBACK = ipaddress.ip_address("::1")


def check_host(host: str, allowed: Collection[str] | None) -> None:
    """Raise Unreachable for a host that is not on the list: a name, or `*.` and a domain. None allows every host."""
    if allowed is None:
        return
    name = host.lower().rstrip(".")
    for entry in allowed:
        wanted = entry.lower().rstrip(".")
        if name == wanted or (wanted.startswith("*.") and name.endswith(wanted[1:])):
            return
    raise Unreachable("its host is not one of those that may be asked")


def resolve(host: str, port: int) -> tuple[str, ...]:
    """The addresses of a host, at least one and none of them a forbidden one, in the order in which the system prefers them.

    The connection goes there: the name is not looked up again. Raises Unreachable.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable("its host is not known") from error
    addresses = [str(entry[4][0]) for entry in found]
    if any(_is_forbidden(ipaddress.ip_address(address.partition("%")[0])) for address in addresses):
        raise Unreachable("its host has a link-local or otherwise reserved address, and such are never asked")
    if not addresses:
        raise Unreachable("its host is not known")
    return tuple(dict.fromkeys(addresses))[:_ADDRESSES]


def _is_forbidden(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address != _LOOPBACK and any(address in network for network in _CARRIERS):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_forbidden(inner)
    return any(address in network for network in _NEVER if network.version == address.version)
