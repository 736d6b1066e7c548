# Settings and messages that the parts of the test cluster share.
PATH=$PATH:/usr/sbin:/sbin

run=/run/wirelab-cluster # all files of the cluster. Fixed, because a machine has one cluster, and `down` must find it
group=wirelab-cluster    # its cgroup
kubeconfig=$run/kubeconfig

control_address=172.30.0.1 # the control plane, on the nodes' network 172.30.0.0/24
pod_network=10.244.0.0/16
service_network=10.96.0.0/16
api_service=10.96.0.1
name_server=10.96.0.10
domain=cluster.local

node_names() { # NUMBER
  seq -f 'node%g' "$1"
}

number_of() { # NODE
  echo "${1#node}"
}

node_address() { # NODE
  echo "172.30.0.$((10 + $(number_of "$1")))"
}

pod_range() { # NODE
  echo "10.244.$(number_of "$1").0/24"
}

# Neighbours are in different zones; with three nodes one pair shares a zone.
zone_of() { # NODE
  if (($(number_of "$1") % 2)); then echo zone-a; else echo zone-b; fi
}

# Fails unless the name is a part that `kill` and `start` know.
known_part() { # NODE|kube-apiserver
  local known
  for known in $(cd "$run/nodes" && echo *) kube-apiserver; do
    [ "$1" != "$known" ] || return 0
  done
  wrong "expected $(cd "$run/nodes" && echo *) or kube-apiserver, not \`$1\`"
}

# The cgroup of all processes of a part.
group_of() { # NODE|COMPONENT
  case $1 in
    node*) echo "$group/$1" ;;
    *) echo "$group/control/$1" ;;
  esac
}

kubectl() {
  "$run/bin/hyper" kubectl --kubeconfig "$kubeconfig" --cache-dir "$run/kubectl" "$@"
}

say() {
  echo "cluster: $*" >&2
}

fail() {
  say "$*"
  exit 1
}

wrong() {
  say "$*"
  exit 2
}
