"""The runner of the tests itself: what a forked copy is given and gives back, and the shares of tests.

    test_runner.py FORK_SERVER FORKED PROGRAM      libfork_server.so, forked_tzoo and the program that it runs
"""

import collections
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import times

FORK_SERVER, FORKED, PROGRAM = sys.argv[1:] if len(sys.argv) == 4 else (None,) * 3


class Shares(unittest.TestCase):
    def test_a_test_above_its_share_is_named(self):
        seconds = collections.Counter({f"test {number}": 1.0 for number in range(98)} | {"large": 3.5})
        self.assertEqual([test for test, _, _ in times.too_large(seconds)], ["large"])  # 3.4 % of 101.5 s
        self.assertEqual(times.too_large(seconds | {"large": 2.9}), [])

    def test_times_of_one_test_are_added(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "times")
            path.write_text("1500000\tapps: a\n250000\tapps: b\n500000\tapps: a\n")
            self.assertEqual(times.read(path), {"apps: a": 2.0, "apps: b": 0.25})


class Forked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        cls.environment |= {"ZOO_FORK_SERVERS": folder.name, "ZOO_TEST_TIMES": str(cls.folder / "times"), "ZOO_TEST": "a test"}
        cls.server = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, env={
            **cls.environment, "LD_PRELOAD": FORK_SERVER, "ZOO_FORK_SOCKET": str(cls.folder / "tzoo")})
        while not (cls.folder / "tzoo").exists() and cls.server.poll() is None:
            time.sleep(0.01)
        (cls.folder / "text.txt").write_text("a b\n" * 20)
        subprocess.run([PROGRAM, "tokenizer", "train", "--kind", "char", "--input", "text.txt", "--out_dir", "chars"], check=True,
                       cwd=cls.folder, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.server.stdin.close()
        assert cls.server.wait(timeout=60) == 0

    def both(self, *words, prefix=(), **options):
        """What the copy and the program itself give; they must be equal."""
        found = [subprocess.run([*prefix, program, *words], capture_output=True, env=self.environment, timeout=60, **options)
                 for program in (FORKED, PROGRAM)]
        results = [(done.returncode, done.stdout, done.stderr) for done in found]
        self.assertEqual(results[0], results[1])
        return results[0]

    def test_output_errors_and_codes_are_the_programs(self):
        self.assertEqual(self.both("models", "gpt2")[0], 0)
        self.assertEqual(self.both("models", "gpt22")[0], 1)
        self.assertEqual(self.both("models", "--nothing")[0], 2)

    def test_input_and_folder_are_the_clients(self):
        words = ("tokenizer", "encode", "--model", "chars", "--json")
        self.assertEqual(self.both(*words, input=b"ba\n", cwd=self.folder)[:2], (0, b"[3,2]\n"))

    def test_closed_streams_are_closed(self):
        self.assertEqual(self.both("models", prefix=["sh", "-c", 'exec "$@" >&-', "sh"])[0], 1)

    def test_variables_are_the_clients(self):
        self.environment["ZOO_KERNELS"] = "none"
        self.addCleanup(self.environment.pop, "ZOO_KERNELS")
        code, _, error = self.both("models")
        self.assertEqual((code, b"ZOO_KERNELS=none" in error), (1, True))

    def test_the_time_is_added_to_the_test(self):
        before = times.read(self.folder / "times")["a test"] if (self.folder / "times").exists() else 0
        subprocess.run([FORKED, "models"], env=self.environment, stdout=subprocess.DEVNULL, check=True)
        self.assertGreater(times.read(self.folder / "times")["a test"], before)

    def test_a_signal_reaches_the_copy_and_its_end_the_client(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = subprocess.Popen([FORKED, "tokenizer", "encode", "--model", "chars"], stdin=subprocess.PIPE,
                                       cwd=self.folder, env=self.environment)
            self.addCleanup(process.stdin.close)
            time.sleep(0.3)  # it waits for its input
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=60), -number)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
