"""nginx's configuration and its start, for every version of it that is an endpoint."""

import os

from wirelab_servers import choices, datagrams, life, sockets
from wirelab_servers.site_spec import CONTENT_TYPES, FLAG, HTTP2_WINDOWS, OF_TCP, OF_UDP

MOST_WORKERS = 1000  # a little less than nginx's limit of processes, NGX_MAX_PROCESSES

# Every version has 0-RTT over TCP, and no setting for the congestion control of QUIC; none uses UDP_GRO.
THREADS = {"threads": range(1, MOST_WORKERS + 1)}
HTTP1, HTTP2 = {**OF_TCP, **THREADS}, {**OF_TCP, **THREADS, **HTTP2_WINDOWS}
BEFORE_QUIC = {"h1c": HTTP1, "h1": {**HTTP1, "early_data": FLAG}, "h2c": HTTP2, "h2": {**HTTP2, "early_data": FLAG}}


def with_quic(congestion):
    return {**BEFORE_QUIC, "h3": {**OF_UDP, **THREADS, "congestion": [congestion], "gso": FLAG, "gro": [False]}}


CONFIGURATION = """\
daemon off;
{user}
worker_processes {workers};
pid nginx.pid;
error_log stderr error;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    log_not_found off;
    default_type application/octet-stream;
    {types}
    gzip off;
    sendfile {sendfile};
    tcp_nopush on;
    tcp_nodelay {no_delay};
    keepalive_timeout {idle}s;
    keepalive_time {idle}s;
    keepalive_requests {requests};
    {protocol}
    client_body_temp_path client_body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        {listen};
        root documents;
        # A folder, and a path that leads outside, are as good as not there.
        error_page 301 400 403 =404 /wirelab-not-there;
        location = /wirelab-not-there {{ internal; return 404; }}
        {tls}
    }}
}}
"""

TLS = """
        ssl_certificate certificate.pem;
        ssl_certificate_key key.pem;
        ssl_protocols TLSv1.3;
        ssl_ecdh_curve {group};
        ssl_conf_command Ciphersuites {ciphers};
        ssl_prefer_server_ciphers on;
        ssl_early_data {early_data};
        {tickets}
"""

NO_TICKETS = "ssl_session_tickets off; ssl_session_cache off; ssl_conf_command NumTickets 0;"


def serve(site, path, folder, protocol_lines, listen_words, facts=None):
    """Runs nginx until the word `stop`.

    `protocol_lines` and `listen_words` differ between versions; `facts` are active values beside the settings.
    """
    workers = choices.workers(site)
    # The port is bound here and handed over, so that port 0 has no race and options can be set and read back. A worker has a
    # UDP socket of its own, because with a common one any of them would get the packets of a connection.
    held = datagrams.bind(site, workers) if site.is_quic else [sockets.listen(site)]
    port, numbers = held[0].getsockname()[1], [sock.fileno() for sock in held]
    listen = " ".join(["listen", f"{sockets.host(site)}:{port}", *listen_words])
    with open(os.path.join(folder, "nginx.conf"), "w", encoding="ascii") as file:
        file.write(configuration(site, workers, protocol_lines, listen))
    # The prefix is relative, because nginx takes a `$` in the path of a document root for a variable of its own. The one in the
    # environment is the variable by which an nginx hands its sockets to its successor.
    server = life.Server("nginx", [path, "-e", "stderr", "-p", "./", "-c", "nginx.conf"], folder,
                         environment={"NGINX": "".join(f"{number};" for number in numbers)}, descriptors=numbers)

    def configured(_):
        active_settings = (datagrams if site.is_quic else sockets).settle(held, site)
        for sock in held:
            sock.close()  # from now on only nginx has them
        return {**active_settings, **(facts or {}), "threads": len(life.children(server.child.pid))}

    life.serve(server, site, lambda pid: port if len(life.children(pid)) == workers else None, configured)


def serve_newer(site, path, folder, congestion):
    """Runs a version since 1.25.1, where protocols are not words of `listen`; `congestion` is QUIC's in this version."""
    if site.is_quic:
        streams = choices.STREAMS["h3"]
        lines = ["http3 on", f"quic_gso {on(site.gso is not False)}", f"http3_max_concurrent_streams {streams}"]
        serve(site, path, folder, lines, ["quic", "reuseport"], {"congestion": congestion, "streams": streams})
    else:
        lines = ["http2 on", *http2_lines(site)] if site.is_http2 else ["http2 off"]
        serve(site, path, folder, lines, [f"backlog={choices.BACKLOG}"] + ["ssl"] * site.is_secure)


def configuration(site, workers, protocol_lines, listen):
    tls = TLS.format(group=choices.GROUP, ciphers=":".join(choices.CIPHERS), early_data=on(site.early_data),
                     tickets="" if site.resumption else NO_TICKETS)
    return CONFIGURATION.format(
        # Workers of another user could not read root's files.
        user="user root;" if os.geteuid() == 0 else "",
        # With it, nginx turns TCP_NODELAY off on HTTP/2 in clear text, and answers wait for acknowledgements.
        sendfile=on(site.protocol != "h2c"),
        types=types() if site.has_pages else "",
        workers=workers, connections=choices.CONNECTIONS, no_delay=on(site.no_delay), idle=choices.IDLE_S,
        requests=choices.REQUESTS_PER_CONNECTION, protocol=" ".join(f"{line};" for line in protocol_lines), listen=listen,
        tls=tls if site.is_secure else "")


def types():
    return f"types {{ {' '.join(f'{kind} {ending};' for ending, kind in CONTENT_TYPES.items())} }}"


def http2_lines(site):
    """SETTINGS announces as window the size of the buffer for bytes that come before the body is read."""
    lines = [f"http2_max_concurrent_streams {choices.STREAMS[site.protocol]}"]
    return lines + [f"http2_body_preread_size {site.stream_window}"] * bool(site.stream_window)


def on(flag):
    return "on" if flag else "off"
