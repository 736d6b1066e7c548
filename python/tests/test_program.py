"""The program is started, interrupted and judged as on a command line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import wirelab

STUDY = Path(__file__).resolve().parents[2] / "studies/quick/study.toml"

# Notes each signal, and cleans up for longer than Python by itself waits after an interrupt.
PROGRAM = """
import signal, sys, time
from pathlib import Path

log = Path(sys.argv[0] + ".log")

def interrupted(*_):
    log.write_text(log.read_text() + "interrupt ")
    time.sleep(1)
    log.write_text(log.read_text() + "cleaned")
    sys.exit(130)

signal.signal(signal.SIGINT, interrupted)
log.write_text("ready ")
time.sleep(120)
"""


def test_a_list_has_several_levels_and_other_values_are_written_as_on_the_command_line(tmp_path):
    levels = {"protocol": ["h1", "h3"], "payload": "1 KiB", "no_delay": True, "workers": 4}
    run = wirelab.run("quick", lab="fake", preset="smoke", set=levels, out=tmp_path, frames="polars")
    assert set(run.trials("response_median")["protocol"]) == {"h1", "h3"}
    assert wirelab.open(run.folder).report["set"] == ["protocol=h1,h3", "payload=1 KiB", "no_delay=true", "workers=4"]


def test_a_requirement_that_is_not_met_raises_with_the_run(tmp_path):
    study = tmp_path / "strict.toml"
    study.write_text(STUDY.read_text() + '\n[[require]]\nthat = "p99 at most 1 us"\n')
    with pytest.raises(wirelab.RequirementNotMet, match="does not meet what is required") as raised:
        wirelab.run(study, lab="fake", set={"payload": "1 KiB", "connection": "new"}, out=tmp_path)
    assert {one["verdict"] for one in raised.value.run.report["requirements"]} == {"not_met"}


def test_an_interrupt_reaches_the_program_once_and_is_raised_after_its_end(tmp_path):
    program, log = tmp_path / "program", tmp_path / "program.log"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    code = "import wirelab\ntry: wirelab.run('quick')\nexcept KeyboardInterrupt: print('raised')"
    environment = {**os.environ, "WIRELAB": str(program), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE, start_new_session=True) as caller:
        while not (log.exists() and log.read_text()):
            assert caller.poll() is None
            time.sleep(0.01)
        # To the whole group, as a terminal does.
        os.killpg(caller.pid, signal.SIGINT)
        assert caller.communicate(timeout=120)[0] == "raised\n"
    assert log.read_text() == "ready interrupt cleaned"
