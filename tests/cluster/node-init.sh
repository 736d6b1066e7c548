#!/usr/bin/env bash
# The first process of a node, in separate namespaces: `node-init.sh NODE`. All processes of the node end with it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/settings.sh"
node=$1
folder=$run/nodes/$node

main() {
  # /proc is still the machine's, so this is the process id on the machine.
  read -r number _ </proc/self/stat
  echo "$number" >"$folder/first-process"
  own_folders
  own_switches
  echo "$node" >/proc/sys/kernel/hostname
  export TMPDIR=/var/tmp
  start_containerd
  import_images
  "$run/bin/hyper" kubelet --config "$folder/kubelet.yaml" --kubeconfig "$run/pki/$node.kubeconfig" \
    --hostname-override "$node" --node-ip "$(node_address "$node")" >>"$run/log/$node-kubelet.log" 2>&1 &
  "$run/bin/hyper" kube-proxy --config "$folder/kube-proxy.yaml" >>"$run/log/$node-kube-proxy.log" 2>&1 &
  wait
}

# Separate /proc, /sys, /run and /var, so that no daemon writes to a fixed place of the machine. The folder of the
# cluster and the cgroups stay in place.
own_folders() {
  mkdir -p "$folder"/{cgroup,run/lock,var/{lib/{cni,containerd,kubelet},log,tmp}} "$folder$run"
  ln -sfn /run "$folder/var/run"
  ln -sfn /run/lock "$folder/var/lock"
  mount -t proc proc /proc
  mount --rbind /sys/fs/cgroup "$folder/cgroup"
  mount -t sysfs sysfs /sys
  mount --rbind "$folder/cgroup" /sys/fs/cgroup
  mount --rbind "$run" "$folder$run"
  mount --rbind "$folder/run" /run
  mount --bind "$folder/var" /var
  # The kubelet passes mounts to containers. This comes last, or the mounts above would repeat in each other.
  mount --make-rshared /
}

# The kubelet sets switches of the whole machine; here they are plain files.
own_switches() {
  local name file
  mkdir -p "$folder/switches"
  for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    file=$folder/switches/${name//\//_}
    cat "/proc/sys/$name" >"$file"
    mount --bind "$file" "/proc/sys/$name"
  done
}

start_containerd() {
  containerd --config "$folder/containerd.toml" >>"$run/log/$node-containerd.log" 2>&1 &
  until ctr version >/dev/null 2>&1; do
    kill -0 $! || { echo "containerd ended; its log: $run/log/$node-containerd.log" && exit 1; }
    sleep 0.1
  done
}

import_images() {
  local archive
  for archive in "$run"/bin/images/*.tar "$run"/images/*.tar; do
    [ ! -f "$archive" ] || ctr --namespace k8s.io images import "$archive"
  done
}

main
