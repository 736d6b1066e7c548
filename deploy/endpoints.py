#!/usr/bin/env python3
"""Fills a folder with installed endpoints and all that they need to run, for the image to copy (deploy/Containerfile).

    endpoints/NAME                                the folder of each endpoint, and those that it is built from
    cache/wirelab/endpoints/NAME/VERSION          what was installed
    usr/bin, usr/lib, ...                         programs that they are started with, what these need, and shared libraries

Programs and libraries are those of this machine's system, at the same paths. An endpoint whose program was installed brings it along;
one that is started by a program of the system, as Python, needs this one, and whatever else its manifest names. Of interpreters
only Python is known, because beside its program it has a library of modules; an image with others is built by a
container engine, from one of a distribution.

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

# Not those of the user: what these need need not be where the image's loader looks.
SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"
INSTALLED = "{installed}"
PYTHON = "python3"
# What has more than its program, and nobody here who knows what.
INTERPRETERS = ["node", "bun", "java", "dotnet"]
# What wirelab leaves out of the identity of an endpoint too.
LEFT_OUT = [".*", "__pycache__", "target"]
ELF = b"\x7fELF"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirelab", help="the program, which knows where endpoints are")
    parser.add_argument("root", help="the folder to fill; what is there is removed")
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
    """What wirelab says of each endpoint, by its name."""
    said = subprocess.run([wirelab, "endpoints", "--json"], stdout=subprocess.PIPE, check=True).stdout
    return {one["name"]: one for one in json.loads(said)}


def found(name, known):
    if (one := known.get(name)) is None:
        raise ValueError(f"there is no endpoint `{name}`; `wirelab endpoints` lists those that there are")
    if not one["installed"]:
        raise ValueError(f"the endpoint `{name}` cannot be used: {one['reason']}")
    if "install" not in one:
        raise ValueError(f"the endpoint `{name}` has no table [install], so that nobody could tell which version is in the image")
    return one


class Root:
    """The folder that becomes the root of the image."""

    def __init__(self, path):
        self.path = path

    def place(self, path):
        """Where a path of the image is now."""
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
            # Its three last names are those of the cache in the image too.
            place = one["install"]["place"]
            there = os.path.join("cache/wirelab", *place.split("/")[-3:])
            self.add_folder(os.path.join(place, "files"), f"{there}/files", left_out=[])
            shutil.copy(os.path.join(place, "installed.json"), self.place(there))
        program = manifest["command"][0]
        if INSTALLED in program or os.path.exists(os.path.join(folder, program)):
            return
        if program in INTERPRETERS:
            raise ValueError(f"the endpoint `{name}` is started by `{program}`, of which only a distribution knows what belongs to it; "
                             "build an image from one of these, with a container engine, and add the folders that this program makes")
        for needed in {program, *(need["program"] for need in manifest["install"].get("needs", []))}:
            self.add_program(needed, name)

    def add_folder(self, source, target, left_out=LEFT_OUT):
        """A folder with what links in it lead to in place of the links; those that lead nowhere are left out."""
        def without(folder, names):
            dangling = {name for name in names if not os.path.exists(os.path.join(folder, name))}
            return dangling | shutil.ignore_patterns(*left_out)(folder, names)

        shutil.copytree(source, self.place(target), ignore=without, dirs_exist_ok=True)

    def add_program(self, name, endpoint):
        """A program, or what else of the system a manifest names by its path."""
        if os.path.isdir(name):
            self.add_folder(name, name, left_out=[])
            return
        if (path := shutil.which(name, path=SYSTEM)) is None:
            raise ValueError(f"the endpoint `{endpoint}` needs `{name}`, which is not in {SYSTEM}; install the system's package of it")
        self.add_file(path)
        if name == PYTHON:
            ask = "import sysconfig; print(sysconfig.get_path('stdlib'))"
            modules = subprocess.run([path, "-c", ask], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
            # Compiled modules know when their source was changed, which in an image is at no time; `config-` is for building others.
            self.add_folder(modules, modules, left_out=["__pycache__", "test", "config-*"])

    def add_file(self, path):
        """A file at its path; what a link leads to in place of the link."""
        os.makedirs(os.path.dirname(self.place(path)), exist_ok=True)
        shutil.copy(os.path.realpath(path), self.place(path))

    def add_libraries(self):
        """The shared libraries of every program and library that is there."""
        files = [os.path.join(folder, name) for folder, _, names in os.walk(self.path) for name in names]
        # It fails for those that are linked statically, which need none.
        said = subprocess.run(["ldd", *filter(is_elf, files)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False).stdout
        if missing := re.search(r"(\S+) => not found", said):
            raise ValueError(f"the shared library {missing[1]} is needed, and not on this machine")
        for path in sorted(set(re.findall(r"(/\S+) \(0x", said))):
            if not os.path.abspath(path).startswith(os.path.abspath(self.path) + "/"):
                self.add_file(path)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(len(ELF)) == ELF


if __name__ == "__main__":
    main()
