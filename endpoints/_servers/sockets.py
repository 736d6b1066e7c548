"""The socket that a server listens on: its port, and its options, which accepted connections inherit."""

import ctypes
import os
import socket

from contract import Failure, Unsupported

BACKLOG = 65535  # the kernel lowers it to net.core.somaxconn
FAST_OPEN_QUEUE = 4096
FAST_OPEN_OF_SERVERS = 2  # a bit of net.ipv4.tcp_fastopen
PIDFD_GETFD = 438  # the number of the system call, the same on every architecture


def bind(site):
    """A socket that has the site's address and port, and does not listen.

    While it is open the kernel gives its port to nobody who asks for any, yet a server that asks for this very one gets
    it, because both set SO_REUSEADDR (socket(7)).
    """
    sock = socket.socket(socket.AF_INET6 if site.address.version == 6 else socket.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if site.address.version == 6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as both servers do
    try:
        sock.bind((str(site.address), site.port))
    except OSError as error:
        raise Failure("other", f"binding {site.address} port {site.port}: {error.strerror}") from error
    return sock


def apply(sock, site):
    """Sets the options that the kernel has for every connection alike."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, site.no_delay)
    if site.congestion is not None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, site.congestion.encode())
        except OSError as error:
            raise Unsupported(f"transport: `congestion` = {site.congestion!r}: {error.strerror}; the kernel has "
                              f"{kernel_setting('tcp_available_congestion_control')}") from error
    if site.fast_open:
        if not int(kernel_setting("tcp_fastopen")) & FAST_OPEN_OF_SERVERS:
            raise Unsupported("transport: `fast_open`: the kernel does not allow it for servers; allow it with "
                              "`sysctl -w net.ipv4.tcp_fastopen=3`")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, FAST_OPEN_QUEUE)


def in_force(sock):
    """What is in force, read back from the kernel."""
    name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return {
        "congestion": name.split(b"\0")[0].decode(),
        "no_delay": bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)),
        "fast_open": bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN)),
    }


def borrow(pid, port):
    """The socket on which a child listens at `port`, for options that it has no setting for: pidfd_getfd(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            if not os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:"):
                continue
            if (descriptor := libc.syscall(PIDFD_GETFD, pidfd, int(number), 0)) < 0:
                raise Unsupported("transport: the kernel does not let this endpoint see or set the options of the "
                                  f"server's socket: pidfd_getfd: {os.strerror(ctypes.get_errno())}")
            sock = socket.socket(fileno=descriptor)
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and sock.getsockname()[1] == port:
                return sock
            sock.close()
    finally:
        os.close(pidfd)
    raise Failure("other", f"the server has no socket that listens at port {port}")


def kernel_setting(name):
    """A setting below net.ipv4, as the kernel prints it."""
    with open(f"/proc/sys/net/ipv4/{name}", encoding="ascii") as file:
        return file.read().strip()
