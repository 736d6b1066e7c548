"""The settings of a connection that can be set and read back, by protocol."""

import socket

from wirelab_endpoint.tcp import TcpOptions
from wirelab_endpoint.tls_facts import negotiated
from wirelab_endpoint.udp import Buffers

UDP_GRO = 104  # linux/udp.h


class TcpSettings:
    """Settings of HTTP/1.1 and HTTP/2."""

    def __init__(self, transport):
        self.options = TcpOptions(transport)
        self.apply = self.options.apply

    def probe(self):
        return self.options.probe()

    @staticmethod
    def alpn(connection):
        return connection.sock.selected_alpn_protocol() if hasattr(connection.sock, "sslobj") else None

    @staticmethod
    def was_resumed(connection):
        return connection.sock.sslobj.session_reused

    def active_settings(self, connection):
        facts = self.options.active_settings(connection.sock)
        if hasattr(connection.sock, "sslobj"):
            facts.update(negotiated(connection.sock.sslobj))
        if inner := getattr(connection._protocol, "_connection", None):  # jh2's, of HTTP/2
            if hasattr(inner, "local_settings"):
                facts["stream_window"] = inner.local_settings.initial_window_size
                facts["connection_window"] = inner.inbound_flow_control_window
        return facts


class QuicSettings:
    """Settings of HTTP/3. niquests gives no access to qh3's own settings, but to the kernel's."""

    def __init__(self, transport):
        self.buffers = Buffers(transport)
        self.apply = self.buffers.apply

    def probe(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            self.apply(sock)
            return self.buffers.active_settings(sock)

    @staticmethod
    def alpn(connection):
        return connection._protocol._quic.tls.alpn_negotiated

    @staticmethod
    def was_resumed(connection):
        return connection._protocol._quic.tls.session_resumed

    def active_settings(self, connection):
        quic = connection._protocol._quic
        configuration, chain = quic.configuration, [quic.tls._peer_certificate, *quic.tls._peer_certificate_chain]
        return {
            **self.buffers.active_settings(connection.sock),
            "alpn": quic.tls.alpn_negotiated,
            "cipher": connection.conn_info.cipher,
            "certificate_chain_bytes": sum(len(one.public_bytes()) for one in chain),
            "stream_window": configuration.max_stream_data,
            "connection_window": configuration.max_data,
            "windows_grow": True,
            "initial_udp_payload": configuration.max_datagram_size,  # it looks for larger ones (RFC 8899)
            "gro": connection.sock.getsockopt(socket.SOL_UDP, UDP_GRO) == 1,
        }
