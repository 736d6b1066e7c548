"""The responses of a server: the features of the contract, without the protocol."""

from wirelab_endpoint.body import pattern
from wirelab_endpoint.documents import load


class Answers:
    def __init__(self, site):
        self.documents = load(site.document_root)

    def get(self, path):
        """(status, body, delay in seconds) of a GET."""
        path = path.partition("?")[0]
        if (body := self.documents.get(path)) is not None:
            return 200, body, 0
        _, _, rest = path.partition("/")
        kind, _, number = rest.partition("/")
        if number.isascii() and number.isdigit():
            if kind == "bytes":
                return 200, pattern(int(number)), 0
            if kind == "delay":
                return 200, b"", int(number) / 1e6
        return 404, b"", 0

    @staticmethod
    def echoes(method, path):
        return method == "POST" and path == "/echo"
