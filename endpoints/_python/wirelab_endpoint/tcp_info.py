"""The kernel's counters of a TCP connection: `struct tcp_info`, linux/tcp.h."""

import socket
import struct

LENGTH = 216  # up to and with tcpi_bytes_retrans (Linux 4.19)


def reading(sock):
    """Fields of the contract's `transport`; none if the socket is closed or the kernel writes less."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LENGTH)
    except OSError:
        return {}
    if len(info) < LENGTH:
        return {}

    def number(kind, offset):
        return struct.unpack_from(kind, info, offset)[0]

    segment = number("=I", 16)
    return {
        "round_trip_ns": number("=I", 68) * 1000,
        "round_trip_min_ns": number("=I", 148) * 1000,
        "congestion_window": number("=I", 80) * segment,
        "packets_sent": number("=I", 136),
        "packets_lost": number("=I", 100),
        "bytes_lost": number("=Q", 208),
    }
