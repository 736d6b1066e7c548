# Certificates and kubeconfigs. The API server identifies a client by the subject of its certificate from the authority
# `ca`.

make_certificates() { # NODES
  # In the background, because `set -e` has no effect within a condition.
  sign_all "$1" >>"$run/log/pki.log" 2>&1 &
  wait $! || fail "making certificates with openssl failed: $(tail -n 3 "$run/log/pki.log")"
}

sign_all() { # NODES
  local component node
  umask 077
  mkdir -p "$run/pki"
  cd "$run/pki"
  authority ca
  authority front-proxy-ca
  key service-accounts
  openssl ec -in service-accounts.key -pubout -out service-accounts.pub

  certificate apiserver ca /CN=kube-apiserver serverAuth "$(names_of_the_api)"
  certificate apiserver-kubelet-client ca /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
  certificate front-proxy-client front-proxy-ca /CN=front-proxy-client clientAuth
  certificate admin ca /O=system:masters/CN=admin clientAuth
  for component in kube-controller-manager kube-scheduler kube-proxy; do
    certificate "$component" ca "/CN=system:$component" clientAuth
    kubeconfig_of "$component" "$control_address:6443" >"$component.kubeconfig"
  done
  for node in $(node_names "$1"); do
    certificate "$node" ca "/O=system:nodes/CN=system:node:$node" serverAuth,clientAuth "DNS:$node,IP:$(node_address "$node")"
    kubeconfig_of "$node" "$control_address:6443" >"$node.kubeconfig"
  done
}

names_of_the_api() {
  local service=kubernetes.default.svc
  echo "DNS:kubernetes,DNS:kubernetes.default,DNS:$service,DNS:$service.$domain,DNS:localhost,IP:$api_service,IP:$control_address,IP:127.0.0.1"
}

key() { # NAME
  openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
}

authority() { # NAME
  key "$1"
  openssl req -x509 -new -key "$1.key" -days 365 -subj "/CN=$1" -out "$1.crt" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,digitalSignature
}

certificate() { # NAME AUTHORITY SUBJECT USAGE [NAMES]
  key "$1"
  openssl req -new -key "$1.key" -subj "$3" -out "$1.csr"
  {
    echo "basicConstraints = CA:FALSE"
    echo "keyUsage = critical, digitalSignature"
    echo "extendedKeyUsage = $4"
    [ -z "${5:-}" ] || echo "subjectAltName = $5"
  } >"$1.extensions"
  openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -CAcreateserial -days 365 -extfile "$1.extensions" -out "$1.crt"
}

# Runs in the folder of the certificates.
kubeconfig_of() { # NAME ADDRESS
  cat <<CONFIG
apiVersion: v1
kind: Config
clusters:
- name: wirelab-cluster
  cluster: {server: "https://$2", certificate-authority-data: $(base64 -w 0 ca.crt)}
users:
- name: $1
  user: {client-certificate-data: $(base64 -w 0 "$1.crt"), client-key-data: $(base64 -w 0 "$1.key")}
contexts:
- name: wirelab-cluster
  context: {cluster: wirelab-cluster, user: $1}
current-context: wirelab-cluster
CONFIG
}
