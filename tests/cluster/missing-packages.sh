#!/usr/bin/env bash
# Prints the Debian packages that the test cluster needs and this machine lacks.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

while read -r program package; do
  command -v "$program" >/dev/null || echo "$package"
done <<NEEDS | sort -u
containerd containerd
ctr containerd
runc runc
/usr/lib/cni/bridge containernetworking-plugins
nft nftables
iptables iptables
ip iproute2
bridge iproute2
nsenter util-linux
unshare util-linux
openssl openssl
sysctl procps
python3 python3
NEEDS
