"""tzoo tokenizer train, encode and decode."""

import json
import os
import random
import subprocess
import tempfile
import unittest

from tzoo_runner import PROGRAM, CommandTest, run

TEXT = "hello wörld\n"


def words_text():
    """Lines of made-up words, the same at each run: enough for a small sentencepiece vocabulary."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=chance.randint(2, 6))) for _ in range(200)]
    return "".join(" ".join(chance.choices(words, k=8)) + "\n" for _ in range(400))


class TokenizerTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.text = cls.path("text.txt")
        with open(cls.text, "w", encoding="utf-8") as file:
            file.write(TEXT)
        cls.words = cls.path("words.txt")
        with open(cls.words, "w", encoding="utf-8") as file:
            file.write(words_text())
        cls.char = cls.path("char")
        run("tokenizer", "train", "--kind", "char", "--input", cls.text, "--out_dir", cls.char)
        cls.pieces = cls.path("pieces")
        run("tokenizer", "train", "--kind=sentencepiece", "--vocab-size=60", "--input", cls.words, "--out_dir", cls.pieces)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)


class Train(TokenizerTest):
    def test_char_ids_follow_the_sorted_characters(self):
        out = self.succeed("tokenizer", "train", "--kind", "char", "--input", self.text, "--out_dir", self.path("c"))
        self.assertEqual(out, f"char tokenizer of {len(set(TEXT))} tokens in {self.path('c')}\n")
        order = sorted(set(TEXT))
        ids = json.loads(self.succeed("tokenizer", "encode", "--model", self.path("c"), "--json", stdin="wörld"))
        self.assertEqual(ids, [order.index(c) for c in "wörld"])

    def test_byte_needs_no_text(self):
        self.succeed("tokenizer", "train", "--kind", "byte", "--out_dir", self.path("b"))
        ids = json.loads(self.succeed("tokenizer", "encode", "--model", self.path("b"), "--json", stdin="aé"))
        self.assertEqual(ids, [97, 195, 169])

    def test_sentencepiece_has_the_size_and_model_asked_for(self):
        out = self.succeed(
            "tokenizer", "train", "--kind", "sentencepiece", "--model_type", "bpe", "--vocab_size", "80",
            "--input", self.words, "--out_dir", self.path("s"),
        )  # fmt: skip
        self.assertIn("of 80 tokens", out)
        with open(os.path.join(self.path("s"), "spiece.model"), "rb") as bpe:
            with open(os.path.join(self.pieces, "spiece.model"), "rb") as unigram:
                self.assertNotEqual(bpe.read(), unigram.read())

    def test_byte_bpe_and_wordpiece_write_the_classic_files_too(self):
        bpe, wordpiece = self.path("bpe"), self.path("wordpiece")
        train = ["tokenizer", "train", "--input", self.words, "--vocab_size", "300"]
        out = self.succeed(*train, "--kind", "byte_bpe", "--out_dir", bpe)
        self.assertEqual(out, f"byte_bpe tokenizer of 300 tokens in {bpe}\n")
        self.assertEqual(sorted(os.listdir(bpe)), ["merges.txt", "tokenizer.json", "tokenizer_config.json", "vocab.json"])
        out = self.succeed(*train, "--kind", "wordpiece", "--out_dir", wordpiece)
        self.assertEqual(out, f"wordpiece tokenizer of 300 tokens in {wordpiece}\n")
        self.assertEqual(sorted(os.listdir(wordpiece)), ["tokenizer.json", "tokenizer_config.json", "vocab.txt"])
        with open(os.path.join(wordpiece, "vocab.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read().split("\n")[:6], ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
        # A pair of a word that occurs once is no token, unless told otherwise.
        with open(self.path("once.txt"), "w", encoding="utf-8") as file:
            file.write("xy\n")
        for minimum, size in (("2", 257), ("1", 258)):
            done = run("tokenizer", "train", "--kind", "byte_bpe", "--input", self.path("once.txt"), "--min_frequency", minimum,
                       "--vocab_size", 300, "--out_dir", self.path("once-" + minimum))
            self.assertEqual((done.code, done.err), (0, f"note: --vocab_size 300: the text has enough for {size} tokens only\n"))
            self.assertIn(f"of {size} tokens", done.out)

    def test_what_was_learnt_encodes_and_decodes(self):
        for kind in ("byte_bpe", "wordpiece"):
            folder = self.path("round-" + kind)
            self.succeed(
                "tokenizer", "train", "--kind", kind, "--input", self.words, "--vocab_size", "300", "--out_dir", folder)
            ids = self.succeed("tokenizer", "encode", "--model", folder, "--json", stdin="abc  ab\n")
            self.assertEqual(
                self.succeed("tokenizer", "decode", "--model", folder, stdin=ids),
                "abc  ab\n" if kind == "byte_bpe" else "abc ab\n")

    def test_a_tokenizer_is_replaced_only_if_asked(self):
        train = ["tokenizer", "train", "--kind", "char", "--input", self.words, "--out_dir", self.path("kept")]
        self.succeed(*train)
        train[5] = self.text
        self.assert_one_error(run(*train), 1, self.path("kept"), "already holds a tokenizer", "--overwrite")
        self.assertIn(f"of {len(set(TEXT))} tokens", self.succeed(*train, "--overwrite"))

    def test_mistakes_are_named(self):
        train = ["tokenizer", "train", "--out_dir", self.path("x")]
        self.assert_one_error(run(*train), 2, "--kind")
        self.assert_one_error(run(*train, "--kind", "cha"), 2, "'cha'", "did you mean 'char'?")
        self.assert_one_error(run(*train, "--kind", "char"), 2, "--input")
        self.assert_one_error(run(*train, "--kind", "char", "--input", self.text, "--vocab_size", "9"), 2, "--vocab_size")
        self.assert_one_error(run(*train, "--kind", "char", "--input", self.path("nix")), 1, self.path("nix"))
        for kind, flag, value in (
            ("sentencepiece", "min_frequency", "3"), ("wordpiece", "pattern", "gpt2"), ("byte_bpe", "lowercase", "true"),
            ("byte_bpe", "limit_alphabet", "9"), ("char", "special_tokens", "<s>"), ("wordpiece", "model_type", "bpe"),
        ):  # fmt: skip
            self.assert_one_error(run(*train, "--kind", kind, "--input", self.text, "--" + flag, value), 2, "--" + flag, kind)
        self.assert_one_error(run(*train, "--kind", "byte_bpe", "--input", self.text, "--special_tokens", ""), 2, "--special_tokens")
        prepare = ["data", "prepare", self.text, "--tokenizer", "byte_bpe", "--out_dir", self.path("x")]
        self.assert_one_error(run(*prepare, TMPDIR="/no/folder"), 1, "TMPDIR", "/no/folder")
        small = run(*train, "--kind", "byte_bpe", "--input", self.text, "--vocab_size", "256")
        self.assert_one_error(small, 1, "vocab_size 256", "257")
        self.assertFalse(os.path.exists(self.path("x")))

    def test_a_folder_with_another_kind_is_left_alone(self):
        result = run("tokenizer", "train", "--kind", "byte", "--out_dir", self.char)
        self.assert_one_error(result, 1, "--out_dir", self.char, "char")


class Encode(TokenizerTest):
    def encode(self, stdin, *flags, model=None):
        return self.succeed("tokenizer", "encode", "--model", model or self.char, *flags, stdin=stdin)

    def test_only_a_newline_ends_a_line_and_the_last_counts_without(self):
        self.assertEqual(self.encode("hell\n\no", "--json"), "[4,3,5,5]\n[]\n[6]\n")
        self.assertEqual(self.encode("", "--json"), "")
        self.assertEqual(self.encode("\n", "--json"), "[]\n")

    def test_offsets_count_characters(self):
        record = json.loads(self.encode("wör", "--json", "--offsets"))
        order = sorted(set(TEXT))
        self.assertEqual(record, {"ids": [order.index(c) for c in "wör"], "tokens": list("wör"), "offsets": [[0, 1], [1, 2], [2, 3]],
                                  "word_ids": [0, 0, 0], "special_tokens_mask": [0, 0, 0]})
        self.assertEqual(list(record), ["ids", "tokens", "offsets", "word_ids", "special_tokens_mask"])
        self.assert_one_error(run("tokenizer", "encode", "--model", self.char, "--offsets"), 2, "--offsets", "--json")

    def test_other_line_separators_are_characters(self):
        with open(self.path("odd.txt"), "w", encoding="utf-8", newline="") as file:
            file.write("a\r\v\u2028")
        self.succeed("tokenizer", "train", "--kind", "char", "--input", self.path("odd.txt"), "--out_dir", self.path("odd"))
        self.assertEqual(self.encode("a\r\v\u2028a", "--json", model=self.path("odd")), "[2,1,0,3,2]\n")

    def test_without_json_ids_have_spaces_between_them(self):
        self.assertEqual(self.encode("hell\n\no"), "4 3 5 5\n\n6\n")

    def test_t5s_end_token_is_added_unless_told_otherwise(self):
        plain = json.loads(self.encode("abc", "--json", "--no_special_tokens", model=self.pieces))
        self.assertEqual(json.loads(self.encode("abc", "--json", model=self.pieces)), plain + [1])
        self.assertNotIn(1, plain)

    def test_an_answer_comes_before_the_next_line_is_sent(self):
        with subprocess.Popen(
            [PROGRAM, "tokenizer", "encode", "--model", self.char, "--json"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as process:  # fmt: skip
            for line, ids in ((b"hell\n", b"[4,3,5,5]\n"), (b"o\n", b"[6]\n")):
                process.stdin.write(line)
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), ids)
            process.stdin.close()

    def test_a_fault_names_its_line_and_what_came_before_is_printed(self):
        result = run("tokenizer", "encode", "--model", self.char, "--json", stdin="he\nhex\n")
        self.assert_one_error(result, 1, "line 2", "'x'")
        self.assertEqual(result.out, "[4,3]\n")
        result = run("tokenizer", "encode", "--model", self.char, stdin=b"he\nhe\n\xff\n")
        self.assert_one_error(result, 1, "line 3", "UTF-8")

    def test_a_folder_without_a_tokenizer_is_named(self):
        self.assert_one_error(run("tokenizer", "encode", "--model", self.folder.name), 1, self.folder.name)
        self.assert_one_error(run("tokenizer", "encode", "--model", self.path("nix")), 1, self.path("nix"))
        self.assert_one_error(run("tokenizer", "encode"), 2, "--model")

    def test_input_that_cannot_be_read_is_an_error(self):
        directory = os.open(self.folder.name, os.O_RDONLY)
        done = subprocess.run(
            [PROGRAM, "tokenizer", "encode", "--model", self.char],
            stdin=directory, capture_output=True, text=True,
        )  # fmt: skip
        os.close(directory)
        self.assertEqual((done.returncode, done.stderr), (1, "error: cannot read standard input\n"))


class Decode(TokenizerTest):
    def decode(self, stdin, *flags, model=None):
        return self.succeed("tokenizer", "decode", "--model", model or self.char, *flags, stdin=stdin)

    def test_arrays_become_lines(self):
        self.assertEqual(self.decode("[4, 3,5,5]\n[]\n[6]"), "hell\n\no\n")

    def test_what_encode_prints_is_read_back(self):
        lines = "".join(words_text().splitlines(keepends=True)[:20])
        ids = self.succeed("tokenizer", "encode", "--model", self.pieces, "--json", stdin=lines)
        self.assertEqual(self.decode(ids, model=self.pieces), lines)

    def test_ids_without_brackets_are_read_too(self):
        text = "hello\n"
        ids = self.succeed("tokenizer", "encode", self.char, stdin=text)
        self.assertNotIn("[", ids)
        self.assertEqual(self.succeed("tokenizer", "decode", self.char, stdin=ids), text)

    def test_the_end_token_is_printed_only_where_it_is_kept(self):
        ids = self.succeed("tokenizer", "encode", "--model", self.pieces, "--json", stdin="abc")
        self.assertEqual(self.decode(ids, model=self.pieces), "abc\n")
        self.assertEqual(self.decode(ids, "--keep_special_tokens", model=self.pieces), "abc</s>\n")

    def test_faults_name_their_line(self):
        for line in ("[4,", "4 x", "4,5", '{"ids":[4]}', '["4"]', "[4.5]", "[-1]", "[99999999999]", "99999999999", "[[4]]"):
            result = run("tokenizer", "decode", "--model", self.char, stdin=f"[4]\n{line}\n")
            self.assert_one_error(result, 1, "line 2", "expected token ids")
        result = run("tokenizer", "decode", "--model", self.char, stdin="[4]\n[4,999]\n")
        self.assert_one_error(result, 1, "line 2", "999")


if __name__ == "__main__":
    unittest.main()
