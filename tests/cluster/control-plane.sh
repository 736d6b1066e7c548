# etcd, the API server, the controllers and the scheduler in the network namespace `control`, and access to them from
# outside.

start_control_plane() {
  start_etcd
  start_api_server
  start "$(group_of forward)" forward "$run/bin/forward" "$run/netns/control" "$control_address:6443"
  await forward "a way to the API server" grep -q '^127' "$run/log/forward.log"
  (cd "$run/pki" && kubeconfig_of admin "$(head -n 1 "$run/log/forward.log")") >"$kubeconfig"
  chmod 600 "$kubeconfig"
  await kube-apiserver "the API server" kubectl get --raw /readyz
  start_controllers
  start_scheduler
}

component() { # NAME FLAGS...
  local name=$1
  start "$(group_of "$name")" "$name" nsenter --net="$run/netns/control" "$run/bin/hyper" "$@"
}

# etcd's data does not outlive the cluster, so etcd need not wait for the disk.
start_etcd() {
  component etcd --name wirelab --data-dir "$run/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380
}

start_api_server() {
  local pki=$run/pki
  component kube-apiserver --etcd-servers http://127.0.0.1:2379 --advertise-address "$control_address" --secure-port 6443 \
    --service-cluster-ip-range "$service_network" --allow-privileged \
    --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" --client-ca-file "$pki/ca.crt" \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --service-account-issuer "https://kubernetes.default.svc.$domain" \
    --service-account-key-file "$pki/service-accounts.pub" --service-account-signing-key-file "$pki/service-accounts.key" \
    --kubelet-certificate-authority "$pki/ca.crt" --kubelet-preferred-address-types InternalIP \
    --kubelet-client-certificate "$pki/apiserver-kubelet-client.crt" --kubelet-client-key "$pki/apiserver-kubelet-client.key" \
    --requestheader-client-ca-file "$pki/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- \
    --proxy-client-cert-file "$pki/front-proxy-client.crt" --proxy-client-key-file "$pki/front-proxy-client.key"
}

start_controllers() {
  local pki=$run/pki
  component kube-controller-manager $(identity kube-controller-manager) --bind-address 127.0.0.1 --leader-elect=false \
    --allocate-node-cidrs=false --use-service-account-credentials --root-ca-file "$pki/ca.crt" \
    --service-account-private-key-file "$pki/service-accounts.key" \
    --cluster-signing-cert-file "$pki/ca.crt" --cluster-signing-key-file "$pki/ca.key" \
    --flex-volume-plugin-dir "$run/plugins" # the default is a folder of the machine, which the manager would make
}

start_scheduler() {
  component kube-scheduler $(identity kube-scheduler) --bind-address 127.0.0.1 --leader-elect=false
}

identity() { # COMPONENT
  local file=$run/pki/$1.kubeconfig
  echo "--kubeconfig $file --authentication-kubeconfig $file --authorization-kubeconfig $file"
}

# Registers the nodes at the API server before they join, with their zones and the addresses of their pods, and the name
# server. Also stores the configuration of kube-proxy, as kubeadm does; kube-proxy itself reads a file of its node.
announce_nodes() { # NODES PROXY-MODE
  local node
  for node in $(node_names "$1"); do
    cat <<NODE
---
apiVersion: v1
kind: Node
metadata: {name: $node, labels: {topology.kubernetes.io/zone: $(zone_of "$node")}}
spec: {podCIDR: $(pod_range "$node"), podCIDRs: [$(pod_range "$node")]}
NODE
  done >"$run/nodes.yaml"
  sed "s/NAME_SERVER/$name_server/; s/DOMAIN/$domain/" "$here/name-server.yaml" >"$run/name-server.yaml"
  await kube-apiserver "the namespace kube-system" kubectl get namespace kube-system
  kubectl apply -f "$run/nodes.yaml" -f "$run/name-server.yaml" >"$run/log/announced.log"
  proxy_config node1 "$2" | kubectl --namespace kube-system create configmap kube-proxy --from-file config.conf=/dev/stdin >>"$run/log/announced.log"
}
