"""Settings that are equal for every server, each with its reason. Configurations take their values from here.

Values as in production where servers agree; otherwise a value that all of them support. Also: TLS 1.3
only (the contract), no compression (the contract), no access log (it would write in the measured window).
"""

import os

# Connections last as long as the trial. By default servers close idle ones after seconds or minutes, some after 100 or 1000
# requests.
IDLE_S = 86_400
REQUESTS_PER_CONNECTION = 1_000_000_000

# Connections to hold at once. nginx has room for 512, httpd for 150 by default.
CONNECTIONS = 4096

# The kernel lowers it to net.core.somaxconn. A short queue would delay connections by a retransmission of SYN, one second.
BACKLOG = 65_535

# Streams at once in a connection: the numbers of Go's HTTP/2 and of quic-go, which Caddy cannot change. h2o has 100.
STREAMS = {"h2c": 250, "h2": 250, "h3": 100}

# Key exchange, as in the built-in endpoint. A hybrid group (X25519MLKEM768), which newer libraries prefer, would put a
# kilobyte more into their handshakes.
GROUP = "X25519"

# In the server's order of preference, which is that of the built-in endpoint, of Go and of BoringSSL where the processor has
# AES; these two have no setting for it.
CIPHERS = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]


def workers(site):
    """Workers or threads: the spec's number; absent: the cores that this process may use, as in servers' defaults."""
    return site.threads or len(os.sched_getaffinity(0))
