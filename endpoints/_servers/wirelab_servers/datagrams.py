"""The UDP sockets of a server that speaks QUIC: their port, and the options that the kernel keeps for them."""

import socket

from wirelab_endpoint.contract import Unsupported
from wirelab_servers import sockets

UDP_SEGMENT, UDP_GRO = 103, 104  # options of level IPPROTO_UDP: udp(7), Linux 4.18 and 5.0

# For each setting: the option, the option without the kernel's limit (it needs CAP_NET_ADMIN), and that limit.
BUFFERS = {
    "udp_send_buffer": (socket.SO_SNDBUF, 32, "net.core.wmem_max"),  # 32: SO_SNDBUFFORCE
    "udp_receive_buffer": (socket.SO_RCVBUF, 33, "net.core.rmem_max"),  # 33: SO_RCVBUFFORCE
}


def bind(site, count=1):
    """As many sockets at the same port as the server has workers: the kernel sends all packets of a connection to one.

    They share the port by SO_REUSEPORT. The first one checks whether the port is free, which that option would hide.
    """
    first = hold(site)
    site.port = first.getsockname()[1]
    return [first] + [sockets.bind(site, socket.SOCK_DGRAM, socket.SO_REUSEPORT) for _ in range(count - 1)]


def hold(site):
    """A socket that has the site's address and port; a server that sets SO_REUSEPORT gets it all the same."""
    sock = sockets.bind(site, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return sock


def settle(socks, site, segments=True):
    """Sets the spec's options and returns the active ones, read back from the kernel; `segments`: the server uses GSO.

    After the server has started, because some servers set buffers too.
    """
    for sock in socks:
        for name, wanted in [("udp_send_buffer", site.send_buffer), ("udp_receive_buffer", site.receive_buffer)]:
            if wanted is not None:
                set_buffer(sock, name, wanted)
        if site.gro is False:
            sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 0)
    facts = {name: buffer(socks[0], name) for name in BUFFERS}  # all sockets are alike
    facts["gso"] = segments and site.gso is not False and can_segment(socks[0])
    facts["gro"] = bool(socks[0].getsockopt(socket.IPPROTO_UDP, UDP_GRO))
    for name, wanted, since in [("gso", site.gso, "4.18"), ("gro", site.gro, "5.0")]:
        if wanted and not facts[name]:
            raise Unsupported(f"transport: `{name}`: this kernel does not have it for UDP (Linux {since} has)")
    return facts


def set_buffer(sock, name, wanted):
    option, forcing, limit = BUFFERS[name]
    try:
        sock.setsockopt(socket.SOL_SOCKET, forcing, wanted)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, option, wanted)
    if (have := buffer(sock, name)) != wanted:
        raise Unsupported(f"transport: `{name}` = {wanted}: the kernel gives {have}; its limit is the sysctl {limit}")


def buffer(sock, name):
    """The active size; Linux keeps and reports twice the set size, for its own bookkeeping (socket(7))."""
    return sock.getsockopt(socket.SOL_SOCKET, BUFFERS[name][0]) // 2


def can_segment(sock):
    """Whether the kernel can cut a buffer into datagrams: the test that libraries make before they use GSO."""
    try:
        sock.getsockopt(socket.IPPROTO_UDP, UDP_SEGMENT)
    except OSError:
        return False
    return True
