#!/usr/bin/env bash
# A Kubernetes cluster on this machine, for tests: real components, each node a set of namespaces. See docs/cluster.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for part in settings processes requirements binaries helm pki network control-plane node crowd; do
  . "$here/$part.sh"
done

usage() {
  cat <<USAGE
usage: cluster.sh COMMAND

  up [--nodes N] [--proxy nftables|iptables] [--image ARCHIVE]
                       brings the cluster up: N nodes (2), kube-proxy in this mode (nftables), with this image
  down                 removes every trace of it, also after a kill or a failed start
  crowd PROGRAM        joins a node for hundreds of pods of wirelab: processes of this program, no containers
  load ARCHIVE         loads an image (an OCI or Docker archive) on every node
  kill PART            ends all processes of a part at once, as a crash does: node1, node2, ... or kube-apiserver
  start PART           starts the part again
  kubectl ARGUMENTS    kubectl on this cluster
  helm ARGUMENTS       Helm on this cluster
  check                names the requirements that this machine lacks
  ready                the same, and requires a finished build of Kubernetes, with which the cluster starts in seconds

Examples:
  tests/cluster/cluster.sh up --nodes 3 --proxy iptables --image target/image/wirelab.tar
  tests/cluster/cluster.sh kubectl get pods --all-namespaces --output wide
  tests/cluster/cluster.sh kill node2
USAGE
}

main() {
  local command=${1:-}
  [ $# -eq 0 ] || shift
  case $command in
    up) up "$@" ;;
    down) down ;;
    crowd) with_cluster && join_crowd "${1:-}" ;;
    load) with_cluster && load "${1:-}" ;;
    kill) with_cluster && known_part "${1:-}" && kill_group "$(group_of "$1")" ;;
    start) with_cluster && known_part "${1:-}" && start_again "$1" ;;
    kubectl) with_cluster && kubectl "$@" ;;
    helm) with_cluster && helm "$@" ;;
    check) require ;;
    ready) require && require_built ;;
    help | --help | -h) usage ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
}

up() {
  local nodes=2 proxy=nftables image=
  while [ $# -gt 0 ]; do
    case $1 in
      --nodes) nodes=${2:-} ;;
      --proxy) proxy=${2:-} ;;
      --image) image=${2:-} ;;
      *) wrong "expected --nodes, --proxy or --image, not \`$1\`" ;;
    esac
    shift 2 || wrong "a value is expected after \`$1\`"
  done
  [[ $nodes =~ ^[1-9]$ ]] || wrong "--nodes: expected a number from 1 to 9, not \`$nodes\`"
  [[ $proxy =~ ^(nftables|iptables)$ ]] || wrong "--proxy: expected nftables or iptables, not \`$proxy\`"
  [ -z "$image" ] || [ -f "$image" ] || wrong "--image: the file $image does not exist. Remedy: make image"

  require
  if is_up; then
    already_up "$nodes" "$proxy" "$image"
    return
  fi
  [ -z "$(processes_in "$group/command")" ] || fail "another start of the cluster is under way. Remedy: wait for it, or make cluster-down"
  if is_there; then
    say "removing the rest of an earlier attempt"
    down
  fi
  local binaries
  binaries=$(built)
  trap 'say "starting the cluster failed. The logs are in $run/log; make cluster-down removes the rest"' EXIT
  bring_up "$nodes" "$proxy" "$image" "$binaries"
  trap - EXIT
  tell
}

# Steps in the order of their dependencies. After a stop at any step, `down` finds everything by the cgroup and the
# folder.
bring_up() {
  local nodes=$1 proxy=$2 image=$3 binaries=$4 began=$SECONDS node
  mkdir -p "$run"/{log,pid,netns,nodes,images}
  make_group "$group"
  enter_group "$group/command"
  provide "$binaries"
  [ -z "$image" ] || cp "$image" "$run/images/"

  say "certificates and network"
  make_certificates "$nodes"
  make_network "$nodes"
  say "control plane"
  start_control_plane
  say "$nodes nodes"
  announce_nodes "$nodes" "$proxy"
  for node in $(node_names "$nodes"); do
    configure_node "$node" "$proxy"
    start_node "$node"
  done
  kubectl wait --for=condition=Ready node --all --timeout=120s >/dev/null
  say "name server"
  kubectl --namespace kube-system rollout status deployment/coredns --timeout=120s >/dev/null
  kubectl wait --for=create serviceaccount/default --timeout=60s >/dev/null
  echo "$nodes $proxy" >"$run/ready"
  say "up after $((SECONDS - began)) s"
}

already_up() {
  local nodes=$1 proxy=$2 image=$3
  [ "$(<"$run/ready")" = "$nodes $proxy" ] ||
    fail "a cluster of another kind is up (nodes, mode of kube-proxy: $(<"$run/ready")). Remedy: make cluster-down first"
  if [ -n "$image" ] && ! cmp -s "$image" "$run/images/$(basename "$image")"; then
    say "the cluster is up; loading the new image"
    load "$image"
  else
    say "the cluster is up; nothing to do"
  fi
  tell
}

tell() {
  cat <<TELL
  export KUBECONFIG=$kubeconfig
  $here/cluster.sh kubectl get pods --all-namespaces --output wide
  images on the nodes: $(images_loaded)
  logs: $run/log
  make cluster-down removes every trace of it
TELL
}

images_loaded() {
  find "$run/images/" -name '*.tar' -exec tar -xOf {} manifest.json \; | grep -oE '"RepoTags": ?\["[^"]+' | cut -d '"' -f 4 | xargs || true
}

down() {
  [ "$(id -u)" -eq 0 ] || fail "only root can remove the cluster. Remedy: sudo make cluster-down"
  if ! is_there; then
    say "no cluster exists; nothing to do"
    return
  fi
  kill_group "$group"
  withdraw
  remove_group
  rm -rf --one-file-system "$run"
  say "removed: processes, namespaces, mounts, cgroups and $run"
}

is_there() {
  local hierarchy
  [ ! -e "$run" ] || return 0
  for hierarchy in $(hierarchies); do
    [ ! -e "$hierarchy/$group" ] || return 0
  done
  return 1
}

# Up: the start was completed, and neither a kill nor a shutdown of the machine has ended the cluster since.
is_up() {
  [ -e "$run/ready" ] && [ -n "$(processes_in "$group/control")" ]
}

# As after a crash: data on the disk is there, data in memory is lost.
start_again() { # NODE|kube-apiserver
  [ -z "$(processes_in "$(group_of "$1")")" ] || fail "$1 is running. Remedy: cluster.sh kill $1"
  case $1 in
    node*) restart_node "$1" ;;
    *) start_api_server && await kube-apiserver "the API server" kubectl get --raw /readyz ;;
  esac
}

with_cluster() {
  [ "$(id -u)" -eq 0 ] || fail "only root can do this. Remedy: sudo"
  [ -e "$run/ready" ] || fail "no cluster exists. Remedy: make cluster"
}

main "$@"
