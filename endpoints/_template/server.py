"""The server: CHANGE how requests are answered; keep what is read from the spec and what is reported."""

import http.server
import pathlib
import shutil
import socket
import socketserver
import ssl
import threading
import time

import contract
import wire
from contract import Failure


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection; a thread of its own."""

    protocol_version = "HTTP/1.1"  # connections are kept
    wbufsize = 65536  # header and body in one write

    def setup(self):
        self.server.settings.apply(self.request)
        super().setup()

    def do_GET(self):
        arrival = time.monotonic_ns()
        _, _, rest = self.path.partition("?")[0].partition("/")
        kind, _, number = rest.partition("/")
        if kind == "bytes" and number.isascii() and number.isdigit():
            self.answer(wire.pattern(int(number)))
        elif kind == "delay" and number.isascii() and number.isdigit():
            self.wait_until(arrival + int(number) * 1000)
            self.answer(b"")
        else:
            self.answer_file(rest)

    def do_POST(self):
        length = self.headers.get("content-length", "0")  # none: no body, RFC 9112 section 6.3
        if "transfer-encoding" in self.headers or not length.isdigit():
            return self.send_error(411)
        if self.path != "/echo":
            return self.send_error(404)
        self.answer(self.rfile.read(int(length)))

    def answer(self, body):
        self.head(len(body))
        self.wfile.write(body)

    def answer_file(self, name):
        root = self.server.document_root
        path = (root / name).resolve() if root else None
        if path is None or root not in path.parents or not path.is_file():
            return self.send_error(404)
        with path.open("rb") as file:
            self.head(path.stat().st_size)
            shutil.copyfileobj(file, self.wfile)

    def head(self, size):
        self.send_response(200)
        self.send_header("content-length", str(size))
        self.end_headers()

    @staticmethod
    def wait_until(moment):
        """Sleeps, then spins for the last part, because a sleep ends late."""
        while (left := moment - time.monotonic_ns()) > 0:
            if left > 200_000:
                time.sleep((left - 150_000) / 1e9)

    def log_message(self, *_):
        """Nothing per request: it would be part of the measurement."""


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024

    def __init__(self, address, port, settings, document_root):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.settings, self.document_root = settings, document_root
        super().__init__((address, port), Handler)

    def handle_error(self, request, client_address):
        """A broken connection is the client's to report."""


def run(spec, abilities):
    protocol = spec.choose("protocol", abilities["protocols"])
    address, port = spec.take("address"), spec.count("port", least=0)
    spec.take("server_name")
    tls = wire.tls_fields(spec, protocol)
    root = spec.take("document_root", None)
    for feature in spec.take("features"):
        if feature not in abilities["features"]:
            raise contract.Unsupported(f"features: `{feature}`; supported: {', '.join(abilities['features'])}")
    settings = wire.TcpSettings(spec)
    context = make_context(tls) if tls else None
    spec.end()  # every field that is left would be ignored: unsupported

    try:
        server = Server(address, port, settings, pathlib.Path(root).resolve() if root else None)
    except OSError as error:
        raise Failure("other", f"binding {address} port {port}: {error.strerror}") from error
    settings.apply(server.socket)  # accepted sockets inherit the congestion control
    configured = settings.configured(server.socket)
    if context:
        # The handshake happens in the connection's thread, so that one slow client does not hold up the others.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    contract.emit("ready", port=server.server_address[1], configured=configured)
    stopped = threading.Event()
    contract.Commands(on_stop=stopped.set)
    stopped.wait()
    contract.emit("done")


def make_context(tls):
    context = wire.tls_context(ssl.PROTOCOL_TLS_SERVER, tls.take("key_log", None))
    context.load_cert_chain(tls.take("certificate"), tls.take("key"))
    if not tls.choose("resumption", [True, False]):
        context.num_tickets = 0
    tls.choose("early_data", [False])
    tls.end()
    return context
