#!/usr/bin/env python3
"""Prints a software bill of materials of wirelab's program: CycloneDX 1.5, as JSON.

Components are the crates of the program and their dependencies for one platform, from cargo's metadata. Their digests
are those of Cargo.lock. Crates for builds and tests are no part of the program. The time is SOURCE_DATE_EPOCH.

Example:

    deploy/sbom.py x86_64-unknown-linux-gnu > wirelab.cdx.json
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tomllib

PROGRAM = "wirelab"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platform", help="the target of the compiler, such as x86_64-unknown-linux-gnu")
    args = parser.parse_args()
    try:
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", args.platform]
        said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        with open("Cargo.lock", "rb") as file:
            locked = tomllib.load(file)["package"]
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{parser.prog}: {error}")
    json.dump(bill(json.loads(said), locked), sys.stdout, indent=1)
    print()


def bill(metadata, locked):
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    digests = {(package["name"], package["version"]): package.get("checksum") for package in locked}
    root = next(package["id"] for package in packages.values() if package["name"] == PROGRAM)
    edges = {}
    todo = [root]
    while todo:
        one = todo.pop()
        if one in edges:
            continue
        edges[one] = [dep["pkg"] for dep in nodes[one]["deps"]
                      if any(kind["kind"] is None for kind in dep["dep_kinds"]) and not is_macro(packages[dep["pkg"]])]
        todo.extend(edges[one])
    reference = {one: f"pkg:cargo/{packages[one]['name']}@{packages[one]['version']}" for one in edges}

    def component(one, kind):
        package = packages[one]
        found = {"type": kind, "bom-ref": reference[one], "name": package["name"], "version": package["version"],
                 "purl": reference[one]}
        if digest := digests.get((package["name"], package["version"])):
            found["hashes"] = [{"alg": "SHA-256", "content": digest}]
        if licence := package.get("license"):
            # Old manifests separate alternatives by a slash, which SPDX does not know.
            found["licenses"] = [{"expression": re.sub(r" */ *", " OR ", licence)}]
        return found

    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.UTC)
    ordered = sorted(edges, key=reference.get)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": component(root, "application")},
        "components": [component(one, "library") for one in ordered if one != root],
        "dependencies": [{"ref": reference[one], "dependsOn": sorted({reference[dep] for dep in edges[one]})}
                         for one in ordered],
    }


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


if __name__ == "__main__":
    main()
