"""The spec's transport settings. Hypercorn has none of its own: the kernel's are set on the socket that
it is handed, and of the others only its fixed values are supported."""

from wirelab_endpoint.contract import Unsupported
from wirelab_endpoint.server_spec import bind_udp
from wirelab_endpoint.udp import Buffers
from wirelab_servers import sockets


class TcpSettings:
    """Settings of HTTP/1.1 and HTTP/2, in the shape that `sockets` takes."""

    def __init__(self, site):
        transport = site.transport
        self.address, self.port = site.address, site.port
        self.congestion = transport.choose("congestion", [None, "cubic", "bbr", "reno"], None)
        self.fast_open = transport.choose("fast_open", [True, False], False)
        self.no_delay = transport.choose("no_delay", [True], True)  # asyncio sets it on every connection
        self.windows = {}
        if site.protocol in ("h2c", "h2"):
            import h2.settings  # imported only if used: its memory would count

            window = h2.settings.Settings(client=False).initial_window_size
            for name in ("stream_window", "connection_window"):  # of the connection: RFC 9113, section 6.9.2
                self.windows[name] = transport.choose(name, [window], window)

    def socket(self):
        sock = sockets.hold(self)
        sockets.apply(sock, self)
        return sock

    def active_settings(self, sock):
        return {**sockets.active_settings(sock), **self.windows}


class QuicSettings:
    """Settings of HTTP/3: aioquic as Hypercorn configures it."""

    def __init__(self, site):
        from aioquic.quic.configuration import QuicConfiguration

        self.site, transport, default = site, site.transport, QuicConfiguration(is_client=False)
        if site.resumption or site.key_log or site.qlog_dir:
            raise Unsupported("spec: Hypercorn's HTTP/3 gives no session tickets and has no key log and no qlog")
        self.fixed = {"windows_grow": True}
        for name, value in [
            ("congestion", default.congestion_control_algorithm), ("stream_window", default.max_stream_data),
            ("connection_window", default.max_data), ("max_udp_payload", default.max_datagram_size),
            ("gso", False), ("gro", False),
        ]:
            self.fixed[name] = transport.choose(name, [value], value)
        self.buffers = Buffers(transport)

    def socket(self):
        sock = bind_udp(self.site)
        self.buffers.apply(sock)
        return sock

    def active_settings(self, sock):
        return {**self.fixed, **self.buffers.active_settings(sock)}
