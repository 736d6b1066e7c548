#!/usr/bin/env python3
"""Fills a folder with installed endpoints and their dependencies, for the image to copy (deploy/Containerfile).

    endpoints/NAME                                the folder of each endpoint, and the folders that it is built from
    cache/wirelab/endpoints/NAME/VERSION          the installed files
    usr/bin, usr/lib, ...                         programs that start endpoints, their dependencies, shared libraries

Programs and libraries come from this machine's system, and keep their paths. An endpoint with an installed program
brings this program along. An endpoint that a program of the system starts, such as Python, needs that program and the
other programs in its manifest. Python is the only known interpreter: its library of modules is copied too. For other
interpreters, build the image with a container engine, from the image of a distribution.

Example:

    deploy/endpoints.py target/release/wirelab target/image/context/root envoy go-grpc-xds
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

# Not the user's programs: the image's loader might not find their libraries.
SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"
INSTALLED = "{installed}"
PYTHON = "python3"
# Interpreters that consist of more files than their program; the list of these files is unknown here.
INTERPRETERS = ["node", "bun", "java", "dotnet"]
# wirelab omits these files from the identity of an endpoint too.
LEFT_OUT = [".*", "__pycache__", "target"]
ELF = b"\x7fELF"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirelab", help="the program wirelab, which lists the endpoints")
    parser.add_argument("root", help="the folder to fill; its contents are removed")
    parser.add_argument("names", nargs="*", metavar="NAME", help="an endpoint; none: the folder stays empty")
    args = parser.parse_args()
    try:
        shutil.rmtree(args.root, ignore_errors=True)
        os.makedirs(args.root)
        known = listed(args.wirelab) if args.names else {}
        root = Root(args.root)
        for name in args.names:
            root.add_endpoint(found(name, known))
        root.add_libraries()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except ValueError as error:
        parser.error(str(error))


def listed(wirelab):
    """The entries of `wirelab endpoints --json`, by name."""
    said = subprocess.run([wirelab, "endpoints", "--json"], stdout=subprocess.PIPE, check=True).stdout
    return {one["name"]: one for one in json.loads(said)}


def found(name, known):
    if (one := known.get(name)) is None:
        raise ValueError(f"unknown endpoint `{name}`; `wirelab endpoints` lists all endpoints")
    if not one["installed"]:
        raise ValueError(f"the endpoint `{name}` cannot be used: {one['reason']}")
    if "install" not in one:
        raise ValueError(f"the endpoint `{name}` has no table [install], so the version in the image would be unknown")
    return one


class Root:
    """The folder that becomes the root of the image."""

    def __init__(self, path):
        self.path = path

    def place(self, path):
        """The place of a path of the image on this machine."""
        return os.path.join(self.path, path.lstrip("/"))

    def add_endpoint(self, one):
        name, folder = one["name"], one["folder"]
        with open(os.path.join(folder, "endpoint.toml"), "rb") as file:
            manifest = tomllib.load(file)
        for other in [".", *manifest["install"].get("with", [])]:
            source = os.path.normpath(os.path.join(folder, other))
            if os.path.dirname(source) != os.path.dirname(folder):
                raise ValueError(f"the endpoint `{name}` is built from {source}, which is not beside its folder")
            self.add_folder(source, f"endpoints/{os.path.basename(source)}")
        if manifest["install"].get("steps"):
            # The cache in the image has the same last three folders.
            place = one["install"]["place"]
            there = os.path.join("cache/wirelab", *place.split("/")[-3:])
            self.add_folder(os.path.join(place, "files"), f"{there}/files", left_out=[])
            shutil.copy(os.path.join(place, "installed.json"), self.place(there))
        program = manifest["command"][0]
        if INSTALLED in program or os.path.exists(os.path.join(folder, program)):
            return
        if program in INTERPRETERS:
            raise ValueError(f"the endpoint `{name}` needs the interpreter `{program}`, whose files only a distribution "
                             "knows; build an image from a distribution with a container engine, and add the folders that "
                             "this script makes")
        for needed in {program, *(need["program"] for need in manifest["install"].get("needs", []))}:
            self.add_program(needed, name)

    def add_folder(self, source, target, left_out=LEFT_OUT):
        """Copies a folder. Links become copies of their targets; dangling links are omitted."""
        def without(folder, names):
            dangling = {name for name in names if not os.path.exists(os.path.join(folder, name))}
            return dangling | shutil.ignore_patterns(*left_out)(folder, names)

        shutil.copytree(source, self.place(target), ignore=without, dirs_exist_ok=True)

    def add_program(self, name, endpoint):
        """Copies a program of the system, or a folder that a manifest names by its path."""
        if os.path.isdir(name):
            self.add_folder(name, name, left_out=[])
            return
        if (path := shutil.which(name, path=SYSTEM)) is None:
            raise ValueError(f"the endpoint `{endpoint}` needs `{name}`, which is not in {SYSTEM}; install its package")
        self.add_file(path)
        if name == PYTHON:
            ask = "import sysconfig; print(sysconfig.get_path('stdlib'))"
            modules = subprocess.run([path, "-c", ask], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
            # Compiled modules contain the modification time of their source, and an image has no times. `config-` is
            # for building other modules.
            self.add_folder(modules, modules, left_out=["__pycache__", "test", "config-*"])

    def add_file(self, path):
        """Copies a file to its path. A link becomes a copy of its target."""
        os.makedirs(os.path.dirname(self.place(path)), exist_ok=True)
        shutil.copy(os.path.realpath(path), self.place(path))

    def add_libraries(self):
        """Copies the shared libraries of every program and library in the folder."""
        files = [os.path.join(folder, name) for folder, _, names in os.walk(self.path) for name in names]
        # ldd fails for statically linked programs, which need no libraries.
        said = subprocess.run(["ldd", *filter(is_elf, files)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False).stdout
        if missing := re.search(r"(\S+) => not found", said):
            raise ValueError(f"this machine lacks the shared library {missing[1]}, which an endpoint needs")
        for path in sorted(set(re.findall(r"(/\S+) \(0x", said))):
            if not os.path.abspath(path).startswith(os.path.abspath(self.path) + "/"):
                self.add_file(path)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(len(ELF)) == ELF


if __name__ == "__main__":
    main()
