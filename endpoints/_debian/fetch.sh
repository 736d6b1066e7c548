#!/bin/sh
# fetch.sh SUITE PROGRAM PACKAGE...: PROGRAM from the packages of another Debian suite, for an endpoint's installation.
#
# It needs no rights and changes nothing on the machine: apt downloads the packages and their dependencies into {work},
# with folders of its own and as if nothing were installed, and checks the suite's signature; they are unpacked below
# {installed}; {installed}/NAME starts the program with the libraries that came with it. A second run goes on where the
# first one stopped.
set -eu
suite=$1 program=$2
shift 2
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
apt=$WIRELAB_WORK/apt tree=$WIRELAB_INSTALLED/debian

fail() {
    echo "$1" >&2
    exit 1
}

. /etc/os-release
[ -f "$keyring" ] || fail "the keys of Debian are missing: apt-get install debian-archive-keyring"
# The mirror that this machine itself uses for its own suite.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Component: main' "Release: ${VERSION_CODENAME:-}" |
    head -n 1)
[ -n "$mirror" ] || fail "apt's sources on this machine name no mirror of Debian ${VERSION_CODENAME:-} main, from which $suite could be had"

mkdir -p "$apt/etc" "$apt/lists/partial" "$apt/archives/partial" "$tree"
: > "$apt/status"
echo "deb [signed-by=$keyring] $mirror $suite main" > "$apt/etc/sources.list"
private() {
    apt-get -qq -o Dir::Etc::SourceList="$apt/etc/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
        -o Dir::State="$apt" -o Dir::State::Lists="$apt/lists" -o Dir::State::Status="$apt/status" \
        -o Dir::Cache="$apt" -o Dir::Cache::Archives="$apt/archives" \
        -o APT::Sandbox::User="$(id -un)" -o APT::Get::List-Cleanup=false -o Acquire::Languages=none "$@"
}
private update
private install --yes --download-only --no-install-recommends "$@"
for package in "$apt"/archives/*.deb; do
    dpkg-deb --extract "$package" "$tree"
done

# The loader and the libraries are those of the suite: the machine's own may be too old for the program.
libraries=$(dirname "$(find "$tree" -name libc.so.6 -print -quit)")
loader=$(find "$libraries" -name 'ld-linux*.so.*' -print -quit)
[ -x "$tree/$program" ] && [ -x "$loader" ] || fail "the packages $* of $suite have no $program, or no loader"
cat > "$WIRELAB_INSTALLED/${program##*/}" << END
#!/bin/sh
here=\${0%/*}
OPENSSL_CONF="\${OPENSSL_CONF:-\$here/debian/etc/ssl/openssl.cnf}" \\
    exec "\$here${loader#"$WIRELAB_INSTALLED"}" --library-path "\$here${libraries#"$WIRELAB_INSTALLED"}" \\
    "\$here/debian/$program" "\$@"
END
chmod +x "$WIRELAB_INSTALLED/${program##*/}"
