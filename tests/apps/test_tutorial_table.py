"""The tables of apps/demos/README.md: every command in them is one that tzoo has, with flags that it knows."""

import pathlib
import re
import shlex
import unittest

from tzoo_runner import CommandTest, run

README = pathlib.Path(__file__).resolve().parents[2] / "apps" / "demos" / "README.md"


def rows():
    """Each row below a heading "| in the tutorial | command |": what it is about, and its commands."""
    inside = False
    for line in README.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
        elif line == "| in the tutorial | command |":
            inside = True
        elif inside and not re.fullmatch(r"\|[-|]+\|", line):
            about, _, commands = line.strip("|").rpartition("|")
            yield about.strip(), re.findall(r"`([^`]+)`", commands)


class TutorialTable(CommandTest):
    def test_every_row_has_a_command_that_exists(self):
        everything = list(rows())
        self.assertGreater(len(everything), 100)
        help_of = {}
        for about, commands in everything:
            self.assertTrue(commands, f"no command shows '{about}'")
            for command in commands:
                words = shlex.split(command)
                self.assertEqual(words[0], "tzoo", command)
                verb = [word for word in words[1:3] if not word.startswith("-")]
                if verb[0] not in ("demo", "tokenizer"):
                    verb = verb[:1]
                key = tuple(verb)
                if key not in help_of:
                    asked = ["list"] if key == ("demo", "list") else []
                    result = run(*verb, *([] if asked else ["--help"]))
                    self.assertEqual(result.code, 0, f"{command}: {result.err}")
                    help_of[key] = result.out
                for flag in [word for word in words if word.startswith("--")]:
                    self.assertRegex(help_of[key], rf"{flag}\b", f"{command} of '{about}'")

    def test_every_preset_in_it_is_in_the_registry(self):
        names = {words[2] for _, commands in rows() for words in map(shlex.split, commands)
                 if words[1] == "models" and len(words) > 2}
        self.assertIn("gpt3", names)
        for name in names:
            self.assertEqual(run("models", name).code, 0, name)

    def test_every_demo_is_in_it(self):
        shown = {words[2] for _, commands in rows() for words in map(shlex.split, commands) if words[1] == "demo"}
        demos = {line.split()[0] for line in self.succeed("demo", "list").splitlines()[1:]}
        self.assertLessEqual(demos, shown)


if __name__ == "__main__":
    unittest.main()
