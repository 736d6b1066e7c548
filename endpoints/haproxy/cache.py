"""HAProxy's cache with every document in it, filled before the first request, so that nothing else is ever asked.

HAProxy has no file server, and answers of its own have at most the size of a buffer, 16 KiB. Its cache has any size.
"""

import os
import socket
import threading
import urllib.parse

from wirelab_endpoint.contract import Failure, Unsupported
from wirelab_servers import choices, documents

LARGEST_MB = 4095  # HAProxy's limit
OVERHEAD = 4096  # bytes: the header and the bookkeeping of a document, more than enough

# Without this the name and the form of a request, which differ between protocols, would be part of a document's key.
USE = """\
    http-request set-header host site
    http-request set-uri %[path]
    http-request cache-use documents"""

CONFIGURATION = """\
cache documents
    total-max-size {megabytes}
    max-object-size {largest}
    max-age {idle}
frontend fill
    bind abns@{fill}
{use}
    http-response cache-store documents
    default_backend documents
backend documents
    server documents abns@{source}
"""


class Documents:
    def __init__(self, root):
        self.root = root
        self.sizes = documents.below(root)
        # Abstract sockets need no files; their names must be this process's own.
        self.fill_name, self.source_name = f"wirelab-{os.getpid()}-fill", f"wirelab-{os.getpid()}-source"

    def configuration(self):
        room = [size + size // 8 + OVERHEAD for size in self.sizes.values()] or [OVERHEAD]
        megabytes = max(sum(room), 2 * max(room)) // 2**20 + 1
        if megabytes > LARGEST_MB:
            raise Unsupported(f"document_root: HAProxy's cache has at most {LARGEST_MB} MB; the documents need {megabytes} MB")
        return CONFIGURATION.format(megabytes=megabytes, largest=max(room), idle=choices.IDLE_S, use=USE,
                                    fill=self.fill_name, source=self.source_name)

    def fill(self):
        """Has HAProxy ask for every document, and once more, to see that the second answer is from the cache."""
        with socket.socket(socket.AF_UNIX) as source:
            source.bind(address(self.source_name))
            source.listen()
            threading.Thread(target=self.answer, args=[source], daemon=True).start()
            for name, size in self.sizes.items():
                self.ask(name)
                head, body = self.ask(name)
                if b"\r\nage:" not in head.lower() or body != size:
                    raise Failure("other", f"HAProxy did not take `{name}`, {size} bytes, into its cache; it answered "
                                           f"{head.decode(errors='replace')!r} and {body} bytes")
            source.shutdown(socket.SHUT_RDWR)  # which ends the waiting for connections, as closing does not

    def answer(self, source):
        """The source of HAProxy's requests: a document for each connection."""
        while True:
            try:
                connection, _ = source.accept()
            except OSError:  # all documents are in the cache
                return
            with connection:
                path = until_blank_line(connection)[0].split()[1].decode()
                name = urllib.parse.unquote(path)[1:]
                head = (f"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {self.sizes[name]}\r\n"
                        f"Cache-Control: max-age={choices.IDLE_S}\r\nConnection: close\r\n\r\n")
                connection.sendall(head.encode())
                with open(os.path.join(self.root, name), "rb") as file:
                    connection.sendfile(file)

    def ask(self, name):
        """The header of HAProxy's answer, and the size of its body."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(address(self.fill_name))
            path = urllib.parse.quote(name)
            sock.sendall(f"GET /{path} HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n".encode())
            head, size = until_blank_line(sock)
            while more := sock.recv(65536):
                size += len(more)
            return head, size


def until_blank_line(sock):
    """The header of a message, and how many bytes of its body came with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := sock.recv(65536)):
            raise Failure("other", f"filling HAProxy's cache: a connection ended amid a header: {data!r}")
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, len(rest)


def address(name):
    """HAProxy's names of abstract sockets are as long as the kernel allows, padded with zeros: sun_path, unix(7)."""
    return (b"\0" + name.encode()).ljust(108, b"\0")
