"""An endpoint of wirelab: HTTP/1.1, HTTP/2 and HTTP/3 by Hypercorn, a server for ASGI applications. See README.md."""

from wirelab_endpoint import entry

PROTOCOLS, FEATURES = ["h1c", "h1", "h2c", "h2", "h3"], ["files", "echo", "bytes", "delay"]

if __name__ == "__main__":
    entry.main("Hypercorn, h11, h2, aioquic", ["hypercorn", "h11", "h2", "aioquic"],
               server=("server", PROTOCOLS, FEATURES))
