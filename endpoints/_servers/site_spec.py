"""What a spec asks of a web server: every field is either understood here or refused."""

import ipaddress

from contract import Failure, Fields, Unsupported

# What each protocol needs: its ALPN, or nothing where it has no TLS.
ALPN = {"h1c": None, "h1": "http/1.1", "h2c": None, "h2": "h2"}
FEATURES = ["files"]  # what a web server does by itself; the others would measure a module or a script

LARGEST_WINDOW = 2**31 - 1  # bytes, RFC 9113, section 6.9.1


class Site:
    def __init__(self, spec):
        drop_nulls(spec)
        self.protocol = spec.choose("protocol", list(ALPN))
        self.address = parse_address(spec.take("address"))
        self.port = spec.count("port", least=0)
        spec.take("server_name")  # one site answers to every name
        for feature in spec.take("features"):
            if feature not in FEATURES:
                raise Unsupported(f"features: `{feature}`; supported: {', '.join(FEATURES)}")
        self.document_root = spec.take("document_root", None)
        self.threads = spec.count("threads") if "threads" in spec.left else None
        self.read_tls(spec)
        self.read_transport(spec)
        spec.end()  # every field that is left would be ignored: unsupported

    @property
    def is_http2(self):
        return self.protocol in ("h2c", "h2")

    def read_tls(self, spec):
        self.alpn = ALPN[self.protocol]
        self.is_secure = self.alpn is not None
        self.key_log, self.resumption, self.early_data = None, False, False
        if self.is_secure != ("tls" in spec.left):
            raise Failure("other", "spec: `tls` must be present exactly where the protocol has TLS, "
                                   f"and the protocol is {self.protocol}")
        if self.is_secure:
            tls = spec.inner("tls")
            drop_nulls(tls)
            self.certificate, self.key = tls.take("certificate"), tls.take("key")
            self.key_log = tls.take("key_log", None)
            self.early_data = tls.choose("early_data", [True, False])
            self.resumption = tls.choose("resumption", [True, False]) or self.early_data
            tls.end()

    def read_transport(self, spec):
        transport = Fields(spec.take("transport", {}), "transport")
        drop_nulls(transport)
        self.congestion = transport.choose("congestion", [None, "cubic", "bbr", "reno"], None)
        self.no_delay = transport.choose("no_delay", [True, False], True)
        self.fast_open = transport.choose("fast_open", [True, False], False)
        self.stream_window = None
        if self.is_http2:
            self.read_windows(transport)
        transport.end()

    def read_windows(self, transport):
        """Both servers announce any stream window, and always the largest connection window that HTTP/2 has."""
        self.stream_window = transport.count("stream_window") if "stream_window" in transport.left else None
        if self.stream_window is not None and self.stream_window > LARGEST_WINDOW:
            raise Unsupported(f"transport: `stream_window` = {self.stream_window}; HTTP/2 has at most {LARGEST_WINDOW}")
        transport.choose("connection_window", [LARGEST_WINDOW], LARGEST_WINDOW)


def drop_nulls(fields):
    """A field that is null is as good as absent."""
    fields.left = {name: value for name, value in fields.left.items() if value is not None}


def parse_address(text):
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise Failure("other", f"spec: `address`: {error}") from error
