"""The spec of a web server: every field is either understood here or refused."""

import ipaddress

from wirelab_endpoint.contract import Failure, Fields, Unsupported

# The ALPN identifier of each protocol; none without TLS.
ALPN = {"h1c": None, "h1": "http/1.1", "h2c": None, "h2": "h2", "h3": "h3"}
# Features of a web server itself; the others would measure a module or a script.
FILES, PAGES = "files", "pages"
FEATURES = [FILES, PAGES]

# Content types of a page's files, by their endings: the contract's table.
CONTENT_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "jpg": "image/jpeg", "woff2": "font/woff2"}

LARGEST_WINDOW = 2**31 - 1  # bytes in HTTP/2, RFC 9113, section 6.9.1
LARGEST_BUFFER = 2**31 - 1  # bytes, an int of setsockopt(2)


class Anything:
    """All values, of a field whose value is checked elsewhere."""

    def __contains__(self, _):
        return True


ANYTHING, FLAG = Anything(), [True, False]

# An endpoint has a table of the fields that its server can honour: for each protocol the fields of a spec, each with its
# possible values. These are the options that the kernel keeps for every server.
OF_TCP = {"congestion": ["cubic", "bbr", "reno"], "no_delay": FLAG, "fast_open": FLAG}
OF_UDP = {"udp_send_buffer": range(1, LARGEST_BUFFER + 1), "udp_receive_buffer": range(1, LARGEST_BUFFER + 1)}

# nginx and httpd announce any stream window, and always the largest connection window.
HTTP2_WINDOWS = {"stream_window": range(1, LARGEST_WINDOW + 1), "connection_window": [LARGEST_WINDOW]}


class Site:
    def __init__(self, spec, honours, features=FEATURES):
        """`honours`: the table. `features`: the server's features."""
        drop_nulls(spec)
        self.protocol = spec.choose("protocol", list(honours))
        self.honours = honours[self.protocol]
        self.address = parse_address(spec.take("address"))
        self.port = spec.count("port", least=0)
        self.server_name = spec.take("server_name")
        asked = spec.take("features")
        for feature in asked:
            if feature not in features:
                raise Unsupported(f"features: `{feature}`; supported: {', '.join(features)}")
        self.has_pages = PAGES in asked
        self.document_root = spec.take("document_root", None)
        self.threads = self.honour(spec, "threads")
        self.qlog_dir = self.honour(spec, "qlog_dir")
        self.read_tls(spec)
        self.read_transport(spec)
        spec.end()  # a remaining field would be ignored, so it is unsupported

    @property
    def is_http2(self):
        return self.protocol in ("h2c", "h2")

    @property
    def is_quic(self):
        return self.protocol == "h3"

    def honour(self, fields, name, otherwise=None):
        """Takes a field if the server can honour it; absent, its value is `otherwise`."""
        if name not in fields.left:
            return otherwise
        value, possible = fields.take(name), self.honours.get(name, [])
        # In Python, True is 1 and so within a range.
        if value not in possible or isinstance(possible, range) and isinstance(value, bool):
            supported = f"; supported: {', '.join(map(str, possible))}" if possible and isinstance(possible, list) else ""
            raise Unsupported(
                f"{fields.where}: with {self.protocol} this server cannot honour `{name}` = {value!r}{supported}")
        return value

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
            self.key_log = self.honour(tls, "key_log")
            self.early_data = tls.choose("early_data", FLAG)
            if self.early_data and not self.honours.get("early_data"):
                raise Unsupported(f"tls: with {self.protocol} this server has no 0-RTT (`early_data`)")
            self.resumption = tls.choose("resumption", FLAG) or self.early_data
            tls.end()

    def read_transport(self, spec):
        transport = Fields(spec.take("transport", {}), "transport")
        drop_nulls(transport)
        self.congestion = self.honour(transport, "congestion")
        self.no_delay = self.honour(transport, "no_delay", otherwise=True)
        self.fast_open = self.honour(transport, "fast_open", otherwise=False)
        self.stream_window = self.honour(transport, "stream_window")
        self.connection_window = self.honour(transport, "connection_window")
        self.send_buffer = self.honour(transport, "udp_send_buffer")
        self.receive_buffer = self.honour(transport, "udp_receive_buffer")
        self.gso, self.gro = self.honour(transport, "gso"), self.honour(transport, "gro")
        transport.end()


def drop_nulls(fields):
    """A null field counts as absent."""
    fields.left = {name: value for name, value in fields.left.items() if value is not None}


def parse_address(text):
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise Failure("other", f"spec: `address`: {error}") from error
