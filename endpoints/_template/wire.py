"""What server and client share: transport settings, the pattern of bodies, TLS."""

import socket
import ssl

from contract import Failure, Fields, Unsupported

ALPN = "http/1.1"
CONGESTION = getattr(socket, "TCP_CONGESTION", None)  # Linux
PERIOD = bytes(range(251))


def pattern(size):
    """The body of that size: the byte at offset i is i mod 251."""
    return (PERIOD * (size // len(PERIOD) + 1))[:size]


class TcpSettings:
    """The transport settings that this endpoint honours; all others are unsupported."""

    def __init__(self, spec):
        fields = Fields(spec.take("transport", {}), "transport")
        self.congestion = fields.choose("congestion", [None, "cubic", "bbr", "reno"], None)
        self.no_delay = fields.choose("no_delay", [True, False], True)
        fields.choose("fast_open", [False], False)  # off is what we do; on is more than we can
        fields.end()

    def apply(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, self.no_delay)
        if self.congestion is not None:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, CONGESTION, self.congestion.encode())
            except (OSError, TypeError) as error:  # not in this kernel, or not on this system at all
                raise Unsupported(f"transport: `congestion` = {self.congestion!r}: {error}") from error

    def configured(self, sock):
        """What is in force, read back from the kernel."""
        facts = {"no_delay": bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)), "fast_open": False}
        if CONGESTION is not None:
            name = sock.getsockopt(socket.IPPROTO_TCP, CONGESTION, 16)
            facts["congestion"] = name.split(b"\0")[0].decode()
        return facts


def tls_context(side, key_log):
    """TLS 1.3 only, so that no cell differs from another by its version."""
    context = ssl.SSLContext(side)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([ALPN])
    if key_log is not None:
        context.keylog_filename = key_log
    return context


def tls_fields(spec, protocol):
    """The `tls` object: there exactly if the protocol needs it."""
    if (protocol == "h1") != ("tls" in spec.left):
        raise Failure("other", f"spec: `tls` must be present exactly where the protocol has TLS, not for {protocol}")
    return spec.inner("tls") if protocol == "h1" else None
