#!/usr/bin/env python3
"""Makes the image of a Containerfile as an archive, without a container engine.

The archive is an OCI image layout with a manifest.json for Docker, so that containerd, podman and docker load it. It
depends only on the Containerfile, the contents and modes of the copied files, and the architecture, not on the time,
place or user of the build. The script knows the instructions that copy files and set how the image runs; it refuses all
others.

Example:

    deploy/archive.py deploy/Containerfile target/image/context localhost/wirelab:dev target/image/wirelab.tar
"""

import argparse
import hashlib
import io
import json
import os
import platform
import sys
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
EPOCH = "1970-01-01T00:00:00Z"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("containerfile", help="the contents of the image, and how it runs")
    parser.add_argument("context", help="the folder that COPY takes files from")
    parser.add_argument("name", help="the name of the image, as pods ask for it")
    parser.add_argument("archive", help="the file to write")
    args = parser.parse_args()
    try:
        files, config = read(args.containerfile)
        layer = layer_of(files, args.context)
        write(args.archive, archive_of(layer, config, args.name))
    except OSError as error:
        sys.exit(f"{parser.prog}: {error}")
    except ValueError as error:
        parser.error(str(error))


def read(path):
    """Returns the copies of a Containerfile, {path in the image: path in the context}, and the image's configuration."""
    files, config = {}, {}
    with open(path) as file:
        instructions = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    for name, *rest in instructions:
        rest = rest[0].strip() if rest else ""
        match name:
            case "FROM" if rest == "scratch":
                pass
            case "COPY" if len(rest.split()) == 2 and not rest.startswith("--"):
                source, target = rest.split()
                files[target.lstrip("/")] = source
            case "ENV" if rest and all("=" in word for word in rest.split()):
                config.setdefault("Env", []).extend(rest.split())
            case "USER":
                config["User"] = rest
            case "ENTRYPOINT" if rest.startswith("["):
                config["Entrypoint"] = json.loads(rest)
            case _:
                known = "FROM scratch, COPY SOURCE PATH, ENV NAME=VALUE, USER and ENTRYPOINT [...]"
                raise ValueError(f"{path}: expected {known}, not `{name} {rest}`; others need a container engine")
    return files, config


def layer_of(files, context):
    """A tar file of the files and their parent folders, in order, all owned by root."""
    files = dict(each(files, context))
    folders = {folder for target in files for folder in folders_above(target)}
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(folders | set(files)):
            if path in folders:
                add(tar, path, None, 0o755)
            else:
                with open(files[path], "rb") as file:
                    add(tar, path, file.read(), 0o755 if os.access(files[path], os.X_OK) else 0o644)
    return layer.getvalue()


def each(files, context):
    """Every file, also those in folders: its path in the image, and its place on this machine."""
    for target, source in files.items():
        source = os.path.join(context, source)
        if not os.path.isdir(source):
            yield target, source
            continue
        for folder, _, names in os.walk(source):
            for path in [os.path.join(folder, name) for name in names]:
                yield os.path.join(target, os.path.relpath(path, source)), path


def folders_above(path):
    while path := os.path.dirname(path):
        yield path


def archive_of(layer, config, name):
    """The archive of an image with one layer."""
    blobs = {}

    def blob(content, kind):
        if not isinstance(content, bytes):
            content = json.dumps(content, sort_keys=True).encode()
        digest = hashlib.sha256(content).hexdigest()
        described = {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}
        blobs[path_of(described)] = content
        return described

    layer = blob(layer, "layer.v1.tar")
    config = blob(
        {
            "architecture": architecture(),
            "os": "linux",
            "created": EPOCH,
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
            "history": [{"created": EPOCH, "created_by": "deploy/archive.py"}],
        },
        "config.v1+json",
    )
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [layer]}
    entry = blob(manifest, "manifest.v1+json")
    # containerd reads the first name, podman the second.
    entry["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    blobs["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}, sort_keys=True).encode()
    docker = [{"Config": path_of(config), "RepoTags": [name], "Layers": [path_of(layer)]}]
    blobs["manifest.json"] = json.dumps(docker, sort_keys=True).encode()

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(blobs.items()):
            add(tar, name, content, 0o644)
    return archive.getvalue()


def path_of(blob):
    return "blobs/sha256/" + blob["digest"].removeprefix("sha256:")


def architecture():
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise ValueError(f"images have no known name for the architecture {machine}; known: {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[machine]


def add(tar, path, content, mode):
    """Adds a file, or without content a folder. Time and owner stay 0."""
    entry = tarfile.TarInfo(path)
    entry.mode = mode
    if content is None:
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    else:
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))


def write(path, content):
    """Replaces the file in one step, so that no reader sees half an archive."""
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
