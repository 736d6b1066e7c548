# The requirements of the cluster, with a remedy for each.

# Lists all missing requirements at once.
require() {
  local lacks=() missing room
  [ "$(id -u)" -eq 0 ] || lacks+=("root, which namespaces, mounts and cgroups need. Remedy: sudo")
  missing=$("$here/missing-packages.sh")
  [ -z "$missing" ] || lacks+=("programs. Remedy: sudo apt-get install --no-install-recommends $(echo $missing); or tests/setup.sh cluster")
  command -v go >/dev/null || lacks+=("Go 1.26 or newer, which builds Kubernetes. Remedy: https://go.dev/dl/")
  [ -d "$(tracked)" ] || lacks+=("cgroups of version 2, or the controller pids of version 1, below /sys/fs/cgroup. Remedy: run on a dedicated machine, not in a container")
  [ ! -d "$(tracked)" ] || [ -w "$(tracked)" ] || lacks+=("permission to make cgroups below $(tracked). Remedy: run on a dedicated machine, not in a container")
  grep -qw overlay /proc/filesystems || modprobe -q overlay 2>/dev/null || lacks+=("overlayfs. Remedy: a kernel with it")
  room=$(df --output=avail --block-size=1M "$(dirname "$run")" | tail -n 1 | tr -d ' ')
  [ -e "$run" ] || [ "$room" -ge 1500 ] || lacks+=("1500 MiB in $(dirname "$run"), which has $room. Remedy: mount -o remount,size=3G $(dirname "$run")")
  if [ ${#lacks[@]} -gt 0 ]; then
    printf 'cluster: this machine lacks %s\n' "${lacks[@]}" >&2
    exit 1
  fi
}

# Fails if `built` would have to build.
require_built() {
  [ -d "${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/cluster/$(content)" ] ||
    fail "Kubernetes has not been built on this machine. Remedy: make cluster, once"
}
