"""HAProxy as an endpoint of wirelab: files over HTTP/1.1, HTTP/2 and HTTP/3, from its cache. See README.md."""

import os
import socket

from wirelab_servers import choices, datagrams, life, openssl, program, sockets
from wirelab_servers.site_spec import FILES, FLAG, LARGEST_WINDOW, OF_TCP

import cache

MOST_THREADS = 64  # in one group of threads

ALGORITHMS = {"cubic": "cubic", "reno": "newreno"}  # HAProxy's names

# HAProxy sets TCP_NODELAY on every connection. In QUIC every connection has a socket of its own, which takes the kernel's
# buffers, and neither GSO nor GRO.
ALL = {"threads": range(1, MOST_THREADS + 1)}
HTTP1 = {**ALL, **OF_TCP, "no_delay": [True]}
HTTP2 = {**HTTP1, "stream_window": range(1, LARGEST_WINDOW + 1), "connection_window": [65_535]}
QUIC = {**ALL, "congestion": list(ALGORITHMS), "gso": [False], "gro": [False]}
HONOURS = {"h1c": HTTP1, "h1": {**HTTP1, "early_data": FLAG}, "h2c": HTTP2, "h2": {**HTTP2, "early_data": FLAG}, "h3": QUIC}

# Its cache was filled without types.
HAPROXY = program.Program("HAProxy and its cache", "haproxy", HONOURS, r"version ([\d.]+)", features=[FILES])

CONFIGURATION = """\
global
    nbthread {threads}
    maxconn {connections}
    tune.h2.fe.max-concurrent-streams {streams}
    {tuning}
defaults
    mode http
    timeout client {idle}s
    timeout http-request {idle}s
    timeout http-keep-alive {idle}s
    timeout connect 10s
    timeout server 10s
{cache}
frontend site
    bind {address} {words}
{from_cache}
    default_backend not_there
backend not_there
    http-request return status 404
"""


def run(site, path, folder):
    if site.is_secure:
        os.symlink("key.pem", os.path.join(folder, "certificate.pem.key"))  # where HAProxy looks for it
    documents = cache.Documents(os.path.join(folder, "documents"))
    # A TCP socket is handed over by its number. A UDP socket cannot be: it holds the port until HAProxy has it.
    held = datagrams.hold(site) if site.is_quic else sockets.listen(site)
    port = held.getsockname()[1]
    address = f"quic{site.address.version}@{sockets.host(site)}:{port}" if site.is_quic else f"fd@{held.fileno()}"
    with open(os.path.join(folder, "haproxy.cfg"), "w", encoding="ascii") as file:
        file.write(configuration(site, address, documents))
    # Without OpenSSL's own configuration, connections of HTTP/3 would be given tickets in any case.
    server = life.Server("HAProxy", [path, "-db", "-f", "haproxy.cfg"], folder, environment=openssl.configure(site, folder),
                         descriptors=[] if site.is_quic else [held.fileno()])

    def find_port(pid):
        if site.is_quic and sockets.wait_for(pid, 1, socket.SOCK_DGRAM, port):
            held.close()  # packets could go to either, as long as both are open
        elif site.is_quic:
            return None
        return port if life.threads(pid) == choices.workers(site) else None

    def configured(_):
        documents.fill()
        if site.is_quic:
            [listener] = sockets.borrow(server.child.pid, port, socket.SOCK_DGRAM)
            facts = {**datagrams.settle([listener], site, segments=False), "streams": choices.STREAMS["h3"],
                     "congestion": site.congestion or "cubic"}
            listener.close()
        else:
            facts = sockets.settle([held], site)
            held.close()  # from now on only HAProxy has it
        return {**facts, "threads": life.threads(server.child.pid)}

    life.serve(server, site, find_port, configured)


def configuration(site, address, documents):
    words, tuning = [], []
    if site.is_secure:
        words += ["ssl", "crt", "certificate.pem", "alpn", site.alpn, "ssl-min-ver", "TLSv1.3", "curves", choices.GROUP,
                  "ciphersuites", ":".join(choices.CIPHERS)]
        words += ["allow-0rtt"] * site.early_data
        if not site.resumption:
            words.append("no-tls-tickets")
            tuning.append("tune.ssl.cachesize 0")
    else:
        words += ["proto", "h2" if site.is_http2 else "h1"]
    if site.is_quic:
        # HAProxy's QUIC with an OpenSSL that has none itself must be asked for.
        tuning += ["limited-quic", f"tune.quic.frontend.max-streams-bidi {choices.STREAMS['h3']}",
                   f"tune.quic.frontend.max-idle-timeout {choices.IDLE_S}s"]
        words += ["quic-cc-algo", ALGORITHMS[site.congestion or "cubic"]]
    if site.stream_window:
        tuning.append(f"tune.h2.fe.initial-window-size {site.stream_window}")
    return CONFIGURATION.format(
        threads=choices.workers(site), connections=choices.CONNECTIONS, streams=choices.STREAMS["h2"],
        tuning="\n    ".join(tuning), idle=choices.IDLE_S, cache=documents.configuration(), from_cache=cache.USE,
        address=address, words=" ".join(words))


if __name__ == "__main__":
    program.main(HAPROXY, run)
