"""Caddy as an endpoint of wirelab: files over HTTP/1.1, HTTP/2 and HTTP/3. See README.md."""

import json
import os
import re

from wirelab_servers import choices, datagrams, life, program, sockets
from wirelab_servers.site_spec import ANYTHING, FLAG, OF_TCP, OF_UDP

MOST_THREADS = 1024

WINDOW = 2**20  # bytes, of streams and of connections: Go's HTTP/2, and Caddy has no setting for it

CONGESTION = "reno"  # in QUIC: an argument in quic-go's source

# Go sets TCP_NODELAY on every connection. quic-go does not use UDP_GRO.
ALL = {"threads": range(1, MOST_THREADS + 1)}
CLEAR = {**ALL, **OF_TCP, "no_delay": [True]}
SECURE = {**CLEAR, "key_log": ANYTHING}
WINDOWS = {"stream_window": [WINDOW], "connection_window": [WINDOW]}
QUIC = {**ALL, **OF_UDP, "congestion": [CONGESTION], "gso": FLAG, "gro": [False], "key_log": ANYTHING, "early_data": FLAG,
        "qlog_dir": ANYTHING}
HONOURS = {"h1c": CLEAR, "h1": SECURE, "h2c": {**CLEAR, **WINDOWS}, "h2": {**SECURE, **WINDOWS}, "h3": QUIC}

CADDY = program.Program("Caddy", "caddy", HONOURS, r"v([\d.]+)", ask=["version"], language="Go")

# Caddy's names. It has no HTTP/2 without HTTP/1.1; by ALPN only one of them is offered.
PROTOCOLS = {"h1c": ["h1"], "h1": ["h1"], "h2c": ["h1", "h2c"], "h2": ["h1", "h2"], "h3": ["h3"]}


def run(site, path, folder):
    # Caddy takes a socket by its number. So port 0 has no race, and options can be set and read back.
    sock = datagrams.bind(site)[0] if site.is_quic else sockets.listen(site)
    with open(os.path.join(folder, "caddy.json"), "w", encoding="utf-8") as file:
        json.dump(configuration(site, sock.fileno()), file)
    server = life.Server("Caddy", [path, "run", "--config", "caddy.json"], folder, environment=environment(site, folder),
                         descriptors=[sock.fileno()])

    def configured(_):
        facts = {**(datagrams if site.is_quic else sockets).settle([sock], site), "threads": threads(server.words)}
        sock.close()  # from now on only Caddy has it
        return {**facts, "congestion": CONGESTION, "streams": choices.STREAMS["h3"]} if site.is_quic else facts

    port = sock.getsockname()[1]
    # Caddy holds its messages back until it has started.
    life.serve(server, site, lambda _: port if threads(server.words) else None, configured)


def environment(site, folder):
    """Environment variables for settings of Go and quic-go, and for Caddy's folders."""
    variables = {"XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder, "GOMAXPROCS": str(choices.workers(site)),
                 "QUIC_GO_DISABLE_GSO": str(site.gso is False).lower()}
    if site.qlog_dir is not None:
        variables["QLOGDIR"] = os.path.abspath(site.qlog_dir)
    return variables


def configuration(site, descriptor):
    server = {
        "listen": [f"{'fdgram' if site.is_quic else 'fd'}/{descriptor}"],
        "protocols": PROTOCOLS[site.protocol],
        "automatic_https": {"disable": True},
        "idle_timeout": f"{choices.IDLE_S}s",
        "allow_0rtt": site.early_data,
        # A folder is a 404, without a redirect.
        "routes": [{"handle": [{"handler": "file_server", "root": "documents", "canonical_uris": False}]}],
    }
    apps = {"http": {"servers": {"site": server}, "grace_period": "1ms"}}
    if site.is_secure:
        policy = {"alpn": [site.alpn], "protocol_min": "tls1.3", "curves": [choices.GROUP.lower()],
                  "default_sni": site.server_name}
        if site.key_log is not None:
            policy["insecure_secrets_log"] = os.path.abspath(site.key_log)
        server["tls_connection_policies"] = [policy]
        apps["tls"] = {
            "certificates": {"load_files": [{"certificate": "certificate.pem", "key": "key.pem"}]},
            "session_tickets": {"disabled": not site.resumption},
            "disable_ocsp_stapling": True,
            "disable_storage_clean": True,
        }
    return {"admin": {"disabled": True, "config": {"persist": False}}, "logging": {"logs": {"default": {"level": "INFO"}}},
            "apps": apps}


def threads(words):
    """The number of threads that run Go code at once, as Caddy reports it after its start; None before."""
    for line in words:
        if found := re.search(r'GOMAXPROCS=\D*(\d+)', line):
            return int(found[1])
    return None


if __name__ == "__main__":
    program.main(CADDY, run)
