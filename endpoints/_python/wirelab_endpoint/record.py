"""The record of one request."""

import time

from wirelab_endpoint.contract import Failure

now = time.monotonic_ns  # the one clock of all records; asyncio's loop has the same, in seconds


class Record:
    """A request under way; times are absolute until the results are written."""

    __slots__ = ("intended", "start", "connected", "handshaken", "first_byte", "last_byte", "bytes_out", "bytes_in",
                 "status", "connection", "handshake", "error", "message")

    def __init__(self, intended, start):
        self.intended, self.start = intended, start
        self.connected = self.handshaken = self.first_byte = self.last_byte = None
        self.bytes_out = self.bytes_in = self.connection = 0
        self.status = self.handshake = self.error = self.message = None

    def fail(self, kind, message):
        self.error, self.message = kind, message
        self.last_byte = now()

    def kept(self):
        """The stored form: a tuple of plain values, which the garbage collector does not scan again and again."""
        return (self.intended, self.start, self.connected, self.handshaken, self.first_byte, self.last_byte,
                self.bytes_out, self.bytes_in, self.status, self.connection, self.handshake, self.error)


FIELDS = ("intended_ns", "start_ns", "connected_ns", "handshake_ns", "first_byte_ns", "last_byte_ns",
          "bytes_out", "bytes_in", "status", "connection", "handshake", "error")


def sample(kept, zero):
    """The record in the contract's form: times from `zero` on, without times that did not happen."""
    return {name: value - zero if name.endswith("_ns") else value
            for name, value in zip(FIELDS, kept) if value is not None}


def judge(record, expect):
    """Raises if the response is not the expected one."""
    if expect is None:
        return
    if record.status is not None and record.status != expect["status"]:
        raise Failure("status", f"status {record.status}, not {expect['status']}")
    if record.bytes_in < expect["body_size"]:
        raise Failure("truncated", f"{record.bytes_in} bytes, not {expect['body_size']}")
    if record.bytes_in > expect["body_size"]:
        raise Failure("digest", f"{record.bytes_in} bytes, not {expect['body_size']}")
