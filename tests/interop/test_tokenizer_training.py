"""Vocabularies that tzoo tokenizer train learns, beside those of the tokenizers package, and opened by transformers."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerFast

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import make_bpe  # noqa: E402  (the texts that are hard to cut)

NUM_LINES = 5000
VOCAB_SIZE = 1500


def tzoo(*words, stdin=""):
    return subprocess.run([os.environ["TZOO"], *words], input=stdin.encode(), capture_output=True, timeout=300)


def verses(draw):
    """Lines in the manner of the King James Bible: few words make up most of the text, and many are rare."""
    syllables = ["be", "gin", "ning", "the", "hea", "ven", "and", "earth", "un", "to", "shall", "lo", "rd", "is", "ra", "el",
                 "ho", "ly", "thou", "ye", "sa", "lem", "je", "ru", "ki", "ng", "dom", "eth", "ah", "o"]
    words = ["".join(draw.choices(syllables, k=draw.choice([1, 1, 2, 2, 3, 4]))) for _ in range(2500)]
    words += ["LORD", "God's", "don't", "Café", "naïve", "世界", "мир", "1611", "3:16"]
    weights = [1 / (i + 3) for i in range(len(words))]
    lines = []
    for number in range(3000):
        line = draw.choices(words, weights, k=draw.randint(3, 20))
        line[0] = line[0].capitalize()
        lines.append(f"{number % 50 + 1} " + " ".join(line) + draw.choice([".", ";", ":", ",", "?", "!", ""]))
    return "\n".join(lines) + "\n"


def on_one_line(text):
    return text.replace("\n", "")


class TokenizerTraining(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.text = cls.path("text.txt")
        with open(cls.text, "w", encoding="utf-8", newline="") as file:
            file.write(verses(random.Random(11)))
        cls.lines = [on_one_line(line) for line in make_bpe.hard_lines(random.Random(12), NUM_LINES)]
        cls.lines += ["x" * 10_000, "ab" * 5_000, "é" * 10_000, " " * 10_000]

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder.name, *names)

    def train(self, kind, name, *flags):
        done = tzoo("tokenizer", "train", "--kind", kind, "--input", self.text, "--vocab_size", str(VOCAB_SIZE),
                    "--out_dir", self.path(name), *flags)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return self.path(name)

    def encode(self, model, *flags):
        done = tzoo("tokenizer", "encode", "--model", model, "--json", *flags, stdin="\n".join(self.lines) + "\n")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def assert_same_ids(self, ours, theirs):
        self.assertEqual(len(ours), len(self.lines))
        faults = [(line, a, b) for line, a, b in zip(self.lines, ours, theirs) if a != b]
        self.assertEqual(faults[:3], [], f"{len(faults)} of {len(self.lines)}")

    def test_byte_level_bpe(self):
        folder = self.train("byte_bpe", "gpt2")
        library = ByteLevelBPETokenizer()
        library.train([self.text], vocab_size=VOCAB_SIZE, min_frequency=2, special_tokens=["<|endoftext|>"],
                      show_progress=False)
        theirs = json.loads(library.to_str())["model"]
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
            ours = json.load(file)["model"]
        self.assertEqual(ours["vocab"], theirs["vocab"])
        self.assertEqual(ours["merges"], theirs["merges"])
        self.assertEqual(len(ours["vocab"]), VOCAB_SIZE)

        # The classic files by themselves, as the library reads them; they do not say what is a special token.
        classic = ByteLevelBPETokenizer(os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt"))
        for line in [line for line in self.lines if "<|" not in line][:500]:
            self.assertEqual(classic.encode(line).ids, library.encode(line).ids)

    def test_transformers_opens_byte_level_bpe(self):
        for pattern in ("gpt2", "cl100k", "qwen2", "o200k"):
            with self.subTest(pattern=pattern):
                folder = self.train("byte_bpe", pattern + "-opened", "--pattern", pattern)
                tokenizer = AutoTokenizer.from_pretrained(folder)
                self.assertEqual(tokenizer.eos_token, "<|endoftext|>")
                self.assertEqual(tokenizer.eos_token_id, 0)
                ours = self.encode(folder)
                self.assert_same_ids(ours, tokenizer(self.lines)["input_ids"])
                # "<|endoftext|>" in a text is that token, and special tokens are not decoded.
                plain = [(line, ids) for line, ids in zip(self.lines, ours) if 0 not in ids]
                done = tzoo("tokenizer", "decode", "--model", folder, stdin="".join(f"{ids}\n" for _, ids in plain))
                self.assertEqual(done.stdout.decode(), "".join(line + "\n" for line, _ in plain))

    def test_wordpiece(self):
        for lowercase in (True, False):
            with self.subTest(lowercase=lowercase):
                folder = self.train("wordpiece", f"wordpiece-{lowercase}", "--lowercase", str(lowercase).lower())
                with open(os.path.join(folder, "vocab.txt"), encoding="utf-8", newline="") as file:
                    ours = file.read().split("\n")[:-1]
                self.assertEqual(len(ours), VOCAB_SIZE)
                special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
                self.assertEqual(ours[:5], special)
                # The library leaves the order of "##" characters to chance, and with it that of equally frequent
                # pairs: it is given ours, as special tokens.
                end = next(i for i, token in enumerate(ours[5:], 5) if len(token.removeprefix("##")) > 1)
                characters = ours[5:end]
                self.assertEqual(characters, sorted(characters, key=lambda t: (t.startswith("##") and len(t) > 2, t)))
                library = BertWordPieceTokenizer(lowercase=lowercase)
                library.train([self.text], vocab_size=VOCAB_SIZE, min_frequency=2, show_progress=False,
                              special_tokens=special + characters)
                theirs = library.get_vocab()
                self.assertEqual(ours, sorted(theirs, key=theirs.get))

    def test_transformers_opens_wordpiece(self):
        folder = self.train("wordpiece", "wordpiece-opened")
        ours = self.encode(folder)
        for kind in (AutoTokenizer, BertTokenizer, PreTrainedTokenizerFast):
            with self.subTest(kind=kind.__name__):
                tokenizer = kind.from_pretrained(folder)
                self.assertEqual(tokenizer.cls_token_id, 2)
                self.assert_same_ids(ours, tokenizer(self.lines)["input_ids"])

    def test_further_special_tokens(self):
        folder = self.train("byte_bpe", "special", "--special_tokens", "<|user|>", "--special_tokens", "<|bot|>")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        self.assertEqual(tokenizer("<|user|>a<|bot|>")["input_ids"][::2], [1, 2])
        self.assertEqual(tokenizer.decode([1, 2], skip_special_tokens=True), "")


if __name__ == "__main__":
    unittest.main()
