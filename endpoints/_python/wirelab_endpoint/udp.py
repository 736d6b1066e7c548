"""The buffers of a UDP socket."""

import socket

from wirelab_endpoint.contract import Unsupported

OPTIONS = {"udp_send_buffer": socket.SO_SNDBUF, "udp_receive_buffer": socket.SO_RCVBUF}


class Buffers:
    def __init__(self, transport):
        self.sizes = {name: transport.count(name) for name in OPTIONS if name in transport.left}

    def apply(self, sock):
        for name, size in self.sizes.items():
            sock.setsockopt(socket.SOL_SOCKET, OPTIONS[name], size)
            if (granted := self.active_settings(sock)[name]) != size:
                limit = "wmem_max" if name == "udp_send_buffer" else "rmem_max"
                raise Unsupported(f"transport: `{name}` = {size}: the kernel grants {granted}; raise its limit with "
                                  f"`sysctl -w net.core.{limit}={size}`")

    @staticmethod
    def active_settings(sock):
        """Read back; the kernel's doubling for bookkeeping is not counted."""
        return {name: sock.getsockopt(socket.SOL_SOCKET, option) // 2 for name, option in OPTIONS.items()}
