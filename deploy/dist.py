#!/usr/bin/env python3
"""Makes the files of a release from a built program: an archive, a Debian package, a bill of materials and checksums.

    wirelab-VERSION-ARCH.tar.gz    the program, manual pages, completions, schemas, licences
    wirelab_VERSION_ARCH.deb       the same in Debian's folders
    wirelab-VERSION-ARCH.cdx.json  the bill of materials (deploy/sbom.py)
    wirelab-VERSION-ARCH-image.tar the container image, if given
    SHA256SUMS                     checksums of the files above

The files depend on their contents alone: their times are those of SOURCE_DATE_EPOCH.

Example:

    deploy/dist.py target/release/wirelab target/dist --image target/image/wirelab.tar
"""

import argparse
import glob
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

# Names of an architecture in Debian and in targets of the compiler, by the machine in the header of an ELF file.
ARCHITECTURES = {62: ("amd64", "x86_64"), 183: ("arm64", "aarch64")}
TEXTS = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]
SCHEMAS = ["docs/report.schema.json", "contract/schema/*.json"]
# The shell, its file in the archive, and its file in a Debian system.
COMPLETIONS = [
    ("bash", "wirelab.bash", "usr/share/bash-completion/completions/wirelab"),
    ("zsh", "_wirelab", "usr/share/zsh/vendor-completions/_wirelab"),
    ("fish", "wirelab.fish", "usr/share/fish/vendor_completions.d/wirelab.fish"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program to pack, linked statically and stripped")
    parser.add_argument("out", help="the folder to fill; its contents are removed")
    parser.add_argument("--runs", metavar="PROGRAM", help="a wirelab that this machine can run, if it cannot run the other")
    parser.add_argument("--image", metavar="FILE", help="the container image to add")
    args = parser.parse_args()
    try:
        shutil.rmtree(args.out, ignore_errors=True)
        os.makedirs(args.out)
        release(args.program, os.path.abspath(args.runs or args.program), args.out, args.image)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except ValueError as error:
        parser.error(str(error))


def release(program, runs, out, image):
    debian, machine = architecture(program)
    headers = subprocess.run(["readelf", "--program-headers", program], stdout=subprocess.PIPE, check=True).stdout
    # The segment names the loader of shared libraries.
    if b"INTERP" in headers:
        raise ValueError(f"{program} needs shared libraries; link it with -C target-feature=+crt-static (`make dist`)")
    for folder in [os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo"), os.getcwd()]:
        if f"{folder}/".encode() in read(program):
            remedy = "build it with --remap-path-prefix (`make dist`)"
            raise ValueError(f"{program} names the folder {folder} of this machine; {remedy}")
    version = said(runs, "--version").split()[1]
    name = f"{out}/wirelab-{version}-{machine}"
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([runs, "man", "--out", f"{folder}/man"], check=True)
        pages = {os.path.basename(path): read(path) for path in glob.glob(f"{folder}/man/*.1")}
    schemas = {os.path.basename(path): read(path) for pattern in SCHEMAS for path in glob.glob(pattern)}
    texts = {path: read(path) for path in TEXTS}
    completions = {shell: said(runs, "completions", shell).encode() for shell, _, _ in COMPLETIONS}

    write_archive(f"{name}.tar.gz", os.path.basename(name), epoch, {
        "wirelab": (read(program), 0o755),
        **plain(texts),
        **plain(pages, "man/"),
        **plain(schemas, "schema/"),
        **plain({file: completions[shell] for shell, file, _ in COMPLETIONS}, "completions/"),
    })
    packed = {f"{page}.gz": gzip.compress(text, mtime=0) for page, text in pages.items()}
    changes = gzip.compress(texts["CHANGELOG.md"], mtime=0)
    licences = b"".join(texts[path] + b"\n" for path in ["LICENSE-MIT", "LICENSE-APACHE"])
    write_package(f"{out}/wirelab_{version}_{debian}.deb", version, debian, epoch, {
        "usr/bin/wirelab": (read(program), 0o755),
        **plain(packed, "usr/share/man/man1/"),
        **plain(schemas, "usr/share/wirelab/schema/"),
        **plain({file: completions[shell] for shell, _, file in COMPLETIONS}),
        **plain({"README.md": texts["README.md"], "copyright": licences, "changelog.gz": changes}, "usr/share/doc/wirelab/"),
    })
    with open(f"{name}.cdx.json", "wb") as file:
        sbom = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sbom.py")
        subprocess.run([sbom, f"{machine}-unknown-linux-gnu"], stdout=file, check=True)
    if image:
        shutil.copyfile(image, f"{name}-image.tar")
    files = sorted(os.listdir(out))
    with open(f"{out}/SHA256SUMS", "w") as sums:
        sums.writelines(f"{hashlib.sha256(read(f'{out}/{file}')).hexdigest()}  {file}\n" for file in files)


def architecture(program):
    """The architecture of a program, by Debian's name and the compiler's."""
    header = read(program)[:20]
    machine = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or machine not in ARCHITECTURES:
        raise ValueError(f"{program} is no program for {', '.join(name for _, name in ARCHITECTURES.values())}")
    return ARCHITECTURES[machine]


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def read(path):
    with open(path, "rb") as file:
        return file.read()


def plain(files, folder=""):
    return {folder + path: (content, 0o644) for path, content in files.items()}


def write_archive(path, top, epoch, files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, epoch
            tar.addfile(entry, io.BytesIO(content))
    with open(path, "wb") as file:
        file.write(gzip.compress(buffer.getvalue(), mtime=0))


def write_package(path, version, architecture, epoch, files):
    size = sum(len(content) for content, _ in files.values())
    control = f"""Package: wirelab
Version: {re.sub("-", "~", version)}
Architecture: {architecture}
Maintainer: wirelab <wirelab@localhost>
Installed-Size: {size // 1024}
Section: net
Priority: optional
Description: laboratory for web communication protocols
 Measures HTTP/1.1, HTTP/2, HTTP/3, gRPC and their transports side by side, with
 verdicts and intervals.
"""
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {name}\n" for name, (content, _) in sorted(files.items()))
    own = plain({"control": control.encode(), "md5sums": sums.encode()}, "DEBIAN/")
    with tempfile.TemporaryDirectory() as root:
        for name, (content, mode) in {**files, **own}.items():
            place = os.path.join(root, name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(content)
            os.chmod(place, mode)
        # Folders do not depend on the user's umask, nor the compressed blocks on the number of processors.
        for folder, _, _ in os.walk(root):
            os.chmod(folder, 0o755)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "DPKG_DEB_THREADS_MAX": "1"}
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, path],
                       stdout=subprocess.DEVNULL, env=environment, check=True)


if __name__ == "__main__":
    main()
