# Processes of the cluster. Each is in a cgroup of the cluster, or in one below it. `down` therefore finds all of them
# after any end of the script that started them, and never mistakes a process with a reused id for one of them.

# The mount points of cgroups: one with version 2, one for each controller with version 1.
hierarchies() {
  local folder
  if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
    echo /sys/fs/cgroup
    return
  fi
  for folder in /sys/fs/cgroup/*/; do
    case $(stat -fc %T "$folder") in
      cgroupfs | cgroup2fs) echo "${folder%/}" ;;
    esac
  done
}

# The hierarchy that tracks processes.
tracked() {
  if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then echo /sys/fs/cgroup; else echo /sys/fs/cgroup/pids; fi
}

# Makes a cgroup in every hierarchy. The cgroup of a node is the root of the cgroups of its pods.
make_group() { # GROUP
  local hierarchy folder
  for hierarchy in $(hierarchies); do
    folder=$hierarchy/$1
    mkdir -p "$folder" || fail "making the cgroup $folder failed. Remedy: run outside a container"
    if [ "$hierarchy" = /sys/fs/cgroup ]; then
      delegate "$(dirname "$folder")"
      delegate "$folder"
    elif [ -f "$folder/cpuset.cpus" ]; then
      # Version 1: no process can enter the cgroup before these files have values.
      cat "$folder/../cpuset.cpus" >"$folder/cpuset.cpus"
      cat "$folder/../cpuset.mems" >"$folder/cpuset.mems"
    fi
  done
}

# Version 2: gives the children of a cgroup its controllers. The kubelet reports controllers that it misses.
delegate() { # FOLDER
  local controller
  for controller in $(<"$1/cgroup.controllers"); do
    echo "+$controller" 2>/dev/null >"$1/cgroup.subtree_control" || true
  done
}

# Puts this process, and so all its children, into a cgroup.
enter_group() { # GROUP
  local folder
  folder=$(tracked)/$1
  mkdir -p "$folder"
  echo "$BASHPID" >"$folder/cgroup.procs"
}

# Starts a process in a cgroup of the cluster, with a log file.
start() { # GROUP NAME COMMAND...
  local of=$1 name=$2
  shift 2
  (
    enter_group "$of"
    exec setsid "$@"
  ) >>"$run/log/$name.log" 2>&1 </dev/null &
  echo $! >"$run/pid/$name"
}

# Repeats a command until it succeeds. Gives up after two minutes, or when the named process has ended.
await() { # NAME WHAT COMMAND...
  local name=$1 what=$2 answer deadline=$((SECONDS + 120))
  shift 2
  until answer=$("$@" 2>&1); do
    if ! kill -0 "$(<"$run/pid/$name")" 2>/dev/null; then
      fail "waiting for $what: $name ended. The last lines of $run/log/$name.log: $(tail -n 3 "$run/log/$name.log")"
    fi
    ((SECONDS < deadline)) || fail "waiting for $what: no success in two minutes; last: $answer. The log: $run/log/$name.log"
    sleep 0.1
  done
}

# Every process in a cgroup and in those below it.
processes_in() { # GROUP
  find "$(tracked)/$1" -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

# Kills all processes of a cgroup, and waits for their end.
kill_group() { # GROUP
  [[ $1 == "$group"* ]] || fail "not a cgroup of the cluster: $1"
  local processes deadline=$((SECONDS + 30))
  while processes=$(processes_in "$1") && [ -n "$processes" ]; do
    ((SECONDS < deadline)) || fail "these processes do not end: $(echo $processes)"
    kill -9 $processes 2>/dev/null || true # some processes have ended meanwhile
    sleep 0.05
  done
}

# Removes the cgroup of the cluster and all cgroups below it. The kernel needs a moment after the last process.
remove_group() {
  local hierarchy deadline=$((SECONDS + 30))
  for hierarchy in $(hierarchies); do
    while [ -d "$hierarchy/$group" ]; do
      find "$hierarchy/$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
      ((SECONDS < deadline)) || fail "the cgroup $hierarchy/$group cannot be removed: $(rmdir "$hierarchy/$group" 2>&1)"
      sleep 0.05
    done
  done
}
