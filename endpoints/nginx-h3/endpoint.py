"""A newer nginx, built with HTTP/3, as an endpoint of wirelab. See README.md."""

from wirelab_servers import nginx, program

CONGESTION = "cubic"  # in QUIC, by this version's source

NGINX = program.Program("nginx", "nginx", nginx.with_quic(CONGESTION), r"nginx/([\d.]+)")


def run(site, path, folder):
    nginx.serve_newer(site, path, folder, CONGESTION)


if __name__ == "__main__":
    program.main(NGINX, run)
