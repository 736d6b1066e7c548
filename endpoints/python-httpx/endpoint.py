"""An endpoint of wirelab: HTTP/1.1 and HTTP/2 by httpx. Entry point; see README.md."""

from wirelab_endpoint import entry

PROTOCOLS, FEATURES = ["h1c", "h1", "h2c", "h2"], ["files", "echo", "bytes", "delay"]

if __name__ == "__main__":
    entry.main("httpx, httpcore, h11, h2", ["httpx", "httpcore", "h11", "h2"],
               client=("client", PROTOCOLS, FEATURES))
