"""Writes `requirements.txt` of an endpoint: exact versions with the digests of the wheels for common machines.

    python3 lock.py ../python-NAME 'package==version' ...

Nothing but digests is written: pip finds the files by whatever registry it is configured for.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

PYTHONS = ["3.11", "3.12", "3.13"]
MACHINES = ["x86_64", "aarch64"]
GLIBCS = ["2014", "_2_28", "_2_34"]  # of manylinux


def resolve(packages, python, machine):
    """(name, version, digest) of every package that pip would install."""
    platforms = [word for glibc in GLIBCS for word in ("--platform", f"manylinux{glibc}_{machine}")]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
                        "--report", report, "--target", folder, "--only-binary", ":all:", "--python-version", python,
                        "--implementation", "cp", *platforms, *packages], check=True)
        for item in json.loads(report.read_text(encoding="utf-8"))["install"]:
            yield (item["metadata"]["name"].lower(), item["metadata"]["version"],
                   item["download_info"]["archive_info"]["hashes"]["sha256"])


def main(folder, packages):
    digests, names = {}, [package.partition("==")[0].partition("[")[0].lower() for package in packages]
    for python in PYTHONS:
        for machine in MACHINES:
            for name, version, digest in resolve(packages, python, machine):
                digests.setdefault((name, version), set()).add(digest)
    versions = {}
    for name, version in digests:
        if versions.setdefault(name, version) != version:
            sys.exit(f"{name} has several versions: {versions[name]} and {version}; name one of them")
    lines = []
    for (name, version), all_of_it in sorted(digests.items(), key=lambda item: (item[0][0] not in names, item[0])):
        lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{one}" for one in sorted(all_of_it))]))
    pathlib.Path(folder, "requirements.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
