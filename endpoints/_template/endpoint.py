"""A server for wirelab: HTTP/1.1 in clear text by Python's http.server. Part 1 is YOURS to replace; KEEP part 2."""

import http.server
import json
import os
import pathlib
import platform
import socket
import socketserver
import sys
import threading

# ---- Part 1, YOURS: the library, what it speaks, what it answers, which fields of a spec it honours.
LIBRARY, VERSION, LANGUAGE = "http.server", platform.python_version(), "Python"  # ask the library for its version
PROTOCOLS, FEATURES = ["h1c"], ["files", "bytes", "echo"]  # every HTTP server needs `files`
ANY, FLAG = None, [False, True]
HONOURED = {  # field: the honoured values. The server refuses everything else and ignores nothing.
    "spec": {"contract": [1], "protocol": PROTOCOLS, "address": ANY, "port": ANY, "server_name": ANY,
             "document_root": ANY, "features": ANY, "transport": ANY},
    "transport": {"no_delay": FLAG}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", 65536  # connections are kept; header and body leave in one write

    def do_GET(self):
        path = self.path.partition("?")[0][1:]
        kind, _, number = path.partition("/")
        file = (self.server.root / path).resolve()
        if kind == "bytes" and number.isdecimal():
            self.answer((bytes(range(251)) * (int(number) // 251 + 1))[:int(number)])
        elif self.server.root in file.parents and file.is_file():
            self.answer(file.read_bytes())
        else:
            self.send_error(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.answer(body) if self.path == "/echo" else self.send_error(404)

    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Writes nothing: a log line per request would be part of the measurement."""


def start(spec):
    """Starts the server. Returns its port, and the active settings as the kernel reports them."""
    family = socket.AF_INET6 if ":" in spec["address"] else socket.AF_INET
    listener = socket.create_server((spec["address"], spec["port"]), family=family, backlog=1024)
    no_delay = spec.get("transport", {}).get("no_delay", True)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, no_delay)  # accepted connections inherit it
    server = socketserver.ThreadingTCPServer(None, Handler, bind_and_activate=False)
    server.socket, server.root = listener, pathlib.Path(spec.get("document_root", os.devnull)).resolve()
    server.daemon_threads, server.handle_error = True, lambda *_: None  # the client reports a broken connection
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return listener.getsockname()[1], {"no_delay": bool(listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))}


# ---- Part 2, KEEP: the refusal of what the server cannot honour, the conversation with wirelab, the command line.
def check(where, fields, honoured):
    for name, value in fields.items():
        if name not in honoured or honoured[name] is not ANY and value not in honoured[name]:
            raise NotImplementedError(f"{where}: `{name}` = {json.dumps(value)}")


def serve(path):
    try:
        spec = json.loads(pathlib.Path(path).read_text("utf-8"))
        for where, honoured in HONOURED.items():
            check(where, spec if where == "spec" else spec.get(where, {}), honoured)
        check("features", dict.fromkeys(spec["features"]), dict.fromkeys(FEATURES))
        port, configured = start(spec)
        say("ready", port=port, configured=configured)
        while sys.stdin.readline().strip() not in ("stop", ""):  # an empty line is the end of input
            pass
        return say("done")
    except NotImplementedError as reason:
        return say("unsupported", 127, message=str(reason))
    except Exception as error:
        return say("error", 1, kind="other", message=f"{type(error).__name__}: {error}")


def say(event, status=0, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)
    return status


if __name__ == "__main__":
    if sys.argv[1] == "describe":
        print(json.dumps({"contract": 1, "name": pathlib.Path.cwd().name, "library": LIBRARY, "version": VERSION,
                          "language": LANGUAGE, "server": {"protocols": PROTOCOLS, "features": FEATURES}}))
    else:
        os._exit(serve(sys.argv[3]))  # not sys.exit(), which would wait for open connections
