"""A client that does what wirelab's own client does, and then lies about it. LIE says how."""

import json
import os
import subprocess
import sys


def main():
    arguments = sys.argv[1:]
    child = subprocess.Popen([os.environ["WIRELAB"], "endpoint", *arguments], stdout=subprocess.PIPE)
    if arguments == ["describe"]:
        print(json.dumps(json.load(child.stdout) | {"name": os.path.basename(os.getcwd())}))
        return child.wait()
    results = json.load(open(arguments[arguments.index("--spec") + 1]))["results"]
    lie = LIES[os.environ["LIE"]]
    for line in child.stdout:
        event = json.loads(line)
        if event["event"] == "end":
            window = event["window_ns"]
            event["window_ns"] = lie([], window)[1]
        if event["event"] == "done":
            told = lie([json.loads(line) for line in open(results)], window)[0]
            with open(results, "w") as file:
                file.writelines(json.dumps(sample) + "\n" for sample in told)
            event["requests"] = len(told)
        print(json.dumps(event), flush=True)
    return child.wait()


def none(samples, window):
    return samples, window


def shortens(samples, window):
    """All its times are 5 % shorter."""
    return [moved(sample, lambda ns: int(ns * 0.95)) for sample in samples], int(window * 0.95)


def hides(samples, window):
    """The slowest request of ten is not in its records."""
    slowest = sorted(samples, key=lambda sample: sample["last_byte_ns"] - sample["intended_ns"])
    return [sample for sample in samples if sample not in slowest[-(len(samples) + 9) // 10 :]], window


def shifts(samples, window):
    """Its requests begin 5 % earlier, and take as long as they did."""
    return [moved(sample, lambda ns, by=sample["intended_ns"] // 20: ns - by) for sample in samples], window


def moved(sample, move):
    return {name: move(value) if name.endswith("_ns") else value for name, value in sample.items()}


LIES = {lie.__name__: lie for lie in [none, shortens, hides, shifts]}

sys.exit(main())
