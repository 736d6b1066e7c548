#!/bin/sh
# build.sh NAME FOLDER LIBRARY...: the endpoint NAME, {installed}/endpoint, from the engine here and the C files of FOLDER.
#
# Headers, libraries and loader are those of the Debian suite below {installed}/debian (endpoints/_debian), which the program
# names by their paths: it starts without a launcher, and the machine's own C library may be older.
set -eu
name=$1 folder=$2
shift 2
tree=$WIRELAB_INSTALLED/debian engine=$(dirname "$0")
libraries=$(dirname "$(find "$tree" -name libc.so.6 -print -quit)")
loader=$(find "$libraries" -name 'ld-linux*.so.*' -print -quit)
# Debian's package of the file system's layout has these; the linker's scripts go by them.
for short in lib lib64; do
    [ -e "$tree/$short" ] || ln -s "usr/$short" "$tree/$short"
done
[ -e "$tree/usr/lib64" ] || ln -s lib "$tree/usr/lib64"

# Without -B the compiler would look in its own folders first, which are outside of the given root.
links=
for library in "$@"; do
    links="$links -l$library"
done
# shellcheck disable=SC2086
cc -std=gnu17 -O2 -D_GNU_SOURCE -Wall -Wextra -DENDPOINT="\"$name\"" --sysroot="$tree" -B"$libraries" -I"$engine" -o "$WIRELAB_INSTALLED/endpoint" \
    "$engine"/*.c "$folder"/*.c $links -ljson-c -lcrypto -lm -Wl,--allow-shlib-undefined \
    -Wl,--dynamic-linker="$loader" -Wl,--disable-new-dtags -Wl,-rpath,"$libraries"
