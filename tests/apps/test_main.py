"""What holds for every verb: help, unknown words, exit codes, standard output that cannot be written."""

import os
import subprocess
import tempfile
import unittest

from tzoo_runner import CommandTest, on_terminal, run

TZOO = os.environ.get("TZOO", "tzoo")
VERBS = ["models", "inspect", "data", "tokenizer", "train", "generate", "export"]


class Help(CommandTest):
    def test_without_words_the_verbs_are_listed(self):
        text = self.succeed()
        self.assertTrue(text.startswith("usage: tzoo VERB [flags]\n"))
        for verb in VERBS:
            self.assertRegex(text, rf"(?m)^  {verb} +\w")

    def test_help_is_asked_for_in_three_ways(self):
        self.assertEqual(self.succeed("--help"), self.succeed())
        self.assertEqual(self.succeed("-h"), self.succeed())
        self.assertEqual(self.succeed("help"), self.succeed())

    def test_help_of_an_action(self):
        text = self.succeed("help", "tokenizer", "train")
        self.assertEqual(text, self.succeed("tokenizer", "train", "--help"))
        self.assertIn("usage: tzoo tokenizer train [flags]", text)
        self.assertIn("(required)", text)
        self.assertIn("\nExample\n  tzoo tokenizer train ", text)

    def test_help_of_every_verb_fits_a_hundred_columns(self):
        for verb in VERBS:
            for line in self.succeed("help", verb).split("\n"):
                # An example is one line, to be copied.
                if not line.startswith("  tzoo "):
                    self.assertLessEqual(len(line), 100, (verb, line))

    def test_on_a_terminal_help_and_lists_are_as_wide_as_it(self):
        commands = [["--help"], ["train", "--help"], ["generate", "--help"], ["models"], ["data", "list"], ["demo"]]
        for columns in (60, 80, 100):
            for words in commands:
                with self.subTest(columns=columns, words=words):
                    text = on_terminal(columns, *words)
                    self.assertEqual([line for line in text.splitlines() if len(line) > columns], [])

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^tzoo \d+\.\d+\.\d+\n$")
        self.assertEqual(self.succeed("-V"), self.succeed("--version"))


class Mistakes(CommandTest):
    def test_an_unknown_verb_names_the_nearest(self):
        self.assert_one_error(run("tokeniser"), 2, "'tokeniser'", "did you mean 'tokenizer'?")
        self.assert_one_error(run("help", "exprt"), 2, "did you mean 'export'?")

    def test_an_unknown_flag_or_action_names_the_nearest(self):
        self.assert_one_error(run("tokenizer", "tran"), 2, "tzoo tokenizer", "did you mean 'train'?")
        self.assert_one_error(run("data", "list", "--jsn"), 2, "unknown flag '--jsn'", "did you mean '--json'?")
        self.assert_one_error(run("--verson"), 2, "'--verson'")

    def test_a_misspelt_instruction_set_is_an_error_of_every_verb(self):
        for words in (["models"], ["data", "list"], ["train"], ["generate", "--model", "none"], ["bench", "decode"]):
            result = run(*words, ZOO_KERNELS="avx3")
            self.assert_one_error(result, 1, "ZOO_KERNELS=avx3", "portable, avx2, avx_vnni, avx512, avx512_bf16, amx_bf16, neon or neon_bf16")
            self.assertEqual(result.out, "")
        self.assertIn("gpt2", self.succeed("models", ZOO_KERNELS="portable"))
        self.assertIn("gpt2", self.succeed("models", ZOO_KERNELS=""))

    def test_nothing_is_printed_beside_the_error(self):
        self.assertEqual(run("nix").out, "")

    def test_a_message_cannot_forge_a_second_error_line(self):
        result = run("tokenizer", "encode", "--model", "no\nerror: such\x1b[31m folder")
        self.assert_one_error(result, 1, "no")
        self.assertNotIn("\x1b", result.err)

    def test_a_message_does_not_repeat_a_value_as_long_as_a_file(self):
        result = run("generate", "--model", "none", "--stop_at_é", "x")
        self.assertIn("'--stop_at_é'", result.err)
        result = run("demo", "é" * 30000)
        self.assert_one_error(result, 2, "éééé", "…")
        self.assertLess(len(result.err), 2100)

    def test_a_config_file_is_read_and_its_faults_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "c.json")
            with open(config, "w") as file:
                file.write('{"cuont": 3}')
            self.assert_one_error(run("data", "make", "copy", "--config", config), 2, config, "'cuont'", "'count'")
            with open(config, "w") as file:
                file.write('{"count": 3,}')
            self.assert_one_error(run("data", "make", "copy", "--config", config), 1, config, "line 1")
        self.assert_one_error(run("data", "make", "copy", "--config", config), 1, config)


class StandardStreams(CommandTest):
    def test_a_full_disk_is_an_error(self):
        for words in (["data", "list"], ["data", "make", "copy", "--count", "100000"], ["--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([TZOO, *words], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, "error: cannot write to standard output: No space left on device\n")

    def test_a_closed_standard_output_is_an_error(self):
        done = subprocess.run(["sh", "-c", '"$0" data list >&-', TZOO], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: cannot write to standard output", done.stderr)

    def test_a_reader_that_leaves_ends_the_command_quietly(self):
        process = subprocess.Popen(
            [TZOO, "data", "make", "copy", "--count", "500000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertEqual(process.wait(), 0)


if __name__ == "__main__":
    unittest.main()
