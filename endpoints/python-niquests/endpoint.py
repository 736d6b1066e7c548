"""An endpoint of wirelab: HTTP/1.1, HTTP/2 and HTTP/3 by niquests. Entry point; see README.md."""

from wirelab_endpoint import entry

PROTOCOLS, FEATURES = ["h1c", "h1", "h2c", "h2", "h3"], ["files", "bytes", "delay"]

if __name__ == "__main__":
    entry.main("niquests, urllib3-future, qh3", ["niquests", "urllib3-future", "qh3"],
               client=("client", PROTOCOLS, FEATURES))
