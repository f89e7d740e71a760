"""Which names in a request's `Host` may lead to the page.

A web page can let its own name lead to an address of its visitor's network (DNS rebinding), and
reads there what the visitor's browser may read. Such a request has the page's own name as its host.
"""

import socket
from collections.abc import Iterable
from ipaddress import ip_address


def is_own(host: str, own: Iterable[str]) -> bool:
    """May a request with this `Host` be answered?

    An address may, since no name was looked up; and a name without a dot, which no outsider can
    own: `localhost`, a service of docker-compose. Of others this machine's own, and those in `own`.

    >>> [is_own(host, ["me.org"]) for host in ("[::1]:80", "word-count:9095", "me.org", "evil.org")]
    [True, True, True, False]
    """
    name = _cut_port(host).rstrip(".").lower()
    if _is_address(name) or "." not in name:
        return True
    return name in {each.rstrip(".").lower() for each in (*own, socket.gethostname())}


def _cut_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
