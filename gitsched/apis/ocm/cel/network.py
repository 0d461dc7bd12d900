"""Kubernetes CEL libraries for IP addresses, CIDRs and URLs."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_interface
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from gitsched.apis.ocm.cel.overloads import cel_function
from gitsched.apis.ocm.cel.types import EvaluationError
from gitsched.named_tuples import NamedTuple


class Ip(NamedTuple):
    """An IP address."""

    value: IPv4Address | IPv6Address

    @property
    def type(self) -> str:
        return "ip"


class Cidr(NamedTuple):
    """An IP address with the network of its prefix."""

    address: IPv4Address | IPv6Address
    network: IPv4Network | IPv6Network

    @property
    def type(self) -> str:
        return "cidr"


class Url(NamedTuple):
    """A URL."""

    parts: SplitResult

    @property
    def type(self) -> str:
        return "url"


def _parse_ip(text: str) -> Ip | None:
    try:
        value = ip_address(text)
    except ValueError:
        return None
    if isinstance(value, IPv6Address) and (value.ipv4_mapped is not None or value.scope_id is not None):
        return None
    return Ip(value)


def _parse_cidr(text: str) -> Cidr | None:
    head, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or (len(length) > 1 and length[0] == "0") or _parse_ip(head) is None:
        return None
    try:
        interface = ip_interface(text)
    except ValueError:
        return None
    return Cidr(interface.ip, interface.network)


@cel_function("ip(string): ip")
def ip(text: str) -> Ip:
    address = _parse_ip(text)
    if address is None:
        raise EvaluationError("not an IP address")
    return address


@cel_function("isIP(string): bool")
def is_ip(text: str) -> bool:
    return _parse_ip(text) is not None


@cel_function("global ip.isCanonical(string): bool")
def is_canonical(text: str) -> bool:
    return str(ip(text).value) == text


@cel_function("string(ip): string")
def format_ip(address: Ip) -> str:
    return str(address.value)


@cel_function("ip.family(): int")
def ip_family(address: Ip) -> int:
    return address.value.version


@cel_function("ip.isUnspecified(): bool")
def is_unspecified(address: Ip) -> bool:
    return address.value.is_unspecified


@cel_function("ip.isLoopback(): bool")
def is_loopback(address: Ip) -> bool:
    return address.value.is_loopback


@cel_function("ip.isLinkLocalMulticast(): bool")
def is_link_local_multicast(address: Ip) -> bool:
    value = address.value
    return value in IPv4Network("224.0.0.0/24") if isinstance(value, IPv4Address) else value in IPv6Network("ff02::/16")


@cel_function("ip.isLinkLocalUnicast(): bool")
def is_link_local_unicast(address: Ip) -> bool:
    return address.value.is_link_local


@cel_function("ip.isGlobalUnicast(): bool")
def is_global_unicast(address: Ip) -> bool:
    value = address.value
    broadcast = value == IPv4Address("255.255.255.255")
    return not (broadcast or value.is_unspecified or value.is_loopback or value.is_multicast or value.is_link_local)


@cel_function("cidr(string): cidr")
def cidr(text: str) -> Cidr:
    network = _parse_cidr(text)
    if network is None:
        raise EvaluationError("not a CIDR")
    return network


@cel_function("isCIDR(string): bool")
def is_cidr(text: str) -> bool:
    return _parse_cidr(text) is not None


@cel_function("string(cidr): string")
def format_cidr(network: Cidr) -> str:
    return f"{network.address}/{network.network.prefixlen}"


@cel_function("cidr.containsIP(ip): bool", "cidr.containsIP(string): bool")
def contains_ip(network: Cidr, address: Ip | str) -> bool:
    wanted = ip(address) if isinstance(address, str) else address
    return wanted.value.version == network.network.version and wanted.value in network.network


@cel_function("cidr.containsCIDR(cidr): bool", "cidr.containsCIDR(string): bool")
def contains_cidr(network: Cidr, other: Cidr | str) -> bool:
    inner = (cidr(other) if isinstance(other, str) else other).network
    outer = network.network
    if isinstance(inner, IPv4Network) and isinstance(outer, IPv4Network):
        return inner.subnet_of(outer)
    return isinstance(inner, IPv6Network) and isinstance(outer, IPv6Network) and inner.subnet_of(outer)


@cel_function("cidr.ip(): ip")
def cidr_address(network: Cidr) -> Ip:
    return Ip(network.address)


@cel_function("cidr.masked(): cidr")
def cidr_masked(network: Cidr) -> Cidr:
    return Cidr(network.network.network_address, network.network)


@cel_function("cidr.prefixLength(): int")
def prefix_length(network: Cidr) -> int:
    return network.network.prefixlen


def _parse_url(text: str) -> Url | None:
    """Parse an absolute URL or an absolute path; None if it is invalid."""
    if any(ord(c) < 33 or ord(c) == 127 for c in text) or re.search(r"%(?![0-9a-fA-F]{2})", text):
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises if it is invalid
    except ValueError:
        return None
    return Url(parts) if parts.scheme or text.startswith("/") else None


@cel_function("url(string): url")
def url(text: str) -> Url:
    address = _parse_url(text)
    if address is None:
        raise EvaluationError("not a URL")
    return address


@cel_function("isURL(string): bool")
def is_url(text: str) -> bool:
    return _parse_url(text) is not None


@cel_function("url.getScheme(): string")
def scheme(address: Url) -> str:
    return address.parts.scheme


@cel_function("url.getHost(): string")
def host(address: Url) -> str:
    return address.parts.netloc.rpartition("@")[2]


@cel_function("url.getHostname(): string")
def hostname(address: Url) -> str:
    name = host(address)
    return name[1 : name.index("]")] if name.startswith("[") and "]" in name else name.partition(":")[0]


@cel_function("url.getPort(): string")
def port(address: Url) -> str:
    name = host(address)
    rest = name.rpartition("]")[2] if name.startswith("[") else name
    return rest.partition(":")[2]


@cel_function("url.getEscapedPath(): string")
def escaped_path(address: Url) -> str:
    path = address.parts.path
    return path if "%" in path else quote(path, safe="/!$&'()*+,;=:@-._~")


@cel_function("url.getQuery(): map(string, list(string))")
def query(address: Url) -> dict[str, list[str]]:
    return parse_qs(address.parts.query, keep_blank_values=True, max_num_fields=1000)


@cel_function("string(url): string")
def format_url(address: Url) -> str:
    return unquote(address.parts.geturl()) if "%" not in address.parts.geturl() else address.parts.geturl()
