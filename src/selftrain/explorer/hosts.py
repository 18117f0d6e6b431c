"""Check of the `Host` header, against DNS rebinding: a page of another site must not reach this
server through a domain name of its own that resolves to this machine.

A browser sends the name in the address, so a request with a foreign name comes from a foreign page.
The port is not compared: that would add no protection, and a tunnel may use another port.
"""

from __future__ import annotations

import ipaddress
import re
import socket

__all__ = ["LOOPBACK", "is_loopback", "is_served", "served_hosts"]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names by which a machine reaches itself."""

ANY_ADDRESS = "*"
"""Stands for every numeric address, if the server listens at all addresses of its machine."""

_WRITTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/@\s]+))(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only."""
    return host in ("localhost", "::1") or host.startswith("127.")


def served_hosts(host: str, bound: str) -> frozenset[str]:
    """Return the names and addresses that a request to the server may use.

    Arguments:
        host: the host that the user asked to listen at.
        bound: the address of the socket.
    """
    if is_loopback(host):
        return LOOPBACK | {host.lower(), bound}
    if bound in ("0.0.0.0", "::"):
        names = {socket.gethostname().lower(), socket.getfqdn().lower()}
        return LOOPBACK | names | {host.lower(), ANY_ADDRESS}
    return frozenset({host.lower(), bound})


def is_served(written: str | None, hosts: frozenset[str]) -> bool:
    """Return whether a `Host` header names one of the hosts.

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
