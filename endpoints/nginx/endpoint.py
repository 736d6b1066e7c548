"""nginx as an endpoint of wirelab: files over HTTP/1.1 and HTTP/2, in clear text and over TLS 1.3. See README.md."""

from wirelab_servers import choices, nginx, program

NGINX = program.Program("nginx", "nginx", nginx.BEFORE_QUIC, r"nginx/([\d.]+)")


def run(site, path, folder):
    words = [f"backlog={choices.BACKLOG}"] + ["ssl"] * site.is_secure + ["http2"] * site.is_http2
    nginx.serve(site, path, folder, nginx.http2_lines(site) if site.is_http2 else [], words)


if __name__ == "__main__":
    program.main(NGINX, run)
