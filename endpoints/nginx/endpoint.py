"""nginx as an endpoint of wirelab: files over HTTP/1.1 and HTTP/2, in clear text and over TLS 1.3. See README.md."""

import os

import life
import program
import sockets
from contract import Unsupported

NGINX = program.Program("nginx", "nginx", "nginx", r"nginx/([\d.]+)")
MOST_WORKERS = 1000  # a little less than nginx's limit of processes, NGX_MAX_PROCESSES

CONFIGURATION = """\
daemon off;
{user}
worker_processes {workers};
pid nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    log_not_found off;
    default_type application/octet-stream;
    gzip off;
    sendfile {sendfile};
    tcp_nopush on;
    tcp_nodelay {no_delay};
    keepalive_timeout 1d;
    keepalive_time 1d;
    keepalive_requests 1000000000;
    {stream_window}
    client_body_temp_path client_body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen {listen};
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
        ssl_early_data {early_data};
        {tickets}
"""

NO_TICKETS = "ssl_session_tickets off; ssl_session_cache off; ssl_conf_command NumTickets 0;"


def run(site, path, folder):
    if site.key_log is not None:
        raise Unsupported("tls: nginx cannot write a key log (`key_log`)")
    if site.threads and site.threads > MOST_WORKERS:
        raise Unsupported(f"nginx has at most {MOST_WORKERS} workers (`threads`)")
    listener = sockets.bind(site)
    sockets.apply(listener, site)
    listener.listen(sockets.BACKLOG)
    # nginx takes it as it is: a worker would stand still in accept() where another one was faster.
    listener.setblocking(False)
    port = listener.getsockname()[1]
    # The cores that this process may use: what `auto` means, unless it is confined to some.
    workers = site.threads or len(os.sched_getaffinity(0))
    with open(os.path.join(folder, "nginx.conf"), "w", encoding="ascii") as file:
        file.write(configuration(site, port, workers))
    # The prefix is relative, because nginx takes a `$` in the path of a document root for a variable of its own. The variable
    # in the environment is that by which an nginx hands its sockets to its successor.
    server = life.Server(
        "nginx", [path, "-p", "./", "-c", "nginx.conf"], folder,
        environment={"NGINX": f"{listener.fileno()};"}, descriptors=[listener.fileno()])

    def configured():
        facts = {**sockets.in_force(listener), "threads": len(life.children(server.child.pid))}
        listener.close()  # nginx alone has it from now on
        return facts

    life.serve(server, site, port, lambda pid: len(life.children(pid)) == workers, configured)


def configuration(site, port, workers):
    host = f"[{site.address}]" if site.address.version == 6 else site.address
    words = [f"{host}:{port}", f"backlog={sockets.BACKLOG}"] + ["ssl"] * site.is_secure + ["http2"] * site.is_http2
    tls = TLS.format(early_data=on(site.early_data), tickets="" if site.resumption else NO_TICKETS)
    return CONFIGURATION.format(
        # Workers of another user could not read what belongs to root.
        user="user root;" if os.geteuid() == 0 else "",
        # The size of the buffer that holds what may come before the body is read is the window that SETTINGS announces.
        stream_window=f"http2_body_preread_size {site.stream_window};" if site.stream_window else "",
        # With it, nginx 1.22 turns TCP_NODELAY off on HTTP/2 in clear text, and answers wait for acknowledgements.
        sendfile=on(site.protocol != "h2c"),
        workers=workers, no_delay=on(site.no_delay), listen=" ".join(words), tls=tls if site.is_secure else "")


def on(flag):
    return "on" if flag else "off"


if __name__ == "__main__":
    program.main(NGINX, run)
