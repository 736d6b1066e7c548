# Builds Kubernetes, CoreDNS and the test's own programs into the user's cache, once for each content of this module.

# Prints the folder with the programs. Its subfolder images/ has the archives of their images.
built() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/cluster folder lock
  folder=$cache/$(content)
  mkdir -p "$cache"
  exec {lock}>"$cache/lock"
  flock -n "$lock" || { say "waiting for another build" && flock "$lock"; }
  if [ ! -d "$folder" ]; then
    rm -rf "$cache"/*.building # from killed builds
    say "building Kubernetes, once; this takes ten minutes to an hour; the log: $cache/build.log"
    build "$cache" "$folder" >"$cache/build.log" 2>&1 ||
      fail "building Kubernetes failed: $(tail -n 3 "$cache/build.log"). The log: $cache/build.log"
  fi
  exec {lock}>&-
  echo "$folder"
}

# A hash of all inputs of the programs.
content() {
  local root=$here/../..
  {
    go version
    cd "$root" && find tests/cluster/{go.mod,go.sum,binaries.sh,cmd} deploy/archive.py -type f | sort | xargs sha256sum
  } | sha256sum | cut -c1-16
}

build() { # CACHE FOLDER
  local building name
  building=$(mktemp --directory --tmpdir="$1" --suffix=.building)
  (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "$(link_flags)" -o "$building/" ./cmd/...) &&
    mkdir "$building/images" &&
    for name in coredns pause web; do
      "$here/../../deploy/archive.py" "$here/cmd/$name/Containerfile" "$building" "localhost/$name:1" "$building/images/$name.tar" || return
    done &&
    mv "$building" "$2"
}

# The version that the components report to each other.
link_flags() {
  local version minor package
  version=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' "$here/go.mod")
  minor=$(cut -d. -f2 <<<"$version")
  printf -- '-s -w'
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf ' -X %s' "$package.gitVersion=$version" "$package.gitMajor=1" "$package.gitMinor=$minor" "$package.gitTreeState=clean"
  done
}

# Mounts the programs at one path for the machine and the nodes, because each node has a separate /var and /run.
provide() { # FOLDER
  mkdir -p "$run/bin"
  mount -o bind,ro "$1" "$run/bin"
}

# Removes all mounts of the cluster: the programs, and the files that hold network namespaces.
withdraw() {
  local place
  for place in $(awk -v run="$run/" 'index($5, run) == 1 { print $5 }' /proc/self/mountinfo | tac); do
    umount "$place" || fail "removing the mount $place failed. Remedy: leave that folder, and repeat"
  done
}
