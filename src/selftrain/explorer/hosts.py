"""Which `Host` a request may name: a page of another site must not reach this server under a name
of its own that points here (DNS rebinding).

A browser sends the name it was given, so a foreign name betrays a foreign page. The port is not
compared: it protects from nothing, and a tunnel to this machine may have another.
"""

from __future__ import annotations

import ipaddress
import re
import socket

__all__ = ["LOOPBACK", "is_loopback", "is_served", "served_hosts"]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this machine for itself."""

ANY_ADDRESS = "*"
"""Stands for every address written in numbers, where the server listens at all of its machine."""

_WRITTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/@\s]+))(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only."""
    return host in ("localhost", "::1") or host.startswith("127.")


def served_hosts(host: str, bound: str) -> frozenset[str]:
    """The names under which a server can be asked for.

    Arguments:
        host: what it was told to listen at.
        bound: the address of its socket.
    """
    if is_loopback(host):
        return LOOPBACK | {host.lower(), bound}
    if bound in ("0.0.0.0", "::"):
        names = {socket.gethostname().lower(), socket.getfqdn().lower()}
        return LOOPBACK | names | {host.lower(), ANY_ADDRESS}
    return frozenset({host.lower(), bound})


def is_served(written: str | None, hosts: frozenset[str]) -> bool:
    """Whether a `Host` header names one of the hosts.

    >>> is_served("localhost:8050", LOOPBACK), is_served("evil.example:8050", LOOPBACK)
    (True, False)
    """
    found = _WRITTEN.fullmatch(written or "")
    if found is None:
        return False
    name = (found[1] or found[2]).lower()
    return name in hosts or (ANY_ADDRESS in hosts and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
