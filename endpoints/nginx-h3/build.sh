#!/bin/sh
# Builds nginx with HTTP/3 from the sources in the crate `nginx-src`, which cargo fetches and whose checksum it compares.
set -eu
pkg-config --exists openssl zlib libpcre2-8 || {
    echo "nginx needs three libraries to be built: apt-get install libssl-dev zlib1g-dev libpcre2-dev" >&2
    exit 1
}
host=$(rustc -vV | sed -n 's/^host: //p')
cargo fetch --locked --quiet --target "$host"
crate=$(cargo metadata --locked --offline --filter-platform "$host" --format-version 1 | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(*(os.path.dirname(package["manifest_path"]) for package in packages if package["name"] == "nginx-src"))')
nginx=$WIRELAB_WORK/nginx
if [ ! -e "$nginx/configured" ]; then # otherwise make goes on where an earlier attempt was stopped
    cp -RT "$crate/nginx" "$nginx"
    cd "$nginx"
    # Optimised as Debian does it; by itself it is built with -O.
    auto/configure --with-cc-opt=-O2 --with-http_ssl_module --with-http_v2_module --with-http_v3_module > configure.log ||
        { tail -n 20 configure.log >&2; exit 1; }
    touch configured
fi
make --quiet -C "$nginx" -j2
cp "$nginx/objs/nginx" "$WIRELAB_INSTALLED/nginx"
