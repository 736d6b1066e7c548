"""The command line of an endpoint that runs a web server: `describe` and `server --spec FILE`."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import contract
import site_spec
from contract import Failure

# Where Debian puts servers, which is not on every user's path.
PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


class Program:
    """A web server: its program, the Debian package that has it, and the pattern of its version in what `-v` prints."""

    def __init__(self, library, program, package, version):
        self.library, self.program, self.package, self.version = library, program, package, version

    def path(self):
        if (path := shutil.which(self.program, path=PATH)) is None:
            raise Failure("other", f"there is no program `{self.program}`; install {self.library} with "
                                   f"`apt-get install {self.package}`")
        return path

    def describe(self):
        said = subprocess.run([self.path(), "-v"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False).stdout
        if (version := re.search(self.version, said)) is None:
            raise Failure("other", f"`{self.program} -v` names no version: {said.strip()}")
        return {
            "contract": contract.VERSION,
            "name": os.path.basename(os.path.dirname(os.path.abspath(sys.argv[0]))),
            "library": self.library,
            "version": version[1],
            "language": "C",
            "server": {"protocols": list(site_spec.ALPN), "features": site_spec.FEATURES},
        }


def main(program, run):
    """`run` gets the site, the program's path, and a folder with links to what the spec names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["describe", "server"])
    parser.add_argument("--spec", metavar="FILE")
    arguments = parser.parse_args()
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
    site = site_spec.Site(contract.read_spec(spec))
    # Beside the spec: what is left behind when this process is killed goes with the rest of the run.
    beside = os.path.dirname(os.path.abspath(spec))
    with tempfile.TemporaryDirectory(prefix=f"{program.program}-", dir=beside) as folder:
        link(site, folder)
        run(site, program.path(), folder)


def link(site, folder):
    """Links with fixed names: configurations name what is in the folder, relative to it, and so have no path to quote."""
    documents = os.path.join(folder, "documents")
    if site.document_root is None:
        os.mkdir(documents)
    else:
        os.symlink(os.path.abspath(site.document_root), documents)
    if site.is_secure:
        os.symlink(os.path.abspath(site.certificate), os.path.join(folder, "certificate.pem"))
        os.symlink(os.path.abspath(site.key), os.path.join(folder, "key.pem"))
