"""Properties of the contract's protocols, by name."""

ALPN = {"tls": "wirelab", "quic": "wirelab", "h1": "http/1.1", "h2": "h2", "h3": "h3"}
HTTP = ("h1c", "h1", "h2c", "h2", "h3")
QUIC = ("quic", "h3")
MULTIPLEXING = ("quic", "h2c", "h2", "h3")
