"""A server's spec: every field is understood here or by the library's server, or refused."""

import ipaddress
import socket

from wirelab_endpoint.contract import Failure, Fields, Unsupported
from wirelab_endpoint.job import drop_nulls
from wirelab_endpoint.protocols import ALPN, HTTP, QUIC


class Site:
    """A server's site. The library's server takes `transport`."""

    def __init__(self, spec, protocols, features):
        drop_nulls(spec)
        self.protocol = spec.choose("protocol", protocols)
        self.is_http, self.is_quic = self.protocol in HTTP, self.protocol in QUIC
        self.alpn = ALPN.get(self.protocol)
        self.address = parse_address(spec.take("address"))
        self.port = spec.count("port", least=0)
        spec.take("server_name")  # a client may send any name
        for feature in spec.take("features"):
            if feature not in features:
                raise Unsupported(f"features: `{feature}`; supported: {', '.join(features)}")
        self.document_root = spec.take("document_root", None)
        self.qlog_dir = spec.take("qlog_dir", None) if self.is_quic else None
        spec.choose("threads", [1], 1)  # one event loop
        self.read_tls(spec)
        self.transport = Fields(spec.take("transport", {}), "transport")
        drop_nulls(self.transport)
        spec.end()  # a remaining field would be ignored, so it is unsupported

    def read_tls(self, spec):
        self.certificate = self.key = self.key_log = None
        self.resumption = self.early_data = False
        if (self.alpn is not None) != ("tls" in spec.left):
            raise Failure("other", "spec: `tls` must be present exactly where the protocol has TLS, "
                                   f"and the protocol is {self.protocol}")
        if self.alpn is not None:
            tls = spec.inner("tls")
            drop_nulls(tls)
            self.certificate, self.key = tls.take("certificate"), tls.take("key")
            self.key_log = tls.take("key_log", None)
            self.early_data = tls.choose("early_data", [True, False])
            self.resumption = tls.choose("resumption", [True, False]) or self.early_data
            tls.end()


def parse_address(text):
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise Failure("other", f"spec: `address`: {error}") from error


def bind_udp(site):
    """A UDP socket with the site's address and port."""
    sock = socket.socket(socket.AF_INET6 if site.address.version == 6 else socket.AF_INET, socket.SOCK_DGRAM)
    if site.address.version == 6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        sock.bind((str(site.address), site.port))
    except OSError as error:
        raise Failure("other", f"binding {site.address} port {site.port}: {error.strerror}") from error
    return sock
