"""tzoo lens, patch, ablate and attention --rollout: tables, files, errors. Their numbers: tests/interop/test_analysis.py."""

import json
import os
import pathlib
import re
import tempfile
import unittest

import tiny_checkpoint
from tzoo_runner import CommandTest, on_terminal, run

VERBS = {"lens": [], "patch": ["--corrupted", "a cob"], "ablate": []}


class LookVerbs(CommandTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = cls.folder / "model"
        tiny_checkpoint.write_checkpoint(cls.model, tokenizer=True, n_layer=3)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"

    def look(self, verb, *words, text="a cab", **environment):
        return run(verb, self.model, "--text", text, "--out_dir", self.out, *words, **environment)

    def numbers(self, verb, *words):
        result = self.look(verb, *VERBS[verb], "--json", *words, PATH="")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(json.loads((self.out / f"{verb}.json").read_text()), json.loads(result.out))
        return json.loads(result.out)

    def test_the_table_of_the_lens_has_the_numbers_of_its_json(self):
        found = self.numbers("lens", "--token", "b")
        self.assertEqual(found["tokens"], ["a", " ", "c", "a", "b"])
        self.assertEqual((found["position"], found["token"]["token"]), (4, "b"))
        printed = self.look("lens", "--token", "b").out
        table = printed[printed.index("position 4, b"):].splitlines()
        self.assertEqual(table[1].split()[:4], ["layer", "entropy", "divergence", "length"])
        for line, layer in zip(table[2:], found["layers"], strict=True):
            cell, cells = layer["positions"][4], line.split()
            self.assertEqual(cells[:6], [layer["layer"], *(f"{cell[name]:.3f}" for name in ("entropy", "divergence", "length")),
                                         f"{cell['token']['probability']:.3f}", str(cell["token"]["rank"])])
            best = cell["answers"][0]
            self.assertEqual(line.split()[6:8], [best["token"].replace(" ", "␣"), f"{best['probability']:.3f}"])
        heat = printed[printed.index("logit lens"):].splitlines()[2:6]
        for line, layer in zip(heat, found["layers"], strict=True):
            shown = re.findall(r"\d\.\d\d", line)
            self.assertEqual(shown, [f"{cell['answers'][0]['probability']:.2f}" for cell in layer["positions"]])

    def test_steering(self):
        toward, away = self.folder / "toward", self.folder / "away"
        toward.write_text("a cab\nbad\n")
        away.write_text("cob\n")
        words = ("steer", self.model, "--toward", toward, "--away", away, "--prompt", "a", "--max_new_tokens", 3)
        table = [line.split() for line in self.succeed(*words, "--top_k", 2).splitlines()]
        self.assertEqual([row[0] for row in (table[0], table[3])], ["without:", "with:"])
        found = json.loads(self.succeed(*words, "--json"))
        self.assertEqual(table[-1][1:], [f"{found['first_tokens'][1][name]:.4f}" for name in ("without", "with")])
        # Without strength nothing changes; the other way round, the direction is the other one.
        same = json.loads(self.succeed(*words, "--json", "--strength", 0))
        self.assertEqual([each["with"] for each in same["first_tokens"]], [each["without"] for each in same["first_tokens"]])
        back = json.loads(self.succeed("steer", self.model, "--toward", away, "--away", toward, "--prompt", "a", "--max_new_tokens", 3, "--json", "--strength", -1))
        self.assertEqual(back["with"], found["with"])
        away.write_text("\n\n")
        self.assert_one_error(run(*words), 1, "away", "expected a text in each line, got none")
        away.write_text("a" * 99 + "\n")
        self.assert_one_error(run(*words), 1, "away", "line 1", "99 tokens")
        self.assert_one_error(run(*words, "--layer", 3), 2, "--layer 3", "from 0 to 2")

    def test_position_chooses_the_row_that_is_listed(self):
        self.assertIn("position 2, c:", self.look("lens", "--position", 2).out)
        self.assert_one_error(self.look("lens", "--position", 5), 2, "--position 5", "from 0 to 4")
        before = self.numbers("ablate", "--heads", "1.1", "--position", 1)
        self.assertNotEqual(before["answers"], self.numbers("ablate", "--heads", "1.1")["answers"])

    def test_a_patch_before_the_texts_differ_brings_nothing_and_the_last_state_everything(self):
        found = self.numbers("patch", "--token", "c")
        self.assertEqual(found["columns"], ["a", "␣", "c", "o→a", "b"])
        self.assertEqual([row[:3] for row in found["patched"]], [[found["corrupted"]] * 3] * 3)
        self.assertEqual(found["patched"][2], [found["corrupted"]] * 4 + [found["clean"]])
        printed = self.look("patch", "--corrupted", "a cob", "--token", "c").out
        self.assertIn(f"probability of c: {found['clean']:.6g} with the clean text", printed)
        rows = [re.findall(r"-?\d\.\d\d", line) for line in printed.splitlines() if re.match(r"[012] ", line)]
        share = [[(p - found["corrupted"]) / (found["clean"] - found["corrupted"]) for p in row] for row in found["patched"]]
        self.assertEqual([[float(cell) for cell in row] for row in rows], [[round(s, 2) + 0.0 for s in row] for row in share])

    def test_positions_choose_what_is_patched(self):
        whole = self.numbers("patch", "--token", "c")
        some = self.numbers("patch", "--token", "c", "--positions", "4,3", "--positions", "3")
        self.assertEqual((some["positions"], some["columns"]), ([3, 4], ["o→a", "b"]))
        self.assertEqual(some["patched"], [row[3:] for row in whole["patched"]])
        early = self.numbers("patch", "--token", "c", "--what", "head", "--positions", "0,1,2")
        self.assertEqual(early["patched"], [[early["corrupted"]] * 2] * 3)
        late = self.numbers("patch", "--token", "c", "--what", "head", "--positions", "3,4")
        self.assertEqual(late["patched"], self.numbers("patch", "--token", "c", "--what", "head")["patched"])
        self.assert_one_error(self.look("patch", "--corrupted", "a cob", "--positions", "5"), 2, "--positions 5", "from 0 to 4")

    def test_ablations_of_each_are_those_by_name(self):
        swept = self.numbers("ablate", "--token", "b")
        self.assertEqual((swept["each"], len(swept["off"]), len(swept["off"][0])), ("head", 3, 2))
        for words, changed in ((["--heads", "2.1"], swept["off"][2][1]),
                               (["--layers", "1"], self.numbers("ablate", "--token", "b", "--each", "layer")["off"][1][0])):
            named = self.numbers("ablate", "--top_k", 1, "--token", "b", *words)
            self.assertEqual(named["answers"][0]["token"], "b")
            off = {answer["token"]: (answer["on"], answer["off"]) for answer in named["answers"]}["b"]
            self.assertAlmostEqual(off[0], swept["on"], places=6)
            self.assertAlmostEqual(off[1], changed, places=6)
        both = self.numbers("ablate", "--heads", "0.1,2.0", "--sublayers", "1.feed_forward")
        apart = self.numbers("ablate", "--heads", "0.1", "--heads", "2.0", "--sublayers", "1.feed_forward")
        self.assertEqual(both, apart)

    def test_nothing_is_wider_than_the_terminal(self):
        long = "a cab is a cab and"
        for columns in 60, 80, 140, 200:
            for verb, words in (*VERBS.items(), ("ablate", ["--heads", "0.1"])):
                words = [word.replace("a cob", long.replace("b", "d")) for word in words]
                with self.subTest(verb=verb, columns=columns):
                    printed = on_terminal(columns, verb, os.fspath(self.model), "--text", long, "--out_dir",
                                          os.fspath(self.out), "--format", "terminal", *words)
                    lines = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", printed).replace("\r", "\n").splitlines()
                    for line in lines:
                        if not line.startswith(("numbers:", "probability of", "rows:")):
                            self.assertLessEqual(len(line), columns, line)
                    # No column is lost: each position of the lens is in one of the blocks.
                    if verb == "lens":
                        self.assertEqual(sum(len(re.findall(r" \d\.\d\d(?=\s|$)", line)) for line in lines
                                             if line.startswith("    2 ")), len(long))

    def test_colours_on_a_terminal_alone(self):
        self.assertIn("\x1b[48;5;", on_terminal(80, "lens", os.fspath(self.model), "--text", "a cab", "--out_dir",
                                                os.fspath(self.out), "--format", "terminal"))
        self.assertNotIn("\x1b[", self.look("lens").out)

    def test_pictures(self):
        for verb, words in VERBS.items():
            self.assertEqual(self.look(verb, *words).code, 0)
            self.assertEqual((self.out / f"{verb}.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertIn("o→a", (self.out / "patch.svg").read_text())
        row = tiny_checkpoint.write_checkpoint(self.folder / "row", tokenizer=True, n_layer=1, n_positions=30)
        self.assertEqual(run("patch", row, "--text", "a" * 30, "--corrupted", "b" * 30, "--out_dir", self.out).code, 0)
        cells = (self.out / "patch.svg").read_text().split("gnuplot_plot_1")[1].split("</g>")[0]
        self.assertEqual(cells.count("<polygon"), 30)  # of a single row
        model, chars = self.folder / "backslash", "\\a b"

        def always_a_backslash(tensors):
            for name, (shape, numbers) in tensors.items():
                of_backslash = range(16 * sorted(chars).index("\\"), 16 * sorted(chars).index("\\") + 16)
                numbers[:] = [float(name.endswith("ln_f.bias") or (name.endswith("wte.weight") and i in of_backslash))
                              for i in range(len(numbers))]

        tiny_checkpoint.write_checkpoint(model, change=always_a_backslash, vocab_size=len(chars))
        tiny_checkpoint.write_char_tokenizer(model, chars)
        self.assertEqual(run("lens", model, "--text", "a b", "--out_dir", self.out).code, 0)
        self.assertEqual((self.out / "lens.svg").read_text().count("<text>\\</text>"), 9)  # two layers and the input, three tokens
        without = self.look("lens", PATH=os.fspath(self.folder))
        self.assertEqual(without.code, 0, without)
        self.assertIn("gnuplot is not installed", without.err)

    def test_faults_of_every_verb_name_the_flag(self):
        for verb, words in VERBS.items():
            with self.subTest(verb=verb):
                self.assert_one_error(self.look(verb, *words, text=""), 1, "--text", "empty")
                self.assert_one_error(self.look(verb, *words, text="a" * 25), 1, "--text", "25 tokens", "24")
                self.assert_one_error(self.look(verb, *words, "--json", "--format", "terminal"), 2, "--format")
                self.assert_one_error(self.look(verb, *words, "--text_pair", "b"), 2, "--text_pair")
                self.assert_one_error(self.look(verb, *words, "--target", "b"), 2, "--target")
                self.assert_one_error(self.look(verb, *words, "--token", "ab"), 2, "--token 'ab'", "a b")
                self.assert_one_error(self.look(verb, *words, "--token", "\udcff"), 2, "--token", "UTF-8")

    def test_faults_of_patch(self):
        self.assert_one_error(self.look("patch"), 2, "--corrupted")
        self.assert_one_error(self.look("patch", "--corrupted", "a cob", "--token", "Ω"), 2, "--token 'Ω'", "vocabulary")
        self.assert_one_error(self.look("patch", "--corrupted", "a ca"), 1, "--corrupted", "4 tokens", "--text has 5")
        self.assert_one_error(self.look("patch", "--corrupted", ""), 1, "--corrupted", "empty")
        self.assert_one_error(self.look("patch", "--corrupted", "a cab", "--token", "b"), 1, "--corrupted", "both texts")
        self.assert_one_error(self.look("patch", "--corrupted", "a cob", "--other", "bc"), 2, "--other 'bc'")
        self.assert_one_error(self.look("patch", "--corrupted", "a cob", "--what", "cross_head"), 2, "--what", "cross")
        self.assert_one_error(self.look("patch", "--corrupted", "a cob", "--stack", "encoder"), 2, "--stack encoder")

    def test_faults_of_ablate(self):
        for words, code, said in [
            (["--heads", "3.0"], 2, ["--heads 3.0", "layer from 0 to 2", "'3'"]),
            (["--heads", "0.2"], 2, ["--heads 0.2", "head from 0 to 1", "'2'"]),
            (["--heads", "1"], 2, ["--heads 1", "LAYER.HEAD"]),
            (["--heads", "1.0,"], 2, ["--heads '1.0,'", "empty"]),
            (["--heads", "a.0"], 2, ["--heads a.0", "'a'"]),
            (["--heads", "0.-1"], 2, ["--heads 0.-1", "'-1'"]),
            (["--layers", "3"], 2, ["--layers 3", "from 0 to 2"]),
            (["--layers", "99999999999999999999"], 2, ["--layers 99999999999999999999"]),
            (["--sublayers", "0.mlp"], 2, ["--sublayers 0.mlp", "feed_forward", "'mlp'"]),
            (["--sublayers", "0.head"], 2, ["--sublayers 0.head"]),
            (["--sublayers", "0.cross_attention"], 2, ["cross-attention"]),
            (["--cross_heads", "0.0"], 2, ["--cross_heads", "cross-attention"]),
            (["--layers", "1", "--with", "mean"], 2, ["--with mean"]),
            (["--each", "layer", "--with", "mean"], 2, ["--with mean"]),
            (["--each", "cross_head"], 2, ["--each cross_head"]),
            (["--each", "head", "--heads", "0.0"], 2, ["--each", "--heads"]),
            (["--top_k", "3"], 2, ["--top_k", "--heads"]),
            (["--stack", "encoder"], 2, ["--stack encoder"]),
        ]:
            with self.subTest(words=words):
                self.assert_one_error(self.look("ablate", *words), code, *said)

    def test_rollout_has_one_map_a_layer(self):
        result = self.look("attention", "--rollout", "--json")
        self.assertEqual(result.code, 0, result)
        (maps,) = json.loads((self.out / "attention.json").read_text())["maps"]
        self.assertEqual((maps["name"], maps["layers"], maps["heads"]), ("decoder-rollout", 3, 1))
        for layer in maps["weights"]:
            for i, row in enumerate(layer[0]):
                self.assertAlmostEqual(sum(row), 1, places=4)
                self.assertEqual(row[i + 1:], [0] * (4 - i))
        self.assertTrue((self.out / "decoder-rollout.png").exists())
        self.assert_one_error(self.look("attention", "--rollout", "--head", 1), 2, "--head 1")


if __name__ == "__main__":
    unittest.main()
