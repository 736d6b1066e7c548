"""Asks a QUIC server for its versions, which needs no cryptography: the answer shows that the server is ready."""

import os
import socket

from wirelab_endpoint.contract import Failure

UNKNOWN_VERSION = bytes.fromhex("1a2a3a4a")  # reserved for this, RFC 9000, section 15
QUIC_V1 = bytes.fromhex("00000001")
SMALLEST_INITIAL = 1200  # bytes; servers drop smaller ones, RFC 9000, section 14.1


def ask(site, port, timeout):
    """OSError: the server does not answer (yet)."""
    ours, theirs = os.urandom(8), os.urandom(8)
    # A long header: flags, version, and both connection ids with their lengths, RFC 9000, section 17.2.
    question = b"\xc0" + UNKNOWN_VERSION + b"\x08" + theirs + b"\x08" + ours
    with socket.socket(socket.AF_INET6 if site.address.version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout)
        sock.connect((str(site.address), port))  # so that the kernel reports a closed port
        sock.send(question.ljust(SMALLEST_INITIAL, b"\0"))
        answer = sock.recv(SMALLEST_INITIAL)
    # Version Negotiation: version 0, our ids exchanged, then the versions, RFC 9000, section 17.2.1.
    head, versions = answer[:23], answer[23:]
    if head[1:] != bytes(4) + b"\x08" + ours + b"\x08" + theirs:
        raise Failure("protocol", f"the server did not answer an unknown version of QUIC with those it has, but {head!r}")
    if QUIC_V1 not in [versions[at:at + 4] for at in range(0, len(versions), 4)]:
        raise Failure("protocol", f"the server does not have version 1 of QUIC; it has {versions.hex(' ', 4)}")
    return {}
