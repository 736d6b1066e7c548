# A node: its configuration, its start and its restart. node-init.sh runs inside the node.

configure_node() { # NODE PROXY-MODE
  local folder=$run/nodes/$1
  mkdir -p "$folder/cni"
  containerd_config "$folder" >"$folder/containerd.toml"
  network_config "$1" >"$folder/cni/10-wirelab.conflist"
  echo "nameserver $control_address" >"$folder/resolv.conf" # no server answers there: pods of dnsPolicy Default resolve nothing
  kubelet_config "$1" "$folder" >"$folder/kubelet.yaml"
  proxy_config "$1" "$2" >"$folder/kube-proxy.yaml"
}

# All processes of the node are in the namespaces of its first process, so killing that process is a crash of the node.
start_node() { # NODE
  make_group "$group/$1"
  start "$group/$1/system" "$1" nsenter --net="$run/netns/$1" \
    unshare --mount --propagation private --uts --ipc --pid --fork --kill-child "$here/node-init.sh" "$1"
}

# On a machine /run is in memory, so a restart empties it.
restart_node() { # NODE
  rm -rf --one-file-system "${run:?}/nodes/$1/run"
  start_node "$1"
}

# Loads an image on every running node. A stopped node loads it at its next start.
load() { # ARCHIVE
  local node name
  [ -f "${1:-}" ] || wrong "load: expected an archive of an image, not \`${1:-}\`"
  name=$(basename "$1")
  cp "$1" "$run/images/$name.new"
  mv "$run/images/$name.new" "$run/images/$name"
  for node in $(cd "$run/nodes" && echo *); do
    [ -z "$(processes_in "$group/$node/system")" ] || in_node "$node" ctr --namespace k8s.io images import "$run/images/$name"
  done
}

in_node() { # NODE COMMAND...
  local first
  first=$(<"$run/nodes/$1/first-process")
  shift
  nsenter --target "$first" --mount --pid --net --uts --ipc "$@"
}

# Lowering a process's likelihood of being killed when memory runs out needs CAP_SYS_RESOURCE, so containerd does not
# try.
containerd_config() { # FOLDER
  cat <<CONFIG
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
options = { SystemdCgroup = false }

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$1/cni"
CONFIG
}

network_config() { # NODE
  cat <<CONFIG
{
  "cniVersion": "0.4.0",
  "name": "wirelab",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "pods",
      "isDefaultGateway": true,
      "hairpinMode": true,
      "mtu": 1450,
      "ipam": {"type": "host-local", "ranges": [[{"subnet": "$(pod_range "$1")"}]]}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}
  ]
}
CONFIG
}

# Disk thresholds are off: a full disk of the machine would evict every pod. Each kubelet has a separate root of
# cgroups; otherwise it would end the pods of other nodes as unknown.
kubelet_config() { # NODE FOLDER
  cat <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $run/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $run/pki/$1.crt
tlsPrivateKeyFile: $run/pki/$1.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /$group/$1
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
clusterDNS: [$name_server]
clusterDomain: $domain
resolvConf: $2/resolv.conf
maxPods: 200
volumePluginDir: /var/lib/kubelet/plugins/volume
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
CONFIG
}

# The limits of connection tracking belong to the machine; a network namespace cannot set them.
proxy_config() { # NODE MODE
  cat <<CONFIG
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $run/pki/kube-proxy.kubeconfig}
mode: $2
clusterCIDR: $pod_network
hostnameOverride: $1
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
CONFIG
}
