"""The command line of an endpoint: `describe`, `server --spec FILE`, `client --spec FILE`."""

import argparse
import importlib
import importlib.metadata
import json
import os
import sys

from wirelab_endpoint import contract


def main(library, packages, **roles):
    """`packages`: the library's packages; the installation reports their versions. `roles`: name to (module with
    `run(spec)`, protocols, features); a module is imported only where its role is played."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["describe", *roles])
    parser.add_argument("--spec", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.role == "describe":
        print(json.dumps({
            "contract": contract.VERSION,
            "name": os.path.basename(os.path.dirname(os.path.abspath(sys.argv[0]))),
            "library": library,
            "version": ", ".join(f"{package} {importlib.metadata.version(package)}" if len(packages) > 1
                                 else importlib.metadata.version(package) for package in packages),
            "language": "Python",
            **{role: {"protocols": protocols, "features": features}
               for role, (_, protocols, features) in roles.items()},
        }))
    elif arguments.spec is None:
        parser.error("--spec FILE is missing")
    else:
        module = roles[arguments.role][0]
        contract.conduct(lambda: importlib.import_module(module).run(contract.read_spec(arguments.spec)))
