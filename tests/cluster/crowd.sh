# A node for hundreds of pods, to test wirelab with so many. Its pods are processes, not containers (cmd/crowd). `up`
# does not start it, because the scheduler may send any pod to it, and only wirelab's pods run there.

crowd_address=172.30.0.100
crowd_pods=10.244.128.0/20
crowd_bridge=10.244.128.1/20

join_crowd() { # PROGRAM
  local program
  [ -x "${1:-}" ] || wrong "crowd: expected wirelab's program, not \`${1:-}\`. Remedy: make build, and target/release/wirelab"
  program=$(realpath "$1")
  [ ! -e "$run/netns/crowd" ] || fail "the node \`crowd\` exists already. Remedy: make cluster-down first"
  sign_crowd >>"$run/log/pki.log" 2>&1 &
  wait $! || fail "making the certificate of the node \`crowd\` failed: $(tail -n 3 "$run/log/pki.log")"
  make_namespace crowd
  connect_crowd
  kubectl apply -f - >/dev/null <<NODE
apiVersion: v1
kind: Node
metadata: {name: crowd, labels: {kubernetes.io/hostname: crowd, topology.kubernetes.io/zone: zone-crowd}}
spec: {podCIDR: $crowd_pods, podCIDRs: [$crowd_pods]}
NODE
  start "$group/crowd" crowd nsenter --net="$run/netns/crowd" "$run/bin/crowd" --name crowd --address "$crowd_address" \
    --pods "$crowd_pods" --kubeconfig "$run/pki/crowd.kubeconfig" --certificate "$run/pki/crowd.crt" --key "$run/pki/crowd.key" \
    --authority "$run/pki/ca.crt" --program "$program"
  await crowd "the node \`crowd\`" kubectl wait --for=condition=Ready node/crowd --timeout=1s
}

sign_crowd() {
  umask 077
  cd "$run/pki"
  certificate crowd ca "/O=system:nodes/CN=system:node:crowd" serverAuth,clientAuth "DNS:crowd,IP:$crowd_address"
  kubeconfig_of crowd "$control_address:6443" >crowd.kubeconfig
}

# A bridge connects the node's pods to the network.
connect_crowd() {
  within control ip -batch - <<COMMANDS
link add crowd type veth peer name eth0 netns $run/netns/crowd
link set crowd master nodes up
route add $crowd_pods via $crowd_address
COMMANDS
  within crowd ip -batch - <<COMMANDS
link set lo up
address add $crowd_address/24 dev eth0
link set eth0 up
route add default via $control_address
link add pods type bridge
address add $crowd_bridge dev pods
link set pods up
COMMANDS
}
