"""The TCP socket that a server listens on: its port, and its options, which accepted connections inherit."""

import ctypes
import errno
import os
import socket

from wirelab_endpoint.contract import Failure, Unsupported
from wirelab_servers import choices

FAST_OPEN_QUEUE = 4096
FAST_OPEN_OF_SERVERS = 2  # a bit of net.ipv4.tcp_fastopen
PIDFD_GETFD = 438  # the number of the system call, the same on every architecture


def hold(site, *options):
    """A socket that has the site's address and port, and does not listen.

    While it is open, the kernel gives its port to no process that asks for any port. A server that asks for this very port
    gets it, because both set SO_REUSEADDR (socket(7)), or else one of `options`.
    """
    return bind(site, socket.SOCK_STREAM, socket.SO_REUSEADDR, *options)


def listen(site):
    """The socket with all options set, for servers that take a listening one."""
    sock = hold(site)
    settle([sock], site)
    sock.listen(choices.BACKLOG)
    # Servers keep the mode of the socket: in blocking mode a worker would hang in accept() if another one was faster.
    sock.setblocking(False)
    return sock


def bind(site, kind, *options):
    sock = socket.socket(socket.AF_INET6 if site.address.version == 6 else socket.AF_INET, kind)
    for option in options:
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
    if site.address.version == 6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as servers do
    try:
        sock.bind((str(site.address), site.port))
    except OSError as error:
        raise Failure("other", f"binding {site.address} port {site.port}: {error.strerror}") from error
    return sock


def host(site):
    """The address as URLs and configurations write it."""
    return f"[{site.address}]" if site.address.version == 6 else str(site.address)


def settle(socks, site):
    """Sets the options that the kernel has for every connection, and returns the active ones, read back from it."""
    for sock in socks:
        apply(sock, site)
    return active_settings(socks[0])


def apply(sock, site):
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


def active_settings(sock):
    name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return {
        "congestion": name.split(b"\0")[0].decode(),
        "no_delay": bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)),
        "fast_open": bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN)),
    }


def borrow(pid, port=None, kind=socket.SOCK_STREAM):
    """The sockets on which a child serves, for options that it has no setting for: pidfd_getfd(2)."""
    libc, found = ctypes.CDLL(None, use_errno=True), []
    pidfd = os.pidfd_open(pid)
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                is_socket = os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:")
            except FileNotFoundError:  # it has been closed
                continue
            if not is_socket:
                continue
            if (descriptor := libc.syscall(PIDFD_GETFD, pidfd, int(number), 0)) < 0:
                if ctypes.get_errno() == errno.EBADF:  # it has been closed
                    continue
                raise Unsupported("transport: the kernel does not let this endpoint see or set the options of the "
                                  f"server's socket: pidfd_getfd: {os.strerror(ctypes.get_errno())}")
            sock = socket.socket(fileno=descriptor)
            if sock.type == kind and serves(sock) and port in (None, sock.getsockname()[1]):
                found.append(sock)
            else:
                sock.close()
    finally:
        os.close(pidfd)
    return found


def serves(sock):
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    return sock.type == socket.SOCK_DGRAM or bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def wait_for(pid, count, kind, port=None):
    """The port at which a child has opened that many sockets; None until then."""
    found = borrow(pid, port, kind)
    ports = {sock.getsockname()[1] for sock in found}
    for sock in found:
        sock.close()
    return ports.pop() if len(found) == count and len(ports) == 1 else None


def kernel_setting(name):
    """A setting below net.ipv4, as the kernel prints it."""
    with open(f"/proc/sys/net/ipv4/{name}", encoding="ascii") as file:
        return file.read().strip()


def check_free(site, kind):
    """Fails if the port is in use, which a server that shares its port between workers would not notice."""
    bind(site, kind, *[socket.SO_REUSEADDR] * (kind == socket.SOCK_STREAM)).close()
