"""tzoo demo: the tutorials' figures and pictures."""

import math
import os
import pathlib
import re
import struct
import tempfile
import unittest
import xml.etree.ElementTree as xml
import zlib

import tiny_checkpoint
from tzoo_runner import CommandTest, run  # also the path to support/
from tier import SHORT

RUNS_BFLOAT16 = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text() and not os.environ.get("ZOO_KERNELS")

# Output that the tutorial prints below each of its three programs.
PRINTED = {
    "embeddings": """\
Training...
Epoch 0: Loss 2.7137
Epoch 100: Loss 1.0664
Epoch 200: Loss 0.9315

========================================
     NUMERICAL PROOF
========================================

[A] Raw Vector Values (2 Dimensions):
  cat       : [-1.4200, 3.3785]
  dog       : [-3.2353, 1.6622]
  apple     : [-3.3249, -1.6699]
  banana    : [-1.7500, -3.6377]

[B] Cosine Similarity (1.0 = Same, -1.0 = Opposite):
  cat <-> dog: 0.7659
  apple <-> banana: 0.7919
  cat <-> apple: -0.0675
""",
    "ambiguous": """\
Training: Teaching 'Fruit' to look at 'Fly'...
Epoch 0 | Loss: 1.4035
Epoch 50 | Loss: 0.0023
Epoch 100 | Loss: 0.0008
Epoch 150 | Loss: 0.0005

Testing: Does 'Iron' look at 'Man'?
""",
    "disagreement": """\
Training with Disagreement Penalty...
Epoch 0 | Loss: 2.8449 | Acc: 25%
Epoch 50 | Loss: 0.0000 | Acc: 100%
Epoch 100 | Loss: 0.0000 | Acc: 100%
Epoch 150 | Loss: 0.0000 | Acc: 100%
Epoch 200 | Loss: 0.0000 | Acc: 100%
Epoch 250 | Loss: 0.0000 | Acc: 100%
""",
}


