"""Apache httpd as an endpoint of wirelab: files by HTTP/1.1 and HTTP/2, in clear text and with TLS. See README.md."""

import os

from wirelab_endpoint.contract import Failure
from wirelab_servers import choices, life, program, sockets
from wirelab_servers.site_spec import ANYTHING, CONTENT_TYPES, HTTP2_WINDOWS, OF_TCP

MODULES = "/usr/lib/apache2/modules"  # of the Debian package

# httpd sets TCP_NODELAY on every connection. It chooses its number of threads: as soon as all are busy for a moment, the
# event MPM ends connections that are kept for further requests, which then fail; and two pools of threads serve HTTP/2.
HTTP1 = {**OF_TCP, "no_delay": [True]}
HTTP2 = {**OF_TCP, "no_delay": [True], **HTTP2_WINDOWS}
HONOURS = {"h1c": HTTP1, "h1": {**HTTP1, "key_log": ANYTHING}, "h2c": HTTP2, "h2": {**HTTP2, "key_log": ANYTHING}}

HTTPD = program.Program("Apache httpd", "apache2", HONOURS, r"Apache/([\d.]+)")

PROTOCOLS = {"h1c": "http/1.1", "h1": "http/1.1", "h2c": "h2c", "h2": "h2"}  # httpd's names
OTHER_THREADS = 2  # in a child, beside the serving threads: the main thread and the listening one

CONFIGURATION = """\
{modules}
{user}
Listen {listen}
ListenBackLog {backlog}
ServerName localhost
Protocols {protocol}
PidFile httpd.pid
DefaultRuntimeDir .
ErrorLog /dev/stderr
LogLevel error
{threads}
KeepAliveTimeout {idle}
MaxKeepAliveRequests 0
EnableSendfile On
DocumentRoot documents
<Directory />
    Options FollowSymLinks
    AllowOverride None
    Require all granted
    ForceType application/octet-stream
</Directory>
{types}
# A path that leads outside is as good as not there.
ErrorDocument 400 /wirelab-not-there
Alias /wirelab-not-there not-there.asis
<Location /wirelab-not-there>
    SetHandler send-as-is
</Location>
{tls}
{http2}
"""

# As Debian configures it, but for the limits that would end a process or refuse a connection amid a trial.
AT_START = 50  # threads: the first two lines, multiplied
THREADS = """\
StartServers 2
ThreadsPerChild 25
MinSpareThreads 25
MaxSpareThreads 150
ThreadLimit 64
MaxRequestWorkers 150
AsyncRequestWorkerFactor 100
"""

TLS = """\
SSLEngine on
SSLProtocol -all +TLSv1.3
SSLCertificateFile certificate.pem
SSLCertificateKeyFile key.pem
SSLCipherSuite TLSv1.3 {ciphers}
SSLHonorCipherOrder on
SSLOpenSSLConfCmd Groups {group}
{tickets}
"""

NO_TICKETS = "SSLSessionTickets off\nSSLOpenSSLConfCmd NumTickets 0"

TYPES = "\n".join(
    f"<FilesMatch \"\\.{ending}$\">\n    ForceType {kind}\n</FilesMatch>" for ending, kind in CONTENT_TYPES.items())

NOT_THERE = "Status: 404 Not Found\nContent-Type: text/plain\n\n"


def run(site, path, folder):
    if not os.path.isdir(MODULES):
        raise Failure("other", f"there is no folder {MODULES}; install Apache httpd with `apt-get install apache2-bin`")
    with open(os.path.join(folder, "not-there.asis"), "w", encoding="ascii") as file:
        file.write(NOT_THERE)
    held = sockets.hold(site)  # until httpd has the port
    port = held.getsockname()[1]
    with open(os.path.join(folder, "httpd.conf"), "w", encoding="utf-8") as file:
        file.write(configuration(site, port))
    server = life.Server(
        "Apache httpd", [path, "-D", "FOREGROUND", "-d", folder, "-f", os.path.join(folder, "httpd.conf")], folder,
        # Children give up the user root, as httpd demands, but not the right to read what belongs to root.
        privileges=["--securebits", "+no_setuid_fixup"] if os.geteuid() == 0 else [],
        environment={"SSLKEYLOGFILE": os.path.abspath(site.key_log)} if site.key_log else {})

    def find_port(pid):
        """It writes the file after it has bound the port."""
        bound = os.path.exists(os.path.join(folder, "httpd.pid"))
        return port if bound and workers(pid) >= AT_START else None

    def configured(_):
        held.close()
        [listener] = sockets.borrow(server.child.pid, port)
        facts = sockets.settle([listener], site)
        listener.close()
        return facts if site.is_http2 else {**facts, "threads": workers(server.child.pid)}

    life.serve(server, site, find_port, configured)


def workers(pid):
    """The number of the children's threads that serve requests."""
    return sum(life.threads(child) - OTHER_THREADS for child in life.children(pid))


def configuration(site, port):
    modules = ["mpm_event", "authz_core", "alias", "asis"] + ["ssl"] * site.is_secure + ["http2"] * site.is_http2
    tls = TLS.format(ciphers=":".join(choices.CIPHERS), group=choices.GROUP,
                     tickets="SSLSessionTickets on" if site.resumption else NO_TICKETS)
    return CONFIGURATION.format(
        modules="\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in modules),
        user="User www-data\nGroup www-data" if os.geteuid() == 0 else "", listen=f"{sockets.host(site)}:{port}",
        types=TYPES if site.has_pages else "", backlog=choices.BACKLOG, protocol=PROTOCOLS[site.protocol], threads=THREADS, idle=choices.IDLE_S,
        tls=tls if site.is_secure else "", http2=http2(site) if site.is_http2 else "")


def http2(site):
    lines = [f"H2MaxSessionStreams {choices.STREAMS[site.protocol]}"]
    return "\n".join(lines + [f"H2WindowSize {site.stream_window}"] * bool(site.stream_window))


if __name__ == "__main__":
    program.main(HTTPD, run)
