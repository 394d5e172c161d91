"""Verdicts that the kinds of cases share."""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "apps"))
from test_hostile_json import NOT_OURS  # noqa: E402

EQUAL, REFUSED, NO_REFERENCE = "equal", "refused", "no reference"


def tzoo(*words, stdin=""):
    """Runs the program; texts go through bytes, so that no end of line is translated."""
    done = subprocess.run([os.environ["TZOO"], *map(str, words)], input=stdin.encode(), capture_output=True, timeout=300)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    check_ends_well(done)
    return done


def check_ends_well(done):
    """No signal, and after a failure one line of our own words."""
    assert done.returncode in (0, 1, 2), f"exit code {done.returncode}: {done.stderr}"
    for words in NOT_OURS:
        assert words not in done.stderr, done.stderr
    if done.returncode:
        assert len(re.findall("^error: ", done.stderr, re.MULTILINE)) == 1, done.stderr


def refused_by_name(done, *names):
    """For a run that may fail only because of one of `names`, which its message must then hold."""
    assert done.returncode == 1, done.stderr
    assert any(name in done.stderr for name in names), f"{done.stderr.strip()} names none of {', '.join(names)}"
    return REFUSED