def distinct_bytes(path):
    """How many different bytes the pixels of a PNG have: one that is whole and not blank has many."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    at, pixels, end = 8, b"", False
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0], path
        pixels += body if kind == b"IDAT" else b""
        end = end or kind == b"IEND"
        at += 12 + size
    assert end, path
    return len(set(zlib.decompress(pixels)))


class Demo(CommandTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name) / "pictures"

    def demo(self, *words, **environment):
        return run("demo", *words, "--out_dir", self.out, **environment)

    def assert_pictures(self, name, result):
        png, svg = self.out / f"{name}.png", self.out / f"{name}.svg"
        self.assertGreater(distinct_bytes(png), 3)
        self.assertTrue(xml.parse(svg).getroot().tag.endswith("svg"))
        self.assertIn(str(png), result.err)
        self.assertNotIn(str(png), result.out)

    def test_the_seeded_demos_print_the_tutorials_lines(self):
        for name, printed in PRINTED.items():
            result = self.demo(name)
            self.assertEqual((result.code, result.out), (0, printed), result)
            self.assert_pictures(name, result)

    def test_the_question_of_the_ambiguous_words_has_an_answer_beside_the_tutorials_lines(self):
        self.assertRegex(self.demo("ambiguous").err, r"(?m)^Yes: 'Iron' gives \d+% of its attention to 'Man'$")

    def test_another_seed_gives_other_figures_and_the_same_one_the_same(self):
        for name, printed in PRINTED.items():
            first, again = self.demo(name, "--seed", 7), self.demo(name, "--seed", 7)
            self.assertEqual(first.out, again.out)
            self.assertEqual(len(first.out.splitlines()), len(printed.splitlines()))
            self.assertNotEqual(first.out.splitlines()[1], printed.splitlines()[1])

    def test_other_words_and_sizes(self):
        out = self.demo("embeddings", "--pairs", "a x,b x,c y,d y", "--words", "a,b,c,d", "--width", 3).out
        self.assertIn("(3 Dimensions)", out)
        self.assertRegex(out, r"\n  a         : \[-?\d\.\d{4}, -?\d\.\d{4}, -?\d\.\d{4}\]\n")
        self.assertRegex(out, r"\n  a <-> c: ")
        out = self.demo("ambiguous", "--phrases", "hot dog,hot iron,cold war", "--test", "hot iron").out
        self.assertIn("Teaching 'Hot' to look at 'Dog'...", out)
        self.assertTrue(out.endswith("Does 'Hot' look at 'Iron'?\n"), out)
        out = self.demo("disagreement", "--heads", 4, "--penalty", "positions", "--epochs", 51).out
        self.assertEqual([line.split()[1] for line in out.splitlines()[1:]], ["0", "50"])

    def test_without_the_penalty_the_first_loss_is_smaller_by_it(self):
        def loss(*words):
            return float(self.demo("disagreement", *words).out.splitlines()[1].split()[4])

        # overlap at the start: four rows of about 1/3 * 1/3 * 3 keys
        self.assertAlmostEqual(loss() - loss("--weight", 0), 0.5 * 4 / 3, delta=0.2)
        self.assertAlmostEqual(loss("--weight", 1) - loss(), loss() - loss("--weight", 0), places=3)

    def test_efficient_attention_is_exact_where_nothing_is_left_out(self):
        out = self.demo("efficient-attention", "--longest", 256, "--format", "png").out
        table = out.splitlines()[1 : out.splitlines().index("")]
        error = {" ".join(line.split()[:-1]): float(line.split()[-1]) for line in table[1:]}
        for name in "sliding window window 512", "strided sparse stride 1", "Linformer every key its own mixture":
            self.assertLess(error[name], 1e-5, name)
        windows = [error[f"sliding window window {width}"] for width in (16, 64, 256, 512)]
        self.assertEqual(windows, sorted(windows, reverse=True))
        self.assertGreater(windows[0], 0.01)
        self.assertEqual(len(re.findall(r"^linear +n D² +[\d.]+ +[\d.]+$", out, re.MULTILINE)), 2)

    def test_the_transformer_reaches_back_further_than_the_lstm(self):
        out = self.demo("rnn-vs-transformer", "--updates", 1, "--format", "png").out
        lstm, transformer = (re.search(rf"^{name} .*%$", out, re.MULTILINE)[0] for name in ("LSTM", "transformer"))
        for line in lstm, transformer:
            for share in re.findall(r"([\d.]+)%", line):
                self.assertTrue(5 <= float(share) <= 60, line)  # nothing is learnt in one update

    def test_neighbours_of_learnt_words(self):
        out = self.demo("explore-embeddings", "--words", "cat,apple", "--neighbours", 2, "--format", "terminal").out
        self.assertRegex(out, r"\ncat +1 +strolls 0\.\d{3}, dog 0\.766\n")  # the tutorial's own cosine
        self.assertRegex(out, r"\napple +1 +banana 0\.792, ")
        self.assertRegex(out, r"\ndog - cat \+ apple ≈ banana 0\.\d{3}, ")

    def test_neighbours_in_a_checkpoint(self):
        model = pathlib.Path(self.folder.name) / "model"
        model.mkdir()
        chars = "abcdefgh"
        config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": len(chars),
                  "n_positions": 8, "n_embd": 2, "n_layer": 1, "n_head": 1}
        tensors = tiny_checkpoint.gpt2_tensors(config)
        # On a circle, 45 degrees from one to the next.
        circle = [value for i in range(8) for value in (math.cos(math.pi * i / 4), math.sin(math.pi * i / 4))]
        tensors["transformer.wte.weight"] = ([8, 2], circle)
        tiny_checkpoint.write_json(model, "config.json", config)
        tiny_checkpoint.write_safetensors(model / "model.safetensors", tensors)
        tiny_checkpoint.write_char_tokenizer(model, chars)
        words = ["explore-embeddings", "--model", model, "--format", "terminal"]
        out = self.demo(*words, "--words", "c", "--neighbours", 3, "--analogy", "b + d - c").out
        self.assertRegex(out, r"\nc +1 +(b 0\.707, d|d 0\.707, b) 0\.707, [ae] -?0\.000\n")
        # b + d is √2 of c; less c it is still c, which may not be said: 45 degrees away are b and d, not either.
        self.assertRegex(out, r"\nb \+ d - c ≈ [ae] ")
        self.assert_one_error(self.demo(*words, "--words", "c", "--analogy", "b d"), 2, "--analogy", "'b d'")
        self.assert_one_error(self.demo(*words, "--words", "c", "--analogy", "b +"), 2, "--analogy", "'b +'")
        vocabulary = {"type": "WordLevel", "vocab": {c: i for i, c in enumerate([*"abcdefg", "[UNK]"])}, "unk_token": "[UNK]"}
        tiny_checkpoint.write_json(model, "tokenizer.json", {"version": "1.0", "added_tokens": [], "model": vocabulary})
        tiny_checkpoint.write_json(model, "tokenizer_config.json", {"unk_token": "[UNK]"})
        self.assert_one_error(self.demo(*words, "--words", "x"), 2, "'x'", "vocabulary")
        self.assert_one_error(self.demo("explore-embeddings", "--words", "dgo"), 2, "'dgo'", "did you mean 'dog'")

    def assert_trained_heads_matter(self, out):
        right = re.search(r"\(right: (\d+)% and (\d+)%\)", out)
        self.assertGreater(min(map(int, right.groups())), 95)
        table = out.split("of a head by ablation")[1].splitlines()[2:4]
        left = [[int(share[:-1]) for share in line.split()[-2:]] for line in table]
        self.assertLess(min(before for before, _ in left), 50)  # some head says the word before
        self.assertLess(min(first for _, first in left), 50)  # and some head the first

    def test_translate_writes_what_was_asked_beside_held_out_phrases(self):
        out = self.demo("translate", "--updates", 1, "--text", "our famous lion sleeps", "--format", "terminal").out
        rows = [re.split(r"  +", line.strip()) for line in out.split("\nEnglish ")[1].split("\n\n")[0].splitlines()[1:]]
        self.assertEqual(rows[0][0], "our famous lion sleeps")
        expected = {row[0]: row[-1] for row in rows[1:]}
        self.assertEqual(expected["the cat"], "el gato")
        # The grammar writes the same of those that it says, and holds them out.
        lines = self.succeed("data", "make", "translation-held-out", "--count", 60000)
        written = dict(line.split("\t") for line in lines.splitlines())
        both = [phrase for phrase in expected if phrase in written]
        self.assertGreaterEqual(len(both), 3)
        for phrase in both:
            self.assertEqual(expected[phrase], written[phrase])
        # One update teaches nothing; who knew it all was not measured.
        right = re.search(r"([\d.]+)% of pairs of words as in the training, ([\d.]+)% of held-out pairs", out)
        self.assertLess(max(map(float, right.groups())), 5)
        self.assert_one_error(self.demo("translate", "--text", "the katze"), 2, "'katze'")
        self.assert_one_error(self.demo("translate", "--text", " "), 2, "--text")

    def test_each_kind_of_positions_is_asked_short_and_long_tasks(self):
        seen = {"reverse": "2 4 6 8", "sort": "2 4 6 8", "addition": "1 2 3 4"}
        new = {"reverse": "9 10 12 16", "sort": "9 10 12 16", "addition": "5 6 8"}
        for exercise in ["addition"] if SHORT else seen:
            words = ["--exercise", exercise, "--updates", 1, "--format", "terminal"]
            out = self.demo("length-generalisation", *words).out
            tables = [part.splitlines() for part in out.split("\n\n")[1:3]]
            for table in tables:
                self.assertEqual(re.findall(r"\d+(?: new)?", table[1]),
                                 seen[exercise].split() + [length + " new" for length in new[exercise].split()])
                self.assertEqual({line.split()[0] for line in table[2:]},
                                 {"none", "sinusoidal", "learned", "shaw", "t5_buckets", "rotary", "alibi"})
            for line in tables[0][2:]:
                self.assertLess(float(line.split()[-1][:-1]), 5)  # nobody guesses so many digits

    def test_one_gradient_in_less_memory(self):
        out = self.demo("training-memory", "--format", "terminal").out
        rows = {line[:13].strip(): line[13:].split() for line in out.split("\n\n")[0].splitlines()[2:]}
        self.assertEqual(set(rows), {"plain", "4 pieces", "bfloat16", "recomputation", "all three"})
        unit = {"kB": 1e-3, "MB": 1, "GB": 1e3}
        memory = {name: float(cells[1]) * unit[cells[2]] for name, cells in rows.items()}
        difference = {name: float(cells[-1]) for name, cells in rows.items()}
        self.assertEqual((difference["plain"], difference["recomputation"]), (0, 0))
        self.assertTrue(0 < difference["4 pieces"] < 1e-4, difference)
        if "no products of bfloat16" in out:
            self.assertFalse(RUNS_BFLOAT16)
            self.assertEqual((difference["bfloat16"], memory["bfloat16"]), (0, memory["plain"]))
        else:
            self.assertTrue(1e-4 < difference["bfloat16"] < 0.1, difference)
            self.assertLess(memory["bfloat16"], memory["plain"])
        self.assertLess(memory["4 pieces"], memory["plain"] / 2)
        self.assertLess(memory["recomputation"], memory["plain"] / 2)
        self.assertLess(memory["all three"], min(memory["4 pieces"], memory["recomputation"]))
        lost = [float(share) for share in re.findall(r"([\d.]+)% +[\d.]+%", out)]
        self.assertEqual(lost, sorted(lost, reverse=True))
        self.assertGreater(lost[0], 3 * lost[2])

    def test_all_runs_what_list_names(self):
        names = [line.split()[0] for line in self.succeed("demo", "list").splitlines()[1:]]
        self.assertLessEqual(set(PRINTED), set(names))
        result = self.demo("all", "--quick")
        self.assertEqual(result.code, 0, result)
        self.assertEqual([line[12:] for line in result.out.splitlines() if line.startswith("# tzoo demo ")], names)
        shortened = re.findall(r"# tzoo demo (\S+)\n\(4 updates here: by itself this demo does more", result.out)
        self.assertEqual(shortened, ["translate", "length-generalisation"])
        for name in names:
            self.assert_pictures(name, result)
        for printed in PRINTED.values():
            self.assertIn(printed, result.out)
        outputs = dict(part.split("\n", 1) for part in ("\n" + result.out).split("\n# tzoo demo ")[1:])
        self.assert_trained_heads_matter(outputs["heads"])

    def test_a_terminal_needs_neither_gnuplot_nor_a_folder(self):
        result = self.demo("ambiguous", "--format", "terminal", PATH=self.folder.name)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.err, r"^Yes: [^\n]*\n$")  # the answer, and no complaint
        printed, _, picture = result.out.partition("\n\nAttention weights for 'iron man'")
        self.assertEqual(printed + "\n", PRINTED["ambiguous"])
        first_row = picture.splitlines()[2].split()  # below the title's rest and the columns' names
        self.assertEqual(first_row[0], "iron")
        self.assertAlmostEqual(sum(map(float, first_row[1:])), 1, delta=0.011)
        self.assertNotIn("\x1b", result.out)
        self.assertFalse(self.out.exists())

    def test_one_format_alone(self):
        for kind, other in ("png", "svg"), ("svg", "png"):
            self.assertEqual(self.demo("disagreement", "--epochs", 1, "--format", kind).code, 0)
            self.assertTrue((self.out / f"disagreement.{kind}").exists())
            self.assertFalse((self.out / f"disagreement.{other}").exists())
            (self.out / f"disagreement.{kind}").unlink()

    def test_an_unknown_demo_names_the_near_one(self):
        self.assert_one_error(run("demo", "embedings"), 2, "'embedings'", "did you mean 'embeddings'")

    def test_words_that_nobody_learns_are_refused(self):
        self.assert_one_error(self.demo("embeddings", "--words", "cat,dgo"), 2, "'dgo'", "did you mean 'dog'")
        self.assert_one_error(self.demo("embeddings", "--pairs", "cat"), 2, "--pairs", "'cat'")
        self.assert_one_error(self.demo("ambiguous", "--phrases", "a b,c"), 2, "--phrases", "'c'")
        self.assert_one_error(self.demo("ambiguous", "--test", "iron"), 2, "--test", "'iron'")
        self.assert_one_error(self.demo("disagreement", "--sequences", "red fruit"), 2, "--sequences", "ANSWER")
        self.assert_one_error(self.demo("disagreement", "--heads", 3), 2, "--width 64", "--heads 3")

    def test_a_folder_that_cannot_be_written_costs_the_picture_only(self):
        self.out.write_text("a file")
        result = run("demo", "ambiguous", "--out_dir", self.out / "below")
        self.assertEqual(result.out, PRINTED["ambiguous"])
        self.assert_one_error(result, 1, str(self.out))

    def test_without_gnuplot_the_numbers_still_come(self):
        result = self.demo("ambiguous", PATH=self.folder.name)
        self.assertEqual((result.code, result.out), (0, PRINTED["ambiguous"]), result)
        self.assertIn("gnuplot is not installed", result.err)
        self.assertFalse((self.out / "ambiguous.png").exists())


if __name__ == "__main__":
    unittest.main()
