"""The reader and runner of README blocks themselves, on small READMEs and a stand-in for tzoo."""

import pathlib
import tempfile
import unittest

import readme_blocks
import test_readme

FAKE_TZOO = '#!/bin/sh\n[ "$1" != break ] && echo "$@" >>log\n'


class RunReadme(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.tzoo = self.root / "fake tzoo"
        self.tzoo.write_text(FAKE_TZOO)
        self.tzoo.chmod(0o755)

    def run_readme(self, text):
        (self.root / "README.md").write_text(text)
        return test_readme.run_readme(self.root, self.tzoo, "README.md")

    def assert_refused(self, text, *parts):
        with self.assertRaises(test_readme.Failure) as caught:
            self.run_readme(text)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_blocks_share_a_directory_and_run_in_order(self):
        text = "```sh\ntzoo models\n```\nthen\n```sh\ngrep -x models log\n# a remark\n```\n"
        self.assertEqual(self.run_readme(text), (2, 2))

    def test_only_sh_blocks_run(self):
        self.assertEqual(self.run_readme("```text\nfalse\n```\n```cpp\nfalse\n```\n"), (0, 0))

    def test_a_failing_command_fails_with_its_line(self):
        self.assert_refused("# title\n\n```sh\ntzoo break\ntzoo models\n```\n", "README.md:4:", "tzoo break")

    def test_a_failure_in_a_pipe_fails(self):
        self.assert_refused("```sh\ntzoo break | cat\n```\n", "exit status 1")

    def test_train_flags_reach_only_train_and_only_their_block(self):
        self.run_readme(
            "<!-- test: --max_iters 20 -->\n```sh\ntzoo train \\\n  --x\ntzoo models\n"
            "grep -x 'train --x --max_iters 20' log\ngrep -x models log\n```\n"
            "```sh\ntzoo train --y\ngrep -x 'train --y' log\n```\n"
        )

    def test_before_is_run_but_not_counted(self):
        text = '<!-- test before: cp "$ROOT/README.md" input.txt -->\n```sh\ntest -s input.txt\n```\n'
        self.assertEqual(self.run_readme(text), (1, 1))

    def test_setup_is_not_run(self):
        text = "```sh\ngit clone nowhere zoo && cd zoo\ncmake --install nowhere\nexport A=b\n```\n"
        self.assertEqual(self.run_readme(text), (1, 0))

    def test_scripts_of_the_tree_must_exist_and_be_executable(self):
        text = "```sh\nTorch_DIR=/x tests/run.sh -R name\n```\n"
        self.assert_refused(text, "there is no tests/run.sh")
        (self.root / "tests").mkdir()
        (self.root / "tests/run.sh").write_text("exit 1\n")
        self.assert_refused(text, "tests/run.sh cannot be executed")
        (self.root / "tests/run.sh").chmod(0o755)
        self.assertEqual(self.run_readme(text), (1, 0))

    def test_a_python_script_is_looked_for_behind_its_python(self):
        self.assert_refused("```sh\nthird_party/interop/bin/python tests/make.py\n```\n", "there is no tests/make.py")

    def test_other_shells_and_open_blocks_are_refused(self):
        self.assert_refused("```bash\ntrue\n```\n", "line 1", "```sh")
        self.assert_refused("text\n```sh\ntrue\n", "line 2", "no end")


class Commands(unittest.TestCase):
    def test_continued_lines_are_one_command(self):
        block = readme_blocks.read_blocks("```sh\na \\\n  b\n\nc\n```\n")[0]
        self.assertEqual(block.commands, [(2, "a \\\n  b"), (5, "c")])


if __name__ == "__main__":
    unittest.main()
