"""Runs the tzoo that the environment variable TZOO names, and says what it answered."""

import fcntl
import os
import platform
import pty
import struct
import subprocess
import sys
import termios
import unittest
from typing import NamedTuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

# The program itself, where a test sends signals, sets limits, preloads a library or reads the process's own numbers; that of
# TZOO may be a copy that a fork server runs.
PROGRAM = os.environ.get("TZOO_PROGRAM") or os.environ["TZOO"]
# Kernels that do not train in bfloat16, as those of ZOO_KERNELS.
WITHOUT_BFLOAT16 = "avx2" if platform.machine() == "x86_64" else "neon"


class Result(NamedTuple):
    code: int
    out: str
    err: str


def run(*args, stdin=None, **environment):
    """stdin: text or bytes, else nothing to read. Further keywords are environment variables."""
    data = stdin.encode() if isinstance(stdin, str) else stdin or b""
    done = subprocess.run(
        [os.environ["TZOO"], *map(str, args)],
        input=data,
        capture_output=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def on_terminal(columns, *args):
    """All that the command prints on a terminal of so many columns."""
    process, terminal = pty.fork()
    if process == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.execve(PROGRAM, ["tzoo", *args], {**os.environ, "TERM": "xterm"})
        finally:
            os._exit(127)  # else a copy of the tests would go on here
    printed = b""
    try:
        while data := os.read(terminal, 65536):
            printed += data
    except OSError:  # Linux's end of a terminal
        pass
    os.close(terminal)
    os.waitpid(process, 0)
    return printed.decode().replace("\r\n", "\n")


class CommandTest(unittest.TestCase):
    maxDiff = None

    def assert_one_error(self, result, code, *words):
        """The command ended with `code` and one error line that holds all the words."""
        self.assertEqual(result.code, code, result)
        errors = [line for line in result.err.split("\n") if line.startswith("error:")]
        self.assertEqual(len(errors), 1, result.err)
        for word in words:
            self.assertIn(word, errors[0])

    def succeed(self, *args, **keywords):
        """What the command printed; it must end well and complain about nothing."""
        result = run(*args, **keywords)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result.out
