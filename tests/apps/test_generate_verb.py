"""tzoo generate."""

import json
import os
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest

from tiny_checkpoint import CHARS, write_checkpoint, write_json
from tzoo_runner import PROGRAM, CommandTest, run

PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3, 5, 8, 9, 7]]

# Hugging Face's, printed by tests/golden/make_generation.py. The context of 24 tokens slides twice or more.
# fmt: off
GREEDY = [
    [5, 20, 2, 2, 21, 21, 21, 21, 27, 21, 21, 21, 21, 27, 28, 28, 27, 27, 27, 21, 27, 27, 13, 11, 27, 27,
     11, 27, 11, 11, 11, 11, 11, 20, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 9, 2, 2, 9, 2, 2, 2,
     2, 2, 2],
    [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 30, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 9, 2, 2, 2, 2, 2,
     2, 2, 2, 2, 2, 2, 2, 9, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 9, 2, 2, 2, 2, 2, 2],
    [21, 21, 21, 21, 21, 21, 21, 28, 11, 0, 27, 21, 21, 21, 21, 21, 21, 21, 27, 11, 11, 11, 27, 11, 11,
     27, 20, 11, 11, 11, 11, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 9, 2, 2, 9, 2, 2, 2, 2,
     2, 2, 2, 2],
]
# fmt: on

VOCABULARY = sorted(CHARS)


def text_of(ids):
    return "".join(VOCABULARY[i] for i in ids)


class GenerateTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.ids_only = write_checkpoint(cls.path("ids"))
        cls.chars = write_checkpoint(cls.path("chars"), tokenizer=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def generate(self, model, *args, **keywords):
        """What `tzoo generate --json` says."""
        return json.loads(self.succeed("generate", "--model", model, "--json", *args, **keywords))

    def stream(self, model, *args):
        return run("generate", "--model", model, "--temperature", 0, *args)

    def greedy(self, model, prompts, count):
        rows = json.dumps(prompts)
        return self.generate(model, "--input_ids", rows, "--max_new_tokens", count, "--temperature", 0)


class Ids(GenerateTest):
    def test_greedy_ids_of_a_padded_batch_are_hugging_faces(self):
        answer = self.greedy(self.ids_only, PROMPTS, 60)
        self.assertEqual(answer["ids"], GREEDY)
        self.assertNotIn("text", answer)
        self.assertGreater(answer["tokens_per_second"], 0)

    def test_without_a_tokenizer_ids_are_printed(self):
        result = self.stream(self.ids_only, "--input_ids", "[[9, 2], [9, 2]]", "--max_new_tokens", 3)
        self.assertEqual((result.code, result.out), (0, "[2,2,2]\n[2,2,2]\n"), result)

    def test_a_tokenizer_that_is_not_read_leaves_the_ids(self):
        model = write_checkpoint(self.path("sonnet"))
        write_json(model, "tokenizer.json", {"model": {"type": "Sonnet"}})
        flags = ["--model", model, "--max_new_tokens", 3, "--temperature", 0, "--json"]
        result = run("generate", *flags, "--input_ids", "[[9, 2]]")
        self.assertEqual((result.code, json.loads(result.out)["ids"]), (0, [[2, 2, 2]]), result)
        self.assertIn("Sonnet", result.err)
        self.assert_one_error(run("generate", *flags, "--prompt", "a"), 1, "Sonnet")

    def test_an_end_token_closes_its_row(self):
        model = write_checkpoint(self.path("eos"), eos_token_id=30)
        ids = self.greedy(model, PROMPTS, 16)["ids"]
        self.assertEqual(ids, [GREEDY[0][:16], GREEDY[1][:13], GREEDY[2][:16]])

    def test_generation_config_comes_before_config(self):
        generation = {"eos_token_id": [28, 20]}
        model = write_checkpoint(self.path("generation"), eos_token_id=30, generation=generation)
        ids = self.greedy(model, PROMPTS, 14)["ids"]
        self.assertEqual(ids, [GREEDY[0][:2], GREEDY[1][:14], GREEDY[2][:8]])

    def test_samples_follow_the_seed(self):
        def draw(seed):
            flags = ["--input_ids", "[[1, 2]]", "--max_new_tokens", 30, "--temperature", 2]
            return self.generate(self.ids_only, *flags, "--num_samples", 2, "--seed", seed)["ids"]

        self.assertEqual(draw(1), draw(1))
        self.assertNotEqual(draw(1), draw(2))
        self.assertNotEqual(draw(1)[0], draw(1)[1])

    def test_top_k_of_one_and_top_p_of_zero_are_greedy(self):
        for flag in (["--top_k", 1], ["--top_p", 0]):
            flags = ["--input_ids", "[[9, 2]]", "--max_new_tokens", 16, "--temperature", 1.5, *flag]
            answer = self.generate(self.ids_only, *flags)
            self.assertEqual(answer["ids"], [GREEDY[1][:16]], flag)


class Text(GenerateTest):
    def test_the_prompt_and_its_continuation_are_printed(self):
        result = self.stream(self.chars, "--prompt", text_of(PROMPTS[0]), "--max_new_tokens", 60)
        self.assertEqual((result.code, result.out), (0, text_of(PROMPTS[0] + GREEDY[0]) + "\n"))
        self.assertRegex(result.err, r"^60 tokens in \d+\.\d\d s, \d+ tok/s \(prompt of \d+: \d+ tok/s, then \d+ tok/s\)\n$")
        samples = self.stream(self.chars, "--prompt", text_of(PROMPTS[0]), "--max_new_tokens", 2, "--num_samples", 3)
        self.assertIn(f" (prompt of {len(PROMPTS[0])}: ", samples.err)  # which is read once

    def test_json_holds_the_new_text(self):
        flags = ["--max_new_tokens", 16, "--temperature", 0]
        answer = self.generate(self.chars, "--prompt", text_of([9, 2]), *flags)
        self.assertEqual((answer["ids"], answer["text"]), ([GREEDY[1][:16]], [text_of(GREEDY[1][:16])]))

    def test_the_end_token_is_no_text(self):
        model = write_checkpoint(self.path("text_eos"), tokenizer=True, eos_token_id=30)
        answer = self.generate(model, "--prompt", text_of([9, 2]), "--max_new_tokens", 16, "--temperature", 0)
        self.assertEqual((answer["ids"], answer["text"]), ([GREEDY[1][:13]], [text_of(GREEDY[1][:12])]))
        result = self.stream(model, "--prompt", text_of([9, 2]), "--max_new_tokens", 16)
        self.assertEqual(result.out, text_of([9, 2] + GREEDY[1][:12]) + "\n")

    def test_a_prompt_can_come_from_standard_input_or_a_file(self):
        flags = ["--max_new_tokens", 8, "--temperature", 0]
        text = text_of(PROMPTS[2])
        with open(self.path("prompt.txt"), "w", encoding="utf-8") as file:
            file.write(text)
        from_stdin = self.generate(self.chars, "--prompt", "-", *flags, stdin=text)
        self.assertEqual(from_stdin["ids"], [GREEDY[2][:8]])
        from_file = self.generate(self.chars, "--prompt", "FILE:" + self.path("prompt.txt"), *flags)
        self.assertEqual(from_file["ids"], [GREEDY[2][:8]])

    def test_without_a_prompt_a_text_begins_with_a_new_line(self):
        flags = ["--max_new_tokens", 8, "--temperature", 0]
        self.assertEqual(self.generate(self.chars, *flags)["ids"], self.greedy(self.chars, [[0]], 8)["ids"])
        self.assertEqual(VOCABULARY[0], "\n")

    def test_several_samples_are_separated(self):
        result = self.stream(self.chars, "--prompt", "ab", "--max_new_tokens", 5, "--num_samples", 2)
        first, second = result.out.split("---------------\n")
        self.assertEqual(first, second)
        self.assertTrue(first.startswith("ab"))


class Interrupted(GenerateTest):
    def test_ctrl_c_ends_the_stream_in_order(self):
        reader, writer = pty.openpty()
        command = [PROGRAM, "generate", "--model", self.chars, "--prompt", "ab"]
        command += ["--max_new_tokens", "100000000"]
        process = subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.close(writer)
        shown, deadline = b"", time.monotonic() + 120
        while len(shown) < 20 and time.monotonic() < deadline:  # tokens appear while others are made
            if select.select([reader], [], [], 1)[0]:
                shown += os.read(reader, 4096)
        process.send_signal(signal.SIGINT)
        while True:
            try:
                piece = os.read(reader, 4096)
            except OSError:  # a terminal's end of file
                break
            if not piece:
                break
            shown += piece
        os.close(reader)
        err = process.communicate(timeout=60)[1].decode()
        self.assertEqual(process.returncode, 130, err)
        self.assertRegex(err, r"^\d+ tokens in \d+\.\d\d s, \d+ tok/s \(prompt of \d+: \d+ tok/s, then \d+ tok/s\)\n$")
        text = shown.decode().replace("\r\n", "\n")  # whole characters only
        self.assertTrue(text.startswith("ab") and text.endswith("\n"))

    def test_it_stops_when_nobody_reads_on(self):
        command = [PROGRAM, "generate", "--model", self.chars, "--prompt", "ab", "--max_new_tokens", "100000000"]
        for words, reads in ([], 10), (["--json"], 0):
            with subprocess.Popen(command + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
                self.assertEqual(len(process.stdout.read(reads)), reads)
                process.stdout.close()
                self.assertEqual((process.wait(timeout=60), process.stderr.read()), (0, b""))


class Errors(GenerateTest):
    def test_a_tokenizer_of_another_model_is_refused(self):
        size = 2 * len(CHARS) + 1
        model = write_checkpoint(self.path("other"), tokenizer=True, vocab_size=size)
        self.fails(1, ["--model", model, "--prompt", "ab"], model, f"{len(CHARS)} tokens", str(size))
        write_checkpoint(self.path("padded"), tokenizer=True, vocab_size=len(CHARS) + 8)
        self.assertEqual(run("generate", "--model", self.path("padded"), "--prompt", "ab", "--max_new_tokens", 1).code, 0)

    def test_options_that_do_not_fit_the_model_print_no_prompt(self):
        other = write_checkpoint(self.path("draft"), vocab_size=7)
        for words in (["--draft_model", other], ["--forced_eos_token_id", 5000]):
            result = run("generate", "--model", self.chars, "--prompt", "ab", *words)
            self.assertEqual((result.code, result.out), (1, ""), words)

    def test_a_wrong_width_is_told_in_few_words(self):
        model = write_checkpoint(self.path("wide"), n_layer=12)
        with open(os.path.join(model, "config.json")) as file:
            config = json.load(file)
        write_json(model, "config.json", {**config, "n_embd": 32})
        result = run("generate", "--model", model, "--input_ids", "[[1]]")
        self.assert_one_error(result, 1, "mismatched 148: transformer.wte.weight: expected [32, 32], found [32, 16]", "tzoo inspect")
        self.assertLess(len(result.err), 1000)

    def test_a_head_that_the_checkpoint_lacks_is_named_alike_by_every_verb(self):
        has = f"'{self.chars}' has a causal-lm head; expected "
        for words, wanted in (
            (["forward", "--head", "sequence-classification", "--input_ids", "[[1]]", "--output", self.path("f")],
             "sequence-classification"),
            (["forward", "--head", "masked-lm", "--input_ids", "[[1]]", "--output", self.path("f")], "masked-lm"),
            (["classify", "--text", "a"], "sequence-classification or token-classification"),
            (["fill-mask", "--text", "a"], "masked-lm"),
            (["answer", "--question", "a", "--context", "b"], "question-answering"),
            (["translate", "--text", "a"], "seq2seq-lm"),
        ):  # fmt: skip
            self.assert_one_error(run(*words, "--model", self.chars), 1, has + wanted)

    def fails(self, code, args, *words):
        self.assert_one_error(run("generate", *args), code, *words)

    def test_input_ids_that_are_no_ids(self):
        for text in ("[1, 2]", "[[1, 2.5]]", "[]", "[[1], \"x\"]", "[[1]", "[[18446744073709551615]]"):
            self.fails(2, ["--model", self.ids_only, "--input_ids", text], "--input_ids", text)

    def test_an_empty_row(self):
        self.fails(1, ["--model", self.ids_only, "--input_ids", "[[]]"], "empty")

    def test_an_id_outside_the_vocabulary(self):
        self.fails(1, ["--model", self.ids_only, "--input_ids", "[[1, 777]]"], "777", str(len(CHARS)))

    def test_a_prompt_longer_than_the_context(self):
        self.fails(1, ["--model", self.chars, "--prompt", "a" * 25], "25", "24")

    def test_a_prompt_without_a_tokenizer(self):
        self.fails(1, ["--model", self.ids_only, "--prompt", "ab"], "--prompt", "tokenizer", "--input_ids")

    def test_nothing_to_begin_with(self):
        self.fails(2, ["--model", self.ids_only], "--prompt", "--input_ids")

    def test_a_character_that_the_tokenizer_lacks(self):
        self.fails(1, ["--model", self.chars, "--prompt", "aQ"], "--prompt", "Q")

    def test_prompt_and_ids(self):
        flags = ["--prompt", "a", "--input_ids", "[[1]]"]
        self.fails(2, ["--model", self.chars, *flags], "--prompt", "--input_ids")

    def test_a_tokenizer_larger_than_the_model(self):
        model = write_checkpoint(self.path("small"), tokenizer=True, vocab_size=20)
        self.fails(1, ["--model", model, "--prompt", "as"], '"s"', f"id is {sorted(CHARS).index('s')}", "20 rows")
        self.assertEqual(run("generate", "--model", model, "--prompt", "ab", "--max_new_tokens", 1).code, 0)

    def test_values_out_of_range(self):
        for flag, value in [("max_new_tokens", 0), ("temperature", -1), ("top_p", 1.5), ("top_k", -1), ("typical_p", 0)]:
            self.fails(2, ["--model", self.chars, "--" + flag, value], "--" + flag)
        for flag, value, most in [("max_new_tokens", 2**63 - 1, 2**31 - 1), ("draft_tokens", 2**63 - 1, 2**31 - 1),
                                  ("num_beams", 999999999, 1024), ("num_samples", 2**63 - 1, 65536)]:
            self.fails(2, ["--model", self.chars, "--" + flag, value], f"--{flag}: expected an integer", str(most), f"got '{value}'")

    def test_a_count_of_the_file_that_is_too_large(self):
        for key, value in (("max_new_tokens", 2**56), ("max_length", 2**63 - 1)):
            model = write_checkpoint(self.path(key), generation={key: value})
            self.fails(1, ["--model", model, "--input_ids", "[[1]]"], "generation_config.json", f"'{key}' is {value}", "2147483647")

    def test_a_value_of_the_file_that_is_wrong_is_named_with_it(self):
        for key, value, expected in (("num_beams", 0, "at least 1 and at most 1024"), ("suppress_tokens", "a", "ids"),
                                     ("bad_words_ids", [1], "lists of ids"), ("repetition_penalty", -1, "above 0")):
            model = write_checkpoint(self.path(key), generation={key: value})
            self.fails(1, ["--model", model, "--input_ids", "[[1]]"], "generation_config.json", f"'{key}' is ", expected)

    def test_a_file_that_is_a_pipe(self):
        model = write_checkpoint(self.path("pipe"))
        os.mkfifo(os.path.join(model, "generation_config.json"))
        self.fails(1, ["--model", model, "--input_ids", "[[1]]"], "generation_config.json", "not a regular file")

    def test_a_directory_that_is_no_model(self):
        self.fails(1, ["--model", self.path("nowhere"), "--prompt", "a"], "nowhere")

    def test_the_directory_of_a_run(self):
        write_checkpoint(self.path("run/final"))
        self.fails(1, ["--model", self.path("run"), "--prompt", "a"], "--model", "final")

    def test_weights_that_are_no_numbers(self):
        def poison(tensors):
            shape, numbers = tensors["transformer.wte.weight"]
            tensors["transformer.wte.weight"] = (shape, [float("nan")] * len(numbers))

        model = write_checkpoint(self.path("nan"), change=poison)
        self.fails(1, ["--model", model, "--input_ids", "[[1]]"], "not finite")


if __name__ == "__main__":
    unittest.main()
