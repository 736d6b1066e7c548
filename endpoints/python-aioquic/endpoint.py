"""An endpoint of wirelab: HTTP/3 and bare QUIC by aioquic. Entry point; see README.md."""

from wirelab_endpoint import entry

PROTOCOLS, FEATURES = ["quic", "h3"], ["files", "echo", "bytes", "delay"]

if __name__ == "__main__":
    entry.main("aioquic", ["aioquic"], server=("server", PROTOCOLS, FEATURES), client=("client", PROTOCOLS, FEATURES))
