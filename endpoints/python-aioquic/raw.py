"""Bare QUIC: a header of three numbers, the body, and the end of the stream, both ways."""

import struct

HEADER = struct.Struct(">QQQ")  # wanted response bytes, request body bytes, delay in microseconds


def delay_of(path):
    """The microseconds of a path /delay/MICROSECONDS."""
    kind, _, number = path.removeprefix("/").partition("/")
    return int(number) if kind == "delay" and number.isascii() and number.isdigit() else 0
