"""Addresses and URLs, as Kubernetes offers them."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_interface
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from gitsched.apis.ocm.cel.registry import function
from gitsched.apis.ocm.cel.values import Failed


class Ip(NamedTuple):
    value: IPv4Address | IPv6Address

    @property
    def type(self) -> str:
        return "ip"


class Cidr(NamedTuple):
    """An address with the length of its network's prefix."""

    address: IPv4Address | IPv6Address
    network: IPv4Network | IPv6Network

    @property
    def type(self) -> str:
        return "cidr"


class Url(NamedTuple):
    parts: SplitResult

    @property
    def type(self) -> str:
        return "url"


def _read_ip(text: str) -> Ip | None:
    try:
        value = ip_address(text)
    except ValueError:
        return None
    if isinstance(value, IPv6Address) and (value.ipv4_mapped is not None or value.scope_id is not None):
        return None
    return Ip(value)


def _read_cidr(text: str) -> Cidr | None:
    head, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or (len(length) > 1 and length[0] == "0") or _read_ip(head) is None:
        return None
    try:
        interface = ip_interface(text)
    except ValueError:
        return None
    return Cidr(interface.ip, interface.network)


@function("ip(string): ip")
def ip(text: str) -> Ip:
    address = _read_ip(text)
    if address is None:
        raise Failed("no IP address")
    return address


@function("isIP(string): bool")
def is_ip(text: str) -> bool:
    return _read_ip(text) is not None


@function("global ip.isCanonical(string): bool")
def is_canonical(text: str) -> bool:
    return str(ip(text).value) == text


@function("string(ip): string")
def ip_text(address: Ip) -> str:
    return str(address.value)


@function("ip.family(): int")
def family(address: Ip) -> int:
    return address.value.version


@function("ip.isUnspecified(): bool")
def is_unspecified(address: Ip) -> bool:
    return address.value.is_unspecified


@function("ip.isLoopback(): bool")
def is_loopback(address: Ip) -> bool:
    return address.value.is_loopback


@function("ip.isLinkLocalMulticast(): bool")
def is_link_local_multicast(address: Ip) -> bool:
    value = address.value
    return value in IPv4Network("224.0.0.0/24") if isinstance(value, IPv4Address) else value in IPv6Network("ff02::/16")


@function("ip.isLinkLocalUnicast(): bool")
def is_link_local_unicast(address: Ip) -> bool:
    return address.value.is_link_local


@function("ip.isGlobalUnicast(): bool")
def is_global_unicast(address: Ip) -> bool:
    value = address.value
    broadcast = value == IPv4Address("255.255.255.255")
    return not (broadcast or value.is_unspecified or value.is_loopback or value.is_multicast or value.is_link_local)


@function("cidr(string): cidr")
def cidr(text: str) -> Cidr:
    network = _read_cidr(text)
    if network is None:
        raise Failed("no network")
    return network


@function("isCIDR(string): bool")
def is_cidr(text: str) -> bool:
    return _read_cidr(text) is not None


@function("string(cidr): string")
def cidr_text(network: Cidr) -> str:
    return f"{network.address}/{network.network.prefixlen}"


@function("cidr.containsIP(ip): bool", "cidr.containsIP(string): bool")
def contains_ip(network: Cidr, address: Ip | str) -> bool:
    wanted = ip(address) if isinstance(address, str) else address
    return wanted.value.version == network.network.version and wanted.value in network.network


@function("cidr.containsCIDR(cidr): bool", "cidr.containsCIDR(string): bool")
def contains_cidr(network: Cidr, other: Cidr | str) -> bool:
    inner = (cidr(other) if isinstance(other, str) else other).network
    outer = network.network
    if isinstance(inner, IPv4Network) and isinstance(outer, IPv4Network):
        return inner.subnet_of(outer)
    return isinstance(inner, IPv6Network) and isinstance(outer, IPv6Network) and inner.subnet_of(outer)


@function("cidr.ip(): ip")
def ip_of_cidr(network: Cidr) -> Ip:
    return Ip(network.address)


@function("cidr.masked(): cidr")
def masked(network: Cidr) -> Cidr:
    return Cidr(network.network.network_address, network.network)


@function("cidr.prefixLength(): int")
def prefix_length(network: Cidr) -> int:
    return network.network.prefixlen


def _read_url(text: str) -> Url | None:
    """An absolute URL, or an absolute path."""
    if any(ord(c) < 33 or ord(c) == 127 for c in text) or re.search(r"%(?![0-9a-fA-F]{2})", text):
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port  # judged when it is asked for
    except ValueError:
        return None
    return Url(parts) if parts.scheme or text.startswith("/") else None


@function("url(string): url")
def url(text: str) -> Url:
    address = _read_url(text)
    if address is None:
        raise Failed("no URL")
    return address


@function("isURL(string): bool")
def is_url(text: str) -> bool:
    return _read_url(text) is not None


@function("url.getScheme(): string")
def scheme(address: Url) -> str:
    return address.parts.scheme


@function("url.getHost(): string")
def host(address: Url) -> str:
    return address.parts.netloc.rpartition("@")[2]


@function("url.getHostname(): string")
def hostname(address: Url) -> str:
    name = host(address)
    return name[1 : name.index("]")] if name.startswith("[") and "]" in name else name.partition(":")[0]


@function("url.getPort(): string")
def port(address: Url) -> str:
    name = host(address)
    rest = name.rpartition("]")[2] if name.startswith("[") else name
    return rest.partition(":")[2]


@function("url.getEscapedPath(): string")
def escaped_path(address: Url) -> str:
    path = address.parts.path
    return path if "%" in path else quote(path, safe="/!$&'()*+,;=:@-._~")


@function("url.getQuery(): map(string, list(string))")
def query(address: Url) -> dict[str, list[str]]:
    return parse_qs(address.parts.query, keep_blank_values=True, max_num_fields=1000)


@function("string(url): string")
def url_text(address: Url) -> str:
    return unquote(address.parts.geturl()) if "%" not in address.parts.geturl() else address.parts.geturl()
