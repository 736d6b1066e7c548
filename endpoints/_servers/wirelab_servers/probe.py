"""Sends one request to a server, by the protocol of the spec: the answer shows that the server is ready."""

import socket

from wirelab_endpoint.contract import Failure
from wirelab_servers import probe_quic

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, WINDOW_UPDATE, ACK = 4, 6, 8, 1  # types of frames and a flag, RFC 9113, section 6
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4  # settings, section 6.5.2
DEFAULT_WINDOW = 65535


def ask(site, port, timeout):
    """Returns the settings that the server's answer reports. OSError: it does not answer (yet)."""
    if site.is_quic:
        return probe_quic.ask(site, port, timeout)
    sock = socket.create_connection((str(site.address), port), timeout=timeout)
    try:
        if site.is_secure:
            sock = handshake(sock, site.alpn)
        return settings(sock) if site.is_http2 else status(sock)
    finally:
        sock.close()


def handshake(sock, alpn):
    import ssl  # imported only if needed: its memory would count as the server's

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the clients of the trial verify
    context.set_alpn_protocols([alpn])
    sock = context.wrap_socket(sock)
    if (sock.version(), sock.selected_alpn_protocol()) != ("TLSv1.3", alpn):
        raise Failure("protocol", f"the server negotiated {sock.version()} with ALPN {sock.selected_alpn_protocol()}, "
                                  f"not TLSv1.3 with {alpn}")
    return sock


def status(sock):
    # A path that does not exist: nothing of the document root is read before the measurement.
    sock.sendall(b"GET /wirelab-asks-whether-you-are-ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    line = receive(sock, 12)
    if line != b"HTTP/1.1 404":
        raise Failure("protocol", f"the server answered a request for what does not exist with {line!r}")
    return {}


def settings(sock):
    """The windows and streams that the server grants: its announcements before it answers two PINGs.

    Two, because Envoy answers the first one before it has announced all.
    """
    sock.sendall(PREFACE + frame(SETTINGS, b"") + frame(PING, bytes(8)))
    said, connection, answered = None, DEFAULT_WINDOW, False
    while True:
        head = receive(sock, 9)
        kind, flags, payload = head[3], head[4], receive(sock, int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK:
            said = {**(said or {}), **pairs(payload)}
        elif said is None:
            raise Failure("protocol", f"the server's HTTP/2 connection does not begin with SETTINGS but with {head!r}")
        elif kind == WINDOW_UPDATE and not any(head[5:9]):
            connection += int.from_bytes(payload, "big")
        elif kind == PING and flags & ACK and not answered:
            answered = True
            sock.sendall(frame(PING, bytes(8)))
        elif kind == PING and flags & ACK:
            streams = {"streams": said[MAX_CONCURRENT_STREAMS]} if MAX_CONCURRENT_STREAMS in said else {}
            return {"stream_window": said.get(INITIAL_WINDOW_SIZE, DEFAULT_WINDOW), "connection_window": connection,
                    **streams}


def pairs(payload):
    """The settings of a frame: numbers of two bytes with values of four."""
    return {int.from_bytes(payload[at:at + 2], "big"): int.from_bytes(payload[at + 2:at + 6], "big")
            for at in range(0, len(payload), 6)}


def frame(kind, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, 0, 0, 0, 0, 0]) + payload


def receive(sock, size):
    data = b""
    while len(data) < size:
        if not (more := sock.recv(size - len(data))):
            raise ConnectionResetError("the server closed the connection without an answer")
        data += more
    return data
