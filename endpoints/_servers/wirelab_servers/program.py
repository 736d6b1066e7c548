"""The command line of an endpoint that runs a web server: `describe` and `server --spec FILE`."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from wirelab_endpoint import contract
from wirelab_endpoint.contract import Failure
from wirelab_servers import site_spec

# Debian's folders of servers, which are not on every user's path.
PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"

# An endpoint's name is that of its folder.
NAME = os.path.basename(os.path.dirname(os.path.abspath(sys.argv[0])))


class Program:
    """A web server: its program, the command for its version, and the fields of a spec that it honours."""

    def __init__(self, library, program, honours, version, ask=("-v",), language="C", features=site_spec.FEATURES):
        """`version`: the pattern of the version in the answer. `honours`, `features`: see site_spec."""
        self.library, self.program, self.honours = library, program, honours
        self.version, self.ask, self.language, self.features = version, ask, language, features

    def path(self):
        if (path := shutil.which(self.program, path=PATH)) is None:
            raise Failure("other", f"there is no program `{self.program}`; `wirelab endpoints install {NAME}` "
                                   "says what is missing")
        return path

    def describe(self):
        said = subprocess.run([self.path(), *self.ask], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False).stdout
        if (version := re.search(self.version, said)) is None:
            raise Failure("other", f"`{self.program} {' '.join(self.ask)}` names no version: {said.strip()}")
        return {
            "contract": contract.VERSION,
            "name": NAME,
            "library": self.library,
            "version": version[1],
            "language": self.language,
            "server": {"protocols": list(self.honours), "features": self.features},
        }


def main(program, run):
    """`run` gets the site, the program's path, and a folder with links to what the spec names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", help="where the server's program was installed; absent: it is looked for")
    parser.add_argument("role", choices=["describe", "server"])
    parser.add_argument("--spec", metavar="FILE")
    arguments = parser.parse_args()
    program.program = arguments.program or program.program
    if arguments.role == "describe":
        try:
            print(json.dumps(program.describe()))
        except Failure as failure:
            sys.exit(str(failure))
    elif arguments.spec is None:
        parser.error("--spec FILE is missing")
    else:
        contract.conduct(lambda: serve(program, run, arguments.spec))


def serve(program, run, spec):
    site = site_spec.Site(contract.read_spec(spec), program.honours, program.features)
    # Beside the spec: if this process is killed, the folder is removed with the rest of the run.
    beside = os.path.dirname(os.path.abspath(spec))
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-", dir=beside) as folder:
        link(site, folder)
        run(site, program.path(), folder)


def link(site, folder):
    """Links with fixed names: configurations name the files relative to the folder, and so have no path to quote."""
    documents = os.path.join(folder, "documents")
    if site.document_root is None:
        os.mkdir(documents)
    else:
        os.symlink(os.path.abspath(site.document_root), documents)
    if site.is_secure:
        os.symlink(os.path.abspath(site.certificate), os.path.join(folder, "certificate.pem"))
        os.symlink(os.path.abspath(site.key), os.path.join(folder, "key.pem"))
