"""h2o as an endpoint of wirelab: files over HTTP/1.1 and HTTP/2, in clear text and over TLS 1.3. See README.md."""

import json
import os

from wirelab_servers import choices, life, openssl, program, sockets
from wirelab_servers.site_spec import CONTENT_TYPES, OF_TCP

MOST_THREADS = 1024

# h2o's announcements, for which it has no setting.
WINDOWS = {"stream_window": [2**24], "connection_window": [65_535]}

HTTP1 = {**OF_TCP, "no_delay": [True], "threads": range(1, MOST_THREADS + 1)}
HONOURS = {"h1c": HTTP1, "h1": HTTP1, "h2c": {**HTTP1, **WINDOWS}, "h2": {**HTTP1, **WINDOWS}}

H2O = program.Program("h2o", "h2o", HONOURS, r"version ([\d.]+)")

def run(site, path, folder):
    listener = sockets.listen(site)
    port, number = listener.getsockname()[1], listener.fileno()
    with open(os.path.join(folder, "h2o.conf"), "w", encoding="utf-8") as file:
        json.dump(configuration(site, port), file)  # YAML, which includes JSON
    # The variable is that by which the program `start_server` hands over sockets. h2o 2.2 is older than OpenSSL's TLS 1.3, and
    # has no settings for it.
    server = life.Server(
        "h2o", [path, "--conf", "h2o.conf"], folder, descriptors=[number],
        environment={"SERVER_STARTER_PORT": f"{sockets.host(site)}:{port}={number}", **openssl.configure(site, folder)})

    def configured(_):
        facts = {**sockets.settle([listener], site), "threads": workers(site, server.child.pid)}
        listener.close()  # from now on only h2o has it
        return facts

    life.serve(server, site, lambda pid: port if workers(site, pid) == choices.workers(site) else None, configured)


def workers(site, pid):
    """The number of serving threads: all but the thread that clears the cache of sessions."""
    return life.threads(pid) - site.resumption


def configuration(site, port):
    listen = {"host": str(site.address), "port": port}
    if site.is_secure:
        listen["ssl"] = {"certificate-file": "certificate.pem", "key-file": "key.pem", "minimum-version": "TLSv1.3",
                         "ocsp-update-interval": 0,  # the certificates of trials have no such service
                         "neverbleed": "OFF"}  # a process of its own for the key, which no other server has
    return {
        "num-threads": choices.workers(site),
        "max-connections": choices.CONNECTIONS,
        "http1-request-timeout": choices.IDLE_S,
        "http2-idle-timeout": choices.IDLE_S,
        "ssl-session-resumption": {"mode": "cache" if site.resumption else "off"},
        **({"user": "root"} if os.geteuid() == 0 else {}),  # another user could not read root's files
        "listen": listen,
        **({"file.mime.settypes": {kind: [f".{ending}"] for ending, kind in CONTENT_TYPES.items()}} if site.has_pages else {}),
        "hosts": {"default": {"paths": {"/": {"file.dir": "documents"}}}},
    }


if __name__ == "__main__":
    program.main(H2O, run)
