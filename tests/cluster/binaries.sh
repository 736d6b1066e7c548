# Kubernetes, CoreDNS and the test's own programs: built once for each content of this module, in the user's cache.

# Prints the folder with the programs, and with archives of the images that are made of them in images/.
built() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/cluster folder lock
  folder=$cache/$(content)
  mkdir -p "$cache"
  exec {lock}>"$cache/lock"
  flock -n "$lock" || { say "waiting for another build" && flock "$lock"; }
  if [ ! -d "$folder" ]; then
    rm -rf "$cache"/*.building # of builds that were killed
    say "building Kubernetes, once, for some ten minutes up to an hour; the log: $cache/build.log"
    build "$cache" "$folder" >"$cache/build.log" 2>&1 ||
      fail "building Kubernetes failed: $(tail -n 3 "$cache/build.log"). The log: $cache/build.log"
  fi
  exec {lock}>&-
  echo "$folder"
}

# What the programs depend on, as one word.
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

# The version, as the components state it to each other.
link_flags() {
  local version minor package
  version=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' "$here/go.mod")
  minor=$(cut -d. -f2 <<<"$version")
  printf -- '-s -w'
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf ' -X %s' "$package.gitVersion=$version" "$package.gitMajor=1" "$package.gitMinor=$minor" "$package.gitTreeState=clean"
  done
}

# Shows the programs to the cluster at one path, in the machine and in the nodes, which have a /var and a /run of their own.
provide() { # FOLDER
  mkdir -p "$run/bin"
  mount -o bind,ro "$1" "$run/bin"
}

# Undoes all mounts of the cluster: the programs, and the files that hold network namespaces.
withdraw() {
  local place
  for place in $(awk -v run="$run/" 'index($5, run) == 1 { print $5 }' /proc/self/mountinfo | tac); do
    umount "$place" || fail "taking away the mount $place failed. Remedy: leave that folder, and repeat"
  done
}
