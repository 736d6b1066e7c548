# Processes of the cluster. Each is in a cgroup of ours, or in one below it: so all are found, whatever became of the script that
# started them, and none is mistaken for another that got its number.

# Where cgroups are mounted: one place with version 2, one for each controller with version 1.
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

# The one by which processes are found.
tracked() {
  if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then echo /sys/fs/cgroup; else echo /sys/fs/cgroup/pids; fi
}

# Makes a cgroup in every hierarchy; one of a node is the root of the cgroups of its pods.
make_group() { # GROUP
  local hierarchy folder
  for hierarchy in $(hierarchies); do
    folder=$hierarchy/$1
    mkdir -p "$folder" || fail "making the cgroup $folder failed. Remedy: run where cgroups can be made, not in a container"
    if [ "$hierarchy" = /sys/fs/cgroup ]; then
      delegate "$(dirname "$folder")"
      delegate "$folder"
    elif [ -f "$folder/cpuset.cpus" ]; then
      # Version 1: no process can be in it before it is filled.
      cat "$folder/../cpuset.cpus" >"$folder/cpuset.cpus"
      cat "$folder/../cpuset.mems" >"$folder/cpuset.mems"
    fi
  done
}

# Version 2: the children of a cgroup get the controllers that it has. What cannot be given the kubelet misses, and says so.
delegate() { # FOLDER
  local controller
  for controller in $(<"$1/cgroup.controllers"); do
    echo "+$controller" 2>/dev/null >"$1/cgroup.subtree_control" || true
  done
}

# Puts this process, and so all that it starts, into a cgroup.
enter_group() { # GROUP
  local folder
  folder=$(tracked)/$1
  mkdir -p "$folder"
  echo "$BASHPID" >"$folder/cgroup.procs"
}

# Starts a process in a cgroup of ours, with a log of its own.
start() { # GROUP NAME COMMAND...
  local of=$1 name=$2
  shift 2
  (
    enter_group "$of"
    exec setsid "$@"
  ) >>"$run/log/$name.log" 2>&1 </dev/null &
  echo $! >"$run/pid/$name"
}

# Asks until the command succeeds. Gives up when the process that it waits for has ended, or after two minutes.
await() { # NAME WHAT COMMAND...
  local name=$1 what=$2 answer deadline=$((SECONDS + 120))
  shift 2
  until answer=$("$@" 2>&1); do
    if ! kill -0 "$(<"$run/pid/$name")" 2>/dev/null; then
      fail "waiting for $what: $name ended. The last words of $run/log/$name.log: $(tail -n 3 "$run/log/$name.log")"
    fi
    ((SECONDS < deadline)) || fail "waiting for $what: nothing for two minutes; last: $answer. The log: $run/log/$name.log"
    sleep 0.1
  done
}

# Every process in a cgroup and in those below it.
processes_in() { # GROUP
  find "$(tracked)/$1" -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

# Kills them all, and waits until they are gone.
kill_group() { # GROUP
  [[ $1 == "$group"* ]] || fail "not a cgroup of the cluster: $1"
  local processes deadline=$((SECONDS + 30))
  while processes=$(processes_in "$1") && [ -n "$processes" ]; do
    ((SECONDS < deadline)) || fail "these processes do not end: $(echo $processes)"
    kill -9 $processes 2>/dev/null || true # some have ended meanwhile
    sleep 0.05
  done
}

# Removes the cgroup of the cluster with all below it. The kernel needs a moment after the last process.
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
