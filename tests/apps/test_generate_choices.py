"""tzoo generate: what may be written, where a text ends, drafts, and a session line by line."""

import json
import os
import re
import select
import signal
import subprocess
import tempfile
import unittest

from tiny_checkpoint import write_char_tokenizer, write_checkpoint, write_json
from tzoo_runner import PROGRAM, CommandTest, on_terminal, run

# ASCII with its control characters left out, except the line feed, and characters of two, three and four bytes.
CHARS = "\n" + "".join(map(chr, range(32, 127))) + "é世😀"


def byte_characters():
    """GPT-2's character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def write_byte_tokenizer(directory):
    vocabulary = {character: byte for byte, character in byte_characters().items()}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    write_json(directory, "tokenizer.json", tokenizer)


class Generated(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.chars = write_checkpoint(cls.path("chars"), vocab_size=len(CHARS), n_positions=256)
        write_char_tokenizer(cls.chars, CHARS)
        cls.bytes = write_checkpoint(cls.path("bytes"), vocab_size=256, eos_token_id=0, n_positions=256)
        write_byte_tokenizer(cls.bytes)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def texts(self, model, *args):
        return json.loads(self.succeed("generate", "--model", model, "--prompt", "a", "--json", *args))["text"]

    def fails(self, code, args, *words):
        self.assert_one_error(run("generate", *args), code, *words)


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["x", "yy", 3, None]}, "maxItems": 3},
        "where": {"$ref": "#/$defs/place"},
        "score": {"type": ["number", "null"]},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"},
        "any": {"anyOf": [{"type": "boolean"}, {"const": "no"}]},
    },
    "required": ["name", "age", "where"],
    "additionalProperties": False,
    "$defs": {"place": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
}


def fits(value):
    """Whether SCHEMA allows it, read by another hand."""
    def integer(v):
        return isinstance(v, int) and not isinstance(v, bool)

    checks = {
        "name": lambda v: isinstance(v, str) and 1 <= len(v) <= 6,
        "age": lambda v: integer(v) and 0 <= v <= 130,
        "tags": lambda v: isinstance(v, list) and len(v) <= 3 and all(t in ("x", "yy", 3, None) for t in v),
        "where": lambda v: isinstance(v, dict) and set(v) == {"x"} and integer(v["x"]),
        "score": lambda v: v is None or integer(v) or isinstance(v, float),
        "code": lambda v: isinstance(v, str) and re.fullmatch("[A-Z]{2}-[0-9]+", v) is not None,
        "any": lambda v: isinstance(v, bool) or v == "no",
    }
    return isinstance(value, dict) and {"name", "age", "where"} <= set(value) <= set(checks) and all(
        checks[key](value[key]) for key in value)


class Constrained(Generated):
    def schema(self, schema):
        write_json(self.folder.name, "schema.json", schema)
        return ["--json_schema", self.path("schema.json")]

    def test_five_hundred_samples_fit_a_schema(self):
        flags = self.schema(SCHEMA)
        for model, count in ((self.bytes, 250), (self.chars, 250)):
            texts = self.texts(model, *flags, "--num_samples", count, "--temperature", 1.5, "--top_k", 0,
                               "--max_new_tokens", 120)
            self.assertEqual(len(texts), count)
            for text in texts:
                self.assertTrue(fits(json.loads(text)), text)
            self.assertGreater(len(set(texts)), count // 2)
            keys = [set(json.loads(text)) for text in texts]
            self.assertTrue(any("code" in k for k in keys) and any("code" not in k for k in keys))

    def test_a_schema_in_place_is_that_of_a_file(self):
        schema = {"type": "array", "items": {"enum": ["x", 3]}, "minItems": 1, "maxItems": 4}
        more = ("--num_samples", 4, "--temperature", 2, "--max_new_tokens", 30)
        texts = self.texts(self.bytes, "--json_schema", json.dumps(schema), *more)
        self.assertEqual(texts, self.texts(self.bytes, *self.schema(schema), *more))
        self.fails(1, ["--model", self.bytes, "--prompt", "a", "--json_schema", "{nothing"], "{nothing", "is not JSON")

    def test_what_is_begun_ends_when_no_more_may_be_written(self):
        for count in (3, 4, 9):
            texts = self.texts(self.bytes, "--regex", '"[^"]+"', "--num_samples", 20, "--temperature", 2, "--top_k", 0,
                               "--max_new_tokens", count)
            for text in texts:
                self.assertRegex(text, r'(?s)^"[^"]+"$')

    def test_regular_expressions(self):
        for pattern, flags in (("(ab|c)*d{2,3}", 0), (r"\d{4}-\d\d", 0), ("[^\\x00-\\x7F]{2}", 0), ("a?b+?[c-e.]", 0)):
            texts = self.texts(self.bytes, "--regex", pattern, "--num_samples", 30, "--temperature", 2, "--top_k", 0,
                               "--max_new_tokens", 30)
            for text in texts:
                self.assertRegex(text, re.compile(f"^(?:{pattern})$", re.DOTALL))
            self.assertGreater(len(set(texts)), 3, pattern)

    def test_control_characters_reach_a_pipe_and_no_terminal(self):
        model = write_checkpoint(self.path("control"), vocab_size=3)
        write_char_tokenizer(model, "\x1ba\n")
        flags = ["generate", "--model", model, "--prompt", "a", "--max_new_tokens", "2", "--regex", "\x1b{2}"]
        self.assertTrue(run(*flags).out.endswith("\x1b\x1b\n"))
        self.assertIn("\\x1b\\x1b\n", on_terminal(80, *flags))

    def test_classes_are_those_of_python(self):
        for pattern in (r"[^\s]{3}", r"\S{3}", r"\W{3}", r"\D{3}", r"\w{3}", r"\d{3}", r"\s{3}", r"[^\w]{3}", r"[^\d\s]{3}", ".{3}",
                        r"[\w\s]{3}", "[]^a-c]{2}[^]]", "x{,2}y{,}", r"[^\W\d_]{3}"):
            texts = self.texts(self.bytes, "--regex", pattern, "--num_samples", 40, "--temperature", 2, "--top_k", 0,
                               "--max_new_tokens", 20)
            for text in texts:
                self.assertRegex(text, re.compile(f"\\A(?:{pattern})\\Z"))
            if re.search("[dwsDWS.]", pattern) and "x" not in pattern:
                self.assertTrue(any(not c.isascii() for text in texts for c in text), pattern)

    def test_beams_and_greedy_keep_to_it(self):
        for flags in (["--temperature", 0], ["--num_beams", 3, "--num_return_sequences", 3]):
            for text in self.texts(self.chars, "--regex", "[ab]{3}(x|y)z", *flags, "--max_new_tokens", 8):
                self.assertRegex(text, "^[ab]{3}[xy]z$")

    def test_the_end_token_comes_only_where_a_text_may_end(self):
        answer = json.loads(self.succeed("generate", "--model", self.bytes, "--prompt", "a", "--json", "--regex", "(ab)*",
                                         "--num_samples", 40, "--temperature", 2, "--top_k", 0, "--max_new_tokens", 8))
        ended = [row for row in answer["ids"] if row[-1] == 0]
        self.assertTrue(ended)
        for row in ended:
            self.assertEqual(bytes(row[:-1]), b"ab" * (len(row) // 2))

    def test_its_memory_does_not_grow_with_the_text(self):
        letters = "".join(map(chr, range(0x4E00, 0x5E00)))
        model = write_checkpoint(self.path("letters"), vocab_size=len(letters), n_positions=2048)
        write_char_tokenizer(model, letters)
        peaks = []
        for count in (20, 2000):
            command = [PROGRAM, "generate", "--model", model, "--input_ids", "[[1]]", "--json", "--temperature", "0",
                       "--max_new_tokens", str(count), "--regex", "[\u4e00-\u5dff]{%d}" % count]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                _, process.returncode, usage = os.wait4(process.pid, 0)
            self.assertEqual(process.returncode, 0)
            peaks.append(usage.ru_maxrss)
        # As floats and steps, the 4,096 tokens of 2,000 states took 100 MB.
        self.assertLess(peaks[1] - peaks[0], 60_000)

    def test_impossible_constraints_are_said(self):
        begin = ["--model", self.chars, "--prompt", "a"]
        self.fails(1, [*begin, "--regex", "[^\\x00-\\uFFFF]{2}[\\u00FC]"], "--regex", "vocabulary")
        self.fails(1, [*begin, "--regex", "a{30}", "--max_new_tokens", 29], "30", "29", "max_new_tokens")
        self.fails(1, [*begin, "--regex", "(a"], "--regex", "byte 2")
        self.fails(1, [*begin, "--regex", "(?=a)b"], "lookaround")
        self.fails(1, [*begin, "--regex", "a++"], "repetition of a repetition")
        self.fails(1, [*begin, "--regex", r"(a)\1"], r"\1")
        self.fails(2, [*begin, "--regex", "a", *self.schema({})], "--regex", "--json_schema")
        self.fails(1, [*begin, *self.schema({"type": "object", "patternProperties": {}})], "patternProperties", "#")
        self.fails(1, [*begin, *self.schema({"items": {"uniqueItems": True}, "type": "array"})], "uniqueItems", "#/items")
        self.fails(1, [*begin, *self.schema({"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}},
                                             "$ref": "#/$defs/a"})], "leads back")
        self.fails(1, [*begin, *self.schema({"type": "integer", "minimum": 5, "maximum": 4})], "no value")
        self.fails(1, ["--model", write_checkpoint(self.path("ids")), "--input_ids", "[[1]]", "--regex", "a"],
                   "--regex", "tokenizer")


class Endings(Generated):
    def test_a_stop_string_ends_a_row_and_is_not_shown(self):
        flags = ["--temperature", 0, "--max_new_tokens", 60]
        whole = self.texts(self.chars, *flags)[0]
        stop = whole[20:23]
        begin = whole.index(stop)
        answer = json.loads(self.succeed("generate", "--model", self.chars, "--prompt", "a", "--json", *flags, "--stop",
                                         stop, "--stop", "nowhere"))
        self.assertEqual(answer["text"], [whole[:begin]])
        self.assertEqual(len(answer["ids"][0]), begin + len(stop))
        shown = run("generate", "--model", self.chars, "--prompt", "a", *flags, "--stop", stop)
        self.assertEqual(shown.out, "a" + whole[:begin] + "\n")

    def test_a_stop_string_begins_with_a_space_that_the_tokenizer_drops(self):
        model = write_checkpoint(self.path("spaces"), vocab_size=4)
        metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        write_json(model, "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})
        write_json(model, "tokenizer.json", {
            "version": "1.0", "added_tokens": [], "pre_tokenizer": metaspace, "decoder": metaspace,
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "▁": 2, "▁a": 3}, "merges": [["▁", "a"]]}})
        flags = ["generate", "--model", model, "--prompt", "b", "--regex", " a(b)+", "--suppress_tokens", "[2]", "--json",
                 "--temperature", 0, "--max_new_tokens", 12]
        self.assertEqual(json.loads(self.succeed(*flags))["ids"][0][:2], [3, 1])
        stopped = json.loads(self.succeed(*flags, "--stop", " a"))
        self.assertEqual((stopped["ids"], stopped["text"]), ([[3]], [""]))

    def test_a_stop_string_across_the_bytes_of_characters(self):
        # Byte tokens that write "zé世" whatever the model thinks of them.
        flags = ["--regex", "zé世[ab]+", "--temperature", 0, "--max_new_tokens", 12]
        self.assertEqual(self.texts(self.bytes, *flags, "--stop", "é世")[0], "z")
        self.assertEqual(self.texts(self.bytes, *flags, "--stop", "世")[0], "zé")
        shown = run("generate", "--model", self.bytes, "--prompt", "a", *flags, "--stop", "世")
        self.assertEqual(shown.out, "azé\n")

    def test_more_threads_than_processors_are_noted(self):
        flags = ["generate", "--model", self.chars, "--prompt", "ab", "--max_new_tokens", 2]
        many = len(os.sched_getaffinity(0)) + 1
        self.assertEqual(run(*flags, "--threads", many).err.count(f"note: --threads {many} on {many - 1} processors"), 1)
        self.assertNotIn("note", run(*flags, "--threads", 1).err)

    def test_beams_that_sample(self):
        flags = ["--model", self.chars, "--prompt", "ab", "--json", "--num_beams", 3, "--max_new_tokens", 12]
        best = json.loads(self.succeed("generate", *flags))
        # Nearly all of the distribution is on the likeliest: what is drawn is what the search finds.
        cold = json.loads(self.succeed("generate", *flags, "--temperature", 1e-4))
        self.assertEqual(cold["ids"], best["ids"])
        drawn = [json.loads(self.succeed("generate", *flags, "--temperature", 1.5, "--seed", seed))["ids"]
                 for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def test_flags_of_beams_that_the_file_asks_for(self):
        model = write_checkpoint(self.path("searched"), vocab_size=len(CHARS), generation={"num_beams": 3})
        flags = ["generate", "--input_ids", "[[1, 2]]", "--json", "--max_new_tokens", 8, "--length_penalty", -2]
        of_file = json.loads(self.succeed(*flags, "--model", model))
        model = write_checkpoint(self.path("plain"), vocab_size=len(CHARS))
        self.assertEqual(of_file["scores"], json.loads(self.succeed(*flags, "--model", model, "--num_beams", 3))["scores"])
        self.fails(2, ["--model", model, "--prompt", "a", "--num_beams", 1, "--length_penalty", -2], "--length_penalty")

    def test_log_probabilities_of_the_model_itself(self):
        flags = ["--model", self.chars, "--prompt", "ab", "--json", "--logprobs", "--max_new_tokens", 12]
        greedy = json.loads(self.succeed("generate", *flags, "--temperature", 0))
        beam = json.loads(self.succeed("generate", *flags, "--num_beams", 4, "--length_penalty", 0))
        self.assertEqual([len(row) for row in greedy["logprobs"]], [12])
        self.assertAlmostEqual(beam["scores"][0], sum(beam["logprobs"][0]), places=4)
        self.assertGreaterEqual(beam["scores"][0], sum(greedy["logprobs"][0]) - 1e-4)
        # The same ids, drawn: what is said of them does not depend on how they were chosen.
        drawn = json.loads(self.succeed("generate", *flags, "--temperature", 0.01, "--top_k", 1))
        self.assertEqual(drawn["ids"], greedy["ids"])
        for a, b in zip(drawn["logprobs"][0], greedy["logprobs"][0]):
            self.assertAlmostEqual(a, b, places=5)

    def test_colours_leave_the_text_as_it_is(self):
        flags = ["--model", self.chars, "--prompt", "ab", "--temperature", 0, "--max_new_tokens", 30]
        plain, coloured = run("generate", *flags), run("generate", *flags, "--color")
        self.assertIn("\x1b[", coloured.out)
        self.assertEqual(re.sub("\x1b\\[[0-9]+m", "", coloured.out), plain.out)

    def test_flags_that_do_not_go_together(self):
        begin = ["--model", self.chars, "--prompt", "a"]
        for flags in (["--num_samples", 2, "--num_beams", 2], ["--logprobs"],
                      ["--length_penalty", 2], ["--interactive"], ["--draft_model", self.chars, "--num_beams", 2]):
            self.fails(2, [*begin, *flags], flags[0])
        self.fails(1, [*begin, "--num_beams", 2, "--num_return_sequences", 3], "num_return_sequences", "3")
        self.fails(1, [*begin, "--bad_words_ids", "[[1, 777]]"], "bad_words", "777")
        for bias in ("[1]", '{"a": 1}', '{"1": "x"}', "{", '{"-1": 1}', '{"07": 1}'):
            self.fails(2, [*begin, "--logit_bias", bias], "--logit_bias", bias)
        self.fails(1, [*begin, "--logit_bias", '{"777": 1}'], "logit_bias", "777")
        self.fails(1, [*begin, "--stop", ""], "stop")


class Drafted(Generated):
    def test_greedy_ids_are_those_without_a_draft(self):
        draft = write_checkpoint(self.path("draft"), vocab_size=len(CHARS), n_positions=40, seed=2)
        short = write_checkpoint(self.path("short"), vocab_size=len(CHARS), n_positions=24)
        for model, helper in ((self.chars, draft), (short, draft), (self.chars, self.chars)):
            flags = ["--model", model, "--input_ids", "[[3, 1, 4], [9, 2]]", "--json", "--temperature", 0,
                     "--max_new_tokens", 60, "--repetition_penalty", 1.3]
            plain = json.loads(self.succeed("generate", *flags))
            drafted = json.loads(self.succeed("generate", *flags, "--draft_model", helper))
            self.assertEqual(drafted["ids"], plain["ids"])
            if helper == model:
                self.assertEqual(drafted["acceptance_rate"], 1)
            else:
                self.assertLess(drafted["acceptance_rate"], 1)

    def test_greedy_ids_are_those_without_a_lookup(self):
        short = write_checkpoint(self.path("short"), vocab_size=len(CHARS), n_positions=24)
        for model in (self.chars, short):
            for prompt in ([3, 1, 4, 1, 5, 3, 1], [2]):
                flags = ["--model", model, "--input_ids", json.dumps([prompt, [9, 2]]), "--json", "--temperature", 0, "--max_new_tokens", 60]
                plain = json.loads(self.succeed("generate", *flags))
                looked_up = json.loads(self.succeed("generate", *flags, "--prompt_lookup_num_tokens", 8))
                self.assertEqual(looked_up["ids"], plain["ids"])
                self.assertGreater(looked_up["acceptance_rate"], 0.1)  # greedy texts of random weights repeat themselves
        self.fails(2, ["--model", self.chars, "--prompt", "a", "--draft_model", self.chars, "--prompt_lookup_num_tokens", 2],
                   "--draft_model and --prompt_lookup_num_tokens")
        self.fails(2, ["--model", self.chars, "--prompt", "a", "--num_beams", 2, "--prompt_lookup_num_tokens", 2],
                   "--prompt_lookup_num_tokens", "--num_beams")

    def test_a_draft_of_another_vocabulary(self):
        self.fails(1, ["--model", self.chars, "--prompt", "a", "--draft_model", self.bytes], "256", str(len(CHARS)))


class Interactive(Generated):
    def test_lines_are_continued_one_behind_the_other(self):
        flags = ["generate", "--model", self.chars, "--temperature", 0, "--max_new_tokens", 5]
        result = run(*flags, "--interactive", stdin="ab\n\ncd\n")
        self.assertEqual(result.code, 0, result)
        first = self.texts_of("ab")
        self.assertEqual(result.out, first + "\n" + self.texts_of("ab" + first + "\ncd") + "\n")

    def test_a_length_counts_what_was_said(self):
        result = run("generate", "--model", self.chars, "--temperature", 0, "--interactive", "--max_length", 8, stdin="ab\nc\n")
        self.assertEqual(result.code, 0, result)
        first = self.texts_of("ab", 6)
        # The context of 8 is full: it goes on from the end of what was said, which leaves room for one.
        self.assertEqual(result.out.split("\n")[0], first)
        self.assertIn("sees 7 tokens at most", result.err)

    def test_a_count_of_new_tokens_overrides_a_length(self):
        text = self.succeed("generate", "--model", self.chars, "--prompt", "ab", "--temperature", 0, "--max_length", 3, "--json",
                            "--max_new_tokens", 5)
        self.assertEqual(json.loads(text)["text"][0], self.texts_of("ab"))

    def texts_of(self, prompt, count=5):
        return json.loads(self.succeed("generate", "--model", self.chars, "--prompt", prompt, "--json", "--temperature", 0,
                                       "--max_new_tokens", count))["text"][0]

    def test_a_line_that_cannot_be_read_does_not_end_the_session(self):
        result = run("generate", "--model", self.chars, "--interactive", "--temperature", 0, "--max_new_tokens", 5,
                     stdin="aü\nab\n")
        self.assertEqual((result.code, result.out), (0, self.texts_of("ab") + "\n"), result)
        self.assertRegex(result.err, r"(?m)^error: .*ü")

    def test_ctrl_c_stops_a_reply_and_keeps_the_session(self):
        command = [PROGRAM, "generate", "--model", self.chars, "--interactive", "--max_new_tokens", "100000000"]
        # Without buffers here: what is left of a reply must not be taken for the beginning of the next.
        process = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2):
            process.stdin.write(b"ab\n")
            self.assertTrue(process.stdout.read(20))  # a reply has begun
            process.send_signal(signal.SIGINT)
            while not process.stderr.readline().endswith(b"tok/s)\n"):
                self.assertIsNone(process.poll())
            while select.select([process.stdout], [], [], 0.2)[0]:  # the rest of the reply
                os.read(process.stdout.fileno(), 1 << 16)
        process.stdin.close()  # the end of the input ends it
        process.stdout.read()
        process.stderr.read()
        self.assertEqual(process.wait(timeout=60), 0)
        process.stdout.close()
        process.stderr.close()


if __name__ == "__main__":
    unittest.main()
