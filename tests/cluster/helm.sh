# Helm on this cluster, for the tests of the chart.

# Builds Helm beside the cluster's programs, if Go finds anything to do. Helm has a separate module, because it needs
# other versions of Kubernetes' libraries.
helm() {
  local program=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/cluster/helm
  [ -e "$program" ] || say "building Helm, once, for some minutes"
  (cd "$here/helm" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$program" helm.sh/helm/v4/cmd/helm) || fail "building Helm failed"
  HELM_CACHE_HOME=$run/helm HELM_CONFIG_HOME=$run/helm HELM_DATA_HOME=$run/helm KUBECACHEDIR=$run/kubectl \
    "$program" --kubeconfig "$kubeconfig" "$@"
}
