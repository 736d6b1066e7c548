"""An endpoint of wirelab: HTTP/1.1, in clear text (h1c) and over TLS 1.3 (h1). Entry point; see README.md."""

import argparse
import json
import os
import platform

import client
import contract
import server

# CHANGE: what your library speaks, and which features server.py answers and client.py can ask for; contract/README.md has all of them.
ABILITIES = {"protocols": ["h1c", "h1"], "features": ["files", "echo", "bytes", "delay"]}


def describe():
    folder = os.path.dirname(os.path.abspath(__file__))
    print(json.dumps({
        "contract": contract.VERSION,
        "name": os.path.basename(folder),
        "library": "http.client, http.server",  # CHANGE: the library that is measured ...
        "version": platform.python_version(),  # ... and its version, asked of the library, not written down.
        "language": "Python",
        "server": ABILITIES,  # leave out a role that you do not play
        "client": ABILITIES,
    }))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["describe", "server", "client"])
    parser.add_argument("--spec", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.role == "describe":
        describe()
    elif arguments.spec is None:
        parser.error("--spec FILE is missing")
    else:
        role = server if arguments.role == "server" else client
        contract.conduct(lambda: role.run(contract.read_spec(arguments.spec), ABILITIES))


if __name__ == "__main__":
    main()
