#!/usr/bin/env bash
# http3.sh FOLDER: h2load and nginx with HTTP/3 on Debian, as FOLDER/bin/h2load-http3 and FOLDER/bin/nginx-http3. nginx, a
# compiler and the libraries come from Debian sid, unpacked into FOLDER. h2load is built there, because Debian's own is not
# linked with ngtcp2. It takes some minutes and 700 MB, and no rights but those to make a user namespace.
set -euo pipefail
folder=$1
version=1.70.0
digest=aa317e2cf9dca6afa0aed68f8fad6ff303ec6982e25a78c75c0b65e2b9b3ded5
here=$(cd "$(dirname "$0")" && pwd)
tree=$folder/sid/debian
[ -x "$folder/bin/h2load-http3" ] && [ -x "$folder/bin/nginx-http3" ] && exit 0

mkdir -p "$folder/bin" "$folder/sid" "$folder/fetched"
WIRELAB_WORK=$folder/fetched WIRELAB_INSTALLED=$folder/sid sh "$here/../../endpoints/_debian/fetch.sh" sid usr/sbin/nginx nginx-light \
  g++ cmake ninja-build pkgconf dash bash coreutils base-files binutils libc6-dev \
  libngtcp2-dev libngtcp2-crypto-ossl-dev libnghttp3-dev libssl-dev libev-dev libc-ares-dev zlib1g-dev

. /etc/os-release
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Component: main' "Release: ${VERSION_CODENAME:-}" | head -n 1)
curl --fail --silent --show-error --retry 3 -o "$folder/fetched/nghttp2.tar.gz" "${mirror%/}/pool/main/n/nghttp2/nghttp2_$version.orig.tar.gz"
echo "$digest  $folder/fetched/nghttp2.tar.gz" | sha256sum --check --quiet
mkdir -p "$tree/build"
tar -xzf "$folder/fetched/nghttp2.tar.gz" -C "$tree/build" --strip-components 1
# The compiler of sid runs with the libraries of sid, so the unpacked tree is its root. The mounts vanish with the namespace.
export tree
unshare --map-root-user --mount sh -ec '
  mount --rbind /dev "$tree/dev"
  mount --rbind /proc "$tree/proc"
  exec chroot "$tree" /usr/bin/env -i PATH=/usr/bin:/usr/sbin nice sh -ec "
    cd /build
    cmake -G Ninja -B out -DCMAKE_BUILD_TYPE=Release -DENABLE_APP=ON -DENABLE_HTTP3=ON -DENABLE_HPACK_TOOLS=OFF \
      -DENABLE_EXAMPLES=OFF -DENABLE_DOC=OFF -DBUILD_TESTING=OFF .
    ninja -C out h2load"'
cp "$tree/build/out/src/h2load" "$tree/usr/bin/h2load-http3"

# fetch.sh made a launcher for nginx, with the loader and the libraries of sid.
for program in usr/bin/h2load-http3 usr/sbin/nginx; do
  name=${program##*/}
  sed -e "s|^here=.*|here=$folder/sid|" -e "s|debian/usr/sbin/nginx|debian/$program|" "$folder/sid/nginx" > "$folder/bin/${name%-http3}-http3"
  chmod +x "$folder/bin/${name%-http3}-http3"
done
