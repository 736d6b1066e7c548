"""The options of a client's TCP socket."""

import socket

from wirelab_endpoint.contract import Unsupported


class TcpOptions:
    def __init__(self, transport):
        self.congestion = transport.choose("congestion", [None, "cubic", "bbr", "reno"], None)
        self.no_delay = transport.choose("no_delay", [True, False], True)
        transport.choose("fast_open", [False], False)  # asyncio connects before it writes

    def apply(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, self.no_delay)
        if self.congestion is not None:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion.encode())
            except OSError as error:  # not in this kernel
                raise Unsupported(f"transport: `congestion` = {self.congestion!r}: {error}") from error

    @staticmethod
    def active_settings(sock):
        """Read back from the kernel."""
        name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        return {
            "congestion": name.split(b"\0")[0].decode(),
            "no_delay": bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)),
            "fast_open": False,
        }

    def probe(self):
        """The active settings of a temporary socket. Refuses a setting that the kernel lacks, before `ready`."""
        with socket.socket() as sock:
            self.apply(sock)
            return self.active_settings(sock)
