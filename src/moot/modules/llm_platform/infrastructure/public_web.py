"""What lies on the public web, and what does not: this machine and its network are nobody else's to reach."""

import asyncio
import re
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

Address = IPv4Address | IPv6Address
Allows = Callable[[Address, int], bool]
"""Whether an address may be reached at that port."""

PUBLIC_V6 = ip_network("2000::/3")
"""All that was ever given out. Loopback, mapped, translated, local and multicast addresses lie outside of it."""

NOT_PUBLIC = [
    ip_network(block)
    for block in (  # beside those that Python knows, in every version of it
        "168.63.129.16/32",  # a cloud's own host, in a public range
        "192.0.0.0/24",
        "192.88.99.0/24",  # relays to 6to4
        "224.0.0.0/4",
        "2001::/23",  # protocols, among them Teredo, which wraps an IPv4 address
        "2002::/16",  # 6to4, which wraps an IPv4 address
        "3fff::/20",
    )
]
NUMERIC_LABEL = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)


class NotPublicError(Exception):
    """A name, or an address, that does not lead to the public web."""

    def __init__(self, host: str, address: Address | None = None) -> None:
        super().__init__(host)
        self.host, self.address = host, address


def is_public(address: Address, _port: int = 0) -> bool:
    given_out = address.version == 4 or address in PUBLIC_V6
    return given_out and address.is_global and not any(address in block for block in NOT_PUBLIC)


def literal(host: str) -> Address | None:
    """The address a host spells out; None when it is a name.

    Raises `ValueError` for a number that is no plain address (`127.1`, `0x7f000001`, `0177.0.0.1`): what such a
    spelling means depends on who reads it. An address with a zone (`fe80::1%eth0`) is none either.
    """
    if ":" in host:
        if "%" in host:
            raise ValueError(host)
        return IPv6Address(host)
    last = host.rstrip(".").rpartition(".")[2]
    return IPv4Address(host) if NUMERIC_LABEL.fullmatch(last) else None


class CheckedResolver(AbstractResolver):
    """What it returns is what the connection is made to, so a name that changes its mind afterwards gains nothing.

    Raises `NotPublicError` where one of its addresses is not allowed.
    """

    def __init__(self, resolver: AbstractResolver, allows: Allows = is_public) -> None:
        self._resolver, self._allows = resolver, allows

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        if not found:
            raise OSError("no address")
        for answer in found:
            if not self._allows(address := ip_address(answer["host"]), answer["port"]):
                raise NotPublicError(host, address)
        return found

    async def close(self) -> None:
        await self._resolver.close()


async def leads_outside(url: str) -> bool:
    """Whether all that a URL leads to is public. A name that leads nowhere yet is looked at when it is used."""
    parts = urlsplit(url)
    try:
        address = literal(parts.hostname or "")
        if address is not None:
            return is_public(address)
        found = await asyncio.get_running_loop().getaddrinfo(
            parts.hostname, parts.port, type=socket.SOCK_STREAM
        )
    except OSError:
        return True
    except ValueError:
        return False
    return all(is_public(ip_address(str(place[0]).partition("%")[0])) for *_, place in found)
