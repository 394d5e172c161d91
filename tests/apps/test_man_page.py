"""The man page: that it has what help lists, and that groff reads it without a warning."""

import re
import shutil
import subprocess
import unittest

from command_tree import commands, verbs_of
from tzoo_runner import CommandTest, run

HEADINGS = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "VERBS",
    "FLAGS OF EVERY VERB",
    "EXAMPLES",
    "EXIT STATUS",
    "ENVIRONMENT",
    "FILES",
]
ESCAPES = {r"\-": "-", r"\(rs": "\\", r"\(aq": "'", r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\(dq": '"', r"\&": "", r"\:": ""}


def plain(roff):
    """The text without fonts and escapes."""
    text = re.sub(r"\\f[BIR]", "", roff)
    text = re.sub(r"\\\[u([0-9A-F]+)\]", lambda match: chr(int(match.group(1), 16)), text)
    return re.sub(r"\\(?:-|&|:|\(..)", lambda match: ESCAPES[match.group(0)], text)


def words(text):
    return " ".join(text.split())


class ManPage(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.roff = run("man").out
        parts = re.split(r"(?m)^\.SH (.*)$", cls.roff)
        cls.headings = parts[1::2]
        cls.sections = dict(zip(parts[1::2], map(plain, parts[2::2])))

    def test_sections(self):
        self.assertEqual(self.headings, HEADINGS)
        version = self.succeed("--version").strip()
        self.assertIn(f'.TH TZOO 1 "" "{version}" "User Commands"', self.roff)

    def test_every_verb(self):
        for verb in verbs_of():
            self.assertRegex(self.sections["DESCRIPTION"], rf"(?m)^\.TP\n{verb}$")

    def verbs(self):
        """The part of each command, by its name."""
        parts = re.split(r"(?m)^\.SS (.*)$", self.sections["VERBS"])
        titles = [re.sub(r"( [A-Z_]+)+$", "", title) for title in parts[1::2]]
        return dict(zip(titles, parts[2::2]))

    def test_every_flag_of_every_command(self):
        verbs = self.verbs()
        self.assertEqual(sorted(verbs), sorted(command.name for command in commands()))
        common = re.findall(r"(?m)^\.TP\n--(\w+)", self.sections["FLAGS OF EVERY VERB"])
        for command in commands():
            own = re.findall(r"(?m)^\.TP\n--(?:\[no_\])?(\w+)", verbs[command.name])
            self.assertEqual(sorted(own + common), sorted([*command.flags, "help"]), command.name)

    def test_every_description_is_that_of_the_help(self):
        verbs = self.verbs()
        for command in commands():
            lines = re.findall(r"(?m)^\.TP\n.*\n(.*)$", verbs[command.name])
            lines.append(verbs[command.name].strip().split("\n")[0])
            for line in lines:
                self.assertIn(words(line), words(command.help), command.name)

    def test_every_example(self):
        for command in commands():
            example = re.search(r"(?ms)^Examples?\n(.*)\Z", command.help)
            for line in example.group(1).strip().split("\n") if example else []:
                self.assertIn("\n" + line.strip() + "\n", self.sections["EXAMPLES"])

    @unittest.skipIf(shutil.which("groff") is None, "needs groff")
    def test_groff_has_no_warnings(self):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww"], input=self.roff.encode(), capture_output=True
        )
        self.assertEqual((done.returncode, done.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
