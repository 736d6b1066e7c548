# The network below the pods, separate from the machine's own network.
#
#     control --- nodes ----+--- eth0  node1  vxlan0 ...
#   172.30.0.1              +--- eth0  node2  vxlan0 ...

make_network() { # NODES
  local node
  make_namespace control
  within control ip -batch - <<COMMANDS
link set lo up
link add nodes type bridge
address add $control_address/24 dev nodes
link set nodes up
COMMANDS
  for node in $(node_names "$1"); do
    make_namespace "$node"
    connect "$node"
  done
  for node in $(node_names "$1"); do
    overlay "$node" "$1"
  done
}

# A network namespace, held by a file.
make_namespace() { # NAME
  touch "$run/netns/$1"
  unshare --net="$run/netns/$1" true || fail "making a network namespace failed. Remedy: run on a dedicated machine, not in a container"
  within "$1" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
}

within() { # NAMESPACE COMMAND...
  local namespace=$1
  shift
  nsenter --net="$run/netns/$namespace" "$@"
}

# A cable from the node to the bridge. The API server reaches pods through their nodes.
connect() { # NODE
  within control ip -batch - <<COMMANDS
link add $1 type veth peer name eth0 netns $run/netns/$1
link set $1 master nodes up
route add $(pod_range "$1") via $(node_address "$1")
COMMANDS
  within "$1" ip -batch - <<COMMANDS
link set lo up
address add $(node_address "$1")/24 dev eth0
link set eth0 up
route add default via $control_address
COMMANDS
  filter_bridged "$1"
}

# Sends packets between pods of one node through the packet filter, so that the rules of services apply to them.
filter_bridged() { # NODE
  [ -e /proc/sys/net/bridge ] || modprobe -q br_netfilter || fail "the kernel has no br_netfilter. Remedy: a kernel with CONFIG_BRIDGE_NETFILTER"
  within "$1" sysctl -qw net.bridge.bridge-nf-call-iptables=1
}

# The overlay, as flannel builds it: static neighbours, and one route for the pods of each other node.
overlay() { # NODE NODES
  local other
  within "$1" ip -batch - <<COMMANDS || fail "making the overlay failed. Remedy: a kernel with CONFIG_VXLAN"
link add vxlan0 address $(overlay_mac "$1") type vxlan id 1 local $(node_address "$1") dev eth0 dstport 8472 nolearning
address add $(overlay_address "$1")/32 dev vxlan0
link set vxlan0 mtu 1450 up
COMMANDS
  for other in $(node_names "$2"); do
    [ "$other" != "$1" ] || continue
    within "$1" bridge fdb append "$(overlay_mac "$other")" dev vxlan0 dst "$(node_address "$other")"
    within "$1" ip -batch - <<COMMANDS
neighbour add $(overlay_address "$other") lladdr $(overlay_mac "$other") dev vxlan0 nud permanent
route add $(pod_range "$other") via $(overlay_address "$other") dev vxlan0 onlink
COMMANDS
  done
}

overlay_mac() { # NODE
  printf '0e:00:00:00:00:%02x' "$(number_of "$1")"
}

overlay_address() { # NODE
  echo "10.244.$(number_of "$1").0"
}
