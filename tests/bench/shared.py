"""What the benchmarks share: the start of a client, certificates, and nginx on a processor of its own."""

import os
import subprocess
import tempfile

ROUNDS = int(os.environ.get("ROUNDS", "7"))
HTTP, HTTPS = 18080, 18443
SIZES = {"1k": 1024, "100k": 102400}
SERVER_PROCESSOR = (os.cpu_count() or 1) - 1  # the client has processor 0
CONFIGURATION = """
worker_processes 1; worker_cpu_affinity {mask}; pid {folder}/nginx.pid; error_log {folder}/error.log; daemon off;
events {{ worker_connections 8192; }}
http {{
  access_log off; sendfile on; tcp_nodelay on; open_file_cache max=100; root {folder};
  keepalive_requests 1000000000; keepalive_timeout 3600; {temporary}
  http2_max_concurrent_streams 1000;
  ssl_certificate {folder}/leaf.pem; ssl_certificate_key {folder}/key.pem; ssl_protocols TLSv1.3;
  ssl_session_cache shared:tls:10m;
  server {{ listen 127.0.0.1:{http} backlog=8192; }}
  server {{ {secure} }}
}}
"""


def measure(command):
    """Runs a client on its processor: what it printed, and what the kernel counted for it (wait4)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            os.sched_setaffinity(0, {0})
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            os.execvp(command[0], command)
        _, status, usage = os.wait4(pid, 0)
        out.seek(0)
        err.seek(0)
        text, errors = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if status != 0:
        raise RuntimeError(f"{command[0]} ended with status {os.waitstatus_to_exitcode(status)}: {errors.strip()[-300:]}")
    return text, usage


def processor_time(pid):
    """User and kernel time of a process and its children in seconds, to the nanosecond of the scheduler."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = file.read().split()
    own = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            own += int(file.read().split()[0])
    return own / 1e9 + sum(processor_time(int(child)) for child in children)


def certificate(folder):
    """An authority (ca.pem) and the certificate of localhost (leaf.pem, key.pem)."""

    def run(*command):
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=bench CA", "-keyout", "ca.key", "-out", "ca.pem")
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
        "-keyout", "key.pem", "-out", "leaf.csr")
    with open(os.path.join(folder, "ext"), "w") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    run("openssl", "x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "ext", "-out", "leaf.pem")


def documents(folder):
    """A certificate and the documents of SIZES, readable by nginx's worker."""
    for name, size in SIZES.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes(i % 251 for i in range(size)))
    certificate(folder)
    os.chmod(folder, 0o755)


def start_nginx(folder, program="/usr/sbin/nginx", http3=False):
    """Starts nginx with one worker for the documents of a folder; with `http3`, nginx 1.25 or later that has it."""
    kinds = ("body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{'client_body' if kind == 'body' else kind}_temp_path {folder}/{kind};" for kind in kinds)
    if http3:
        secure = f"listen 127.0.0.1:{HTTPS} ssl backlog=8192; http2 on; listen 127.0.0.1:{HTTPS} quic; http3 on;" \
                 " http3_max_concurrent_streams 1000; quic_gso on;"
    else:
        secure = f"listen 127.0.0.1:{HTTPS} ssl http2 backlog=8192;"
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w") as file:
        mask = format(1 << SERVER_PROCESSOR, "b")
        file.write(CONFIGURATION.format(mask=mask, folder=folder, temporary=temporary, http=HTTP, secure=secure))
    server = subprocess.Popen([program, "-p", folder, "-c", path], stderr=subprocess.DEVNULL)
    wait_for(f"http://127.0.0.1:{HTTP}/1k")
    return server


def wait_for(url):
    """Waits until a server answers at a URL."""
    subprocess.run(["curl", "-s", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", "-o", "/dev/null", url], check=True)
