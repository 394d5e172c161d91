"""The completion scripts: that they offer what help lists, and what bash makes of them."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from command_tree import commands, verbs_of
from tzoo_runner import CommandTest, run

RECIPES = sorted(path.stem for path in (Path(__file__).parents[2] / "apps" / "recipes").glob("*.json"))


class BashCompletion(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.script = os.path.join(cls.folder, "tzoo.bash")
        Path(cls.script).write_text(run("completion", "bash").out)
        os.mkdir(os.path.join(cls.folder, "a folder"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def complete(self, *words):
        """What bash offers for the last word, written as bash divides it: "--flag" "=" "value"."""
        calls = 'source "$0"; COMP_WORDS=(tzoo "$@"); COMP_CWORD=$#; _tzoo; printf "%s\\n" "${COMPREPLY[@]}"'
        # Without a PATH: the script finds no program, and so runs none.
        done = subprocess.run(
            [shutil.which("bash"), "--norc", "-c", calls, self.script, *words],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={"PATH": "", "HOME": self.folder},
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return sorted(line for line in done.stdout.split("\n") if line)

    def test_verbs_and_their_actions(self):
        for words in ((), ("data",), ("tokenizer",), ("bench",), ("demo",)):
            self.assertEqual(self.complete(*words, ""), sorted([*verbs_of(*words), "help"]))
        self.assertEqual(self.complete("tra"), ["train", "translate"])
        self.assertEqual(self.complete("help", "tok"), ["tokenizer"])
        self.assertEqual(self.complete("help", "tokenizer", "enc"), ["encode"])
        self.assertEqual(self.complete("--ver"), ["--version"])

    def test_every_demo(self):
        listed = self.succeed("demo", "list").split("\n")[1:]
        demos = [line.split()[0] for line in listed if line]
        self.assertGreater(len(demos), 10)
        self.assertEqual(self.complete("demo", ""), sorted(["all", "help", "list", *demos]))

    def test_every_flag_of_every_command(self):
        self.assertGreater(len(commands()), 40)
        for command in commands():
            flags = sorted("--" + name for name in [*command.flags, "help"])
            self.assertEqual(self.complete(*command.words, "--"), flags)
            negations = ["--no_" + name for name in command.booleans]
            others = [flag for flag in flags if flag.startswith("--no")]
            self.assertEqual(self.complete(*command.words, "--no"), sorted(negations + others))

    def test_every_choice_of_every_flag(self):
        count = 0
        for command in commands():
            for name, values in command.choices.items():
                offered = self.complete(*command.words, "--" + name, "")
                self.assertEqual([value for value in values if value not in offered], [], (command.name, name))
                count += 1
        self.assertGreater(count, 60)

    def test_values_in_every_form(self):
        self.assertEqual(self.complete("train", "--recipe", ""), RECIPES)
        self.assertEqual(self.complete("train", "--max_iters", "3", "--recipe", "kjv-c"), ["kjv-char"])
        self.assertEqual(self.complete("export", "--format", "=", "t"), ["torchscript"])
        self.assertEqual(self.complete("export", "--format", "="), ["gguf", "gguf-lora", "html", "huggingface", "onnx", "packed", "pt2", "torchscript"])
        self.assertEqual(self.complete("export", "--verify", "="), ["false", "true"])
        self.assertEqual(self.complete("train", "--lr-schedule", "cos"), ["cosine"])
        self.assertEqual(self.complete("generate", "--device", "cu"), ["cuda"])
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh"])
        self.assertEqual(self.complete("data", "get", "tiny"), ["tinyshakespeare"])
        self.assertIn("addition", self.complete("data", "make", ""))
        self.assertIn("gpt2", self.complete("models", "gp"))

    def test_a_number_has_no_suggestions(self):
        self.assertEqual(self.complete("train", "--max_iters", ""), [])

    def test_flags_with_dashes(self):
        self.assertEqual(self.complete("train", "--max-it"), ["--max_iters"])

    def test_an_argument_ends_the_names_of_verbs(self):
        self.assertEqual(self.complete("inspect", "train", "--ten"), ["--tensors"])
        self.assertEqual(self.complete("data", "x", "list", "--"), ["--help", "--version"])

    def test_paths(self):
        self.assertEqual(self.complete("train", "--out_dir", ""), ["a folder"])
        self.assertEqual(self.complete("inspect", "a"), ["a folder"])
        self.assertEqual(self.complete("generate", "--json_schema", "t"), ["tzoo.bash"])
        offered = self.complete("tokenizer", "train", "--input", "")
        self.assertLess({"a folder", "kjv", "tzoo.bash"}, set(offered))

    def test_values_and_flags_after_a_boolean(self):
        self.assertEqual(self.complete("models", "--json", "bert-base-un"), ["bert-base-uncased"])
        self.assertEqual(self.complete("models", "--json", "--d"), ["--dump_config"])


class OtherShells(CommandTest):
    def test_zsh_has_every_flag_of_every_command(self):
        script = self.succeed("completion", "zsh")
        self.assertTrue(script.startswith("#compdef tzoo\n"))
        for command in commands():
            function = re.sub("[ -]", "_", "_" + command.name)
            body = re.search(rf"(?ms)^{function}\(\) {{$(.*?)^}}$", script).group(1)
            offered = re.findall(r"(?m)^    '\*?--(\w+)[=\[]", body)
            wanted = [*command.flags, *("no_" + name for name in command.booleans), "help"]
            self.assertEqual(sorted(offered), sorted(wanted), command.name)
            for name, values in command.choices.items():
                self.assertRegex(body, rf"(?m)^    '\*?--{name}=.*\({' '.join(values)}")
        recipes = re.search(r"(?ms)^_tzoo_train\(\).*?--recipe=.*?\((.*?)\)'", script).group(1)
        self.assertEqual(sorted(recipes.split()), RECIPES)

    def test_the_shells_accept_their_scripts(self):
        for shell in ("bash", "zsh"):
            if shutil.which(shell) is None:
                continue  # bash is always there
            with tempfile.NamedTemporaryFile("w", suffix="." + shell) as script:
                script.write(self.succeed("completion", shell))
                script.flush()
                done = subprocess.run([shell, "-n", script.name], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_an_unknown_shell_names_the_nearest(self):
        self.assert_one_error(run("completion", "bsh"), 2, "'bsh'", "did you mean 'bash'?")
        self.assert_one_error(run("completion", "powershell"), 2, "bash or zsh")
        self.assert_one_error(run("completion"), 2, "bash or zsh")


if __name__ == "__main__":
    unittest.main()
