"""tzoo attention: what the heads look at, in numbers, JSON, pictures and a page."""

import base64
import html.parser
import json
import math
import os
import pathlib
import tempfile
import unittest

import tiny_checkpoint
from tzoo_runner import CommandTest, run

SCRIPT = "</script><script>alert('x')</script><!--"
CHARS = sorted(set(SCRIPT + " abcdefgh.\n'%`\"\\$"))
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": len(CHARS) + 1, "n_positions": 48,
          "n_embd": 12, "n_layer": 2, "n_head": 3}


class Scripts(html.parser.HTMLParser):
    """The scripts of a page, each with its attributes, and everything that would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.fetched, self.inside = [], [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append([dict(attrs), ""])
        self.fetched += [value for name, value in attrs if name in ("src", "href", "srcset")]

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1][1] += data


class LevelDecoder:
    """What encode_levels() (apps/plots/attention_maps.h) describes, read."""

    def __init__(self, text):
        self.data = base64.b64decode(text, validate=True) + bytes(8)
        self.range, self.next = 2**32 - 1, 5
        self.code = int.from_bytes(self.data[1:5], "big")
        self.above_0, self.above_1 = [1024] * 16, [1024] * 16
        self.bits = [[1024] * 256 for _ in range(4)]

    def bit(self, zero, at):
        bound = (self.range >> 11) * zero[at]
        bit = self.code >= bound
        if bit:
            self.code, self.range = self.code - bound, self.range - bound
            zero[at] -= zero[at] >> 4
        else:
            self.range = bound
            zero[at] += (2048 - zero[at]) >> 4
        while self.range < 2**24:
            self.range <<= 8
            self.code = self.code << 8 | self.data[self.next]
            self.next += 1
        return bit

    def level(self, left, above):
        left, above = ((0, 1, *[2] * 6, 3)[min(near, 8)] for near in (left, above))
        if not self.bit(self.above_0, 4 * left + above):
            return 0
        if not self.bit(self.above_1, 4 * left + above):
            return 1
        node = 1
        while node < 256:
            node = 2 * node + self.bit(self.bits[max(left, above)], node)
        return node - 256


def unpacked(maps):
    """The weights of a page's maps, head after head."""
    decoder, found = LevelDecoder(maps["weights"]), []
    for _ in range(maps["layers"] * maps["heads"]):
        before = [0] * len(maps["keys"])
        for row in range(len(maps["queries"])):
            here = [0] * len(maps["keys"])
            for column in range(min(row + 1, len(here)) if maps["causal"] else len(here)):
                here[column] = decoder.level(here[column - 1] if column > 0 else 0, before[column])
            found += [level / 255 for level in here]
            before = here
    return found


def flat(nested):
    return [leaf for part in nested for leaf in flat(part)] if isinstance(nested, list) else [nested]


class AttentionVerb(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "novels/final"
        self.out = self.folder / "out"
        self.model.mkdir(parents=True)
        tiny_checkpoint.write_json(self.model, "config.json", CONFIG)
        tiny_checkpoint.write_safetensors(self.model / "model.safetensors", tiny_checkpoint.gpt2_tensors(CONFIG))
        vocabulary = {char: i for i, char in enumerate(CHARS)}
        tiny_checkpoint.write_json(self.model, "tokenizer.json", {
            "version": "1.0", "decoder": {"type": "Fuse"}, "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
            "added_tokens": [{"id": len(CHARS), "content": "</script>", "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True}]})

    def attention(self, *words, text="a cab", **environment):
        return run("attention", "--model", self.model, "--text", text, "--out_dir", self.out, *words, **environment)

    def weights(self):
        return json.loads((self.out / "attention.json").read_text())

    def page(self):
        return Scripts((self.out / "attention.html").read_text())

    def test_the_numbers_are_those_of_the_weights(self):
        result = self.attention("--json")
        self.assertEqual(result.code, 0, result)
        (maps,) = json.loads(result.out)["maps"]
        self.assertEqual((maps["name"], maps["layers"], maps["heads"]), ("decoder", 2, 3))
        self.assertEqual(maps["queries"], ["a", " ", "c", "a", "b"])
        (whole,) = self.weights()["maps"]
        self.assertEqual(len(flat(whole["weights"])), 2 * 3 * 5 * 5)
        for pattern in maps["patterns"]:
            rows = whole["weights"][pattern["layer"]][pattern["head"]]
            for i, row in enumerate(rows):
                self.assertAlmostEqual(sum(row), 1, places=4)
                self.assertEqual(row[i + 1:], [0] * (4 - i), "a decoder sees the future")
                self.assertEqual(max(row), row[pattern["strongest_key"][i]])
            entropy = -sum(w * math.log2(w) for w in flat(rows) if w > 0) / 5
            self.assertAlmostEqual(pattern["entropy"], entropy, places=3)
            self.assertAlmostEqual(pattern["itself"], sum(rows[i][i] for i in range(5)) / 5, places=4)
            self.assertAlmostEqual(pattern["previous"], sum(rows[i][i - 1] for i in range(1, 5)) / 4, places=4)
            self.assertEqual(pattern["next"], 0)
            self.assertAlmostEqual(pattern["first"], sum(row[0] for row in rows) / 5, places=4)
            self.assertAlmostEqual(pattern["duplicate"], rows[3][0], places=4)  # the second "a"
            self.assertAlmostEqual(pattern["induction"], rows[3][1], places=4)

    def test_layer_and_head_choose_what_is_printed(self):
        everything = self.attention().out.split("\n\n")
        self.assertEqual(len(everything[0].splitlines()), 2 + 2 * 3)
        self.assertTrue(everything[1].startswith("layer 0, head 0: where each token looks most\n"), everything[1])
        chosen = self.attention("--layer", 1, "--head", 2).out.split("\n\n")
        self.assertEqual(chosen[0].splitlines()[2:], everything[0].splitlines()[-1:])
        self.assertTrue(chosen[1].startswith("layer 1, head 2:"), chosen[1])
        (maps,) = self.weights()["maps"]
        for i, line in enumerate(chosen[1].splitlines()[2:]):
            row = maps["weights"][1][2][i]
            self.assertEqual(line.split()[-1], f"{max(row):.3f}")
            self.assertEqual(int(line.split()[2]), row.index(max(row)))

    def test_the_page_holds_the_same_weights_and_fetches_nothing(self):
        self.assertEqual(self.attention("--layer", 1, "--head", 2).code, 0)
        page = self.page()
        self.assertEqual(page.fetched, [])
        self.assertEqual(len(page.scripts), 2)
        self.assertEqual(page.scripts[0][0], {"id": "data", "type": "application/json"})
        data = json.loads(page.scripts[0][1])
        self.assertEqual((data["layer"], data["head"], data["model"]), (1, 2, "novels/final (gpt2)"))
        (maps,), (whole,) = data["maps"], self.weights()["maps"]
        self.assertEqual(maps["queries"], ["a", "␣", "c", "a", "b"])
        self.assertTrue(maps["causal"])
        self.assertEqual(len(maps["patterns"]), 6)
        for found, expected in zip(unpacked(maps), flat(whole["weights"]), strict=True):
            self.assertAlmostEqual(found, expected, delta=0.5 / 255 + 1e-6)
        self.assertNotIn(str(self.folder), (self.out / "attention.html").read_text())
        self.assertEqual(self.attention().code, 0)
        data = json.loads(self.page().scripts[0][1])
        self.assertEqual((data["layer"], data["head"]), (None, None))  # the page chooses

    def test_text_and_tokens_are_data_never_markup(self):
        result = self.attention(text=SCRIPT)
        self.assertEqual(result.code, 0, result)
        page = self.page()
        self.assertEqual(len(page.scripts), 2)
        data = json.loads(page.scripts[0][1])
        self.assertEqual(data["text"], SCRIPT)
        self.assertEqual(data["maps"][0]["queries"][0], "</script>")

    def test_pictures_have_every_label_whatever_it_holds(self):
        result = self.attention(text="'%`\"\\$\n")
        self.assertEqual(result.code, 0, result)
        for stem in "decoder", "decoder-heads":
            self.assertEqual((self.out / f"{stem}.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        svg = (self.out / "decoder.svg").read_text()
        for label in "'", "%", "`", '"', "\\", "$", "↵":
            self.assertEqual(svg.count(f"<text>{label}</text>"), 2, label)  # on both axes

    def test_a_terminal_shows_the_maps_as_text(self):
        result = self.attention("--layer", 1, "--head", 2, "--format", "terminal", PATH=os.fspath(self.folder))
        self.assertEqual(result.code, 0, result)
        picture = result.out[result.out.index("decoder attention, layer 1, head 2"):].splitlines()
        (maps,) = self.weights()["maps"]
        for query, (line, row) in enumerate(zip(picture[2:7], maps["weights"][1][2], strict=True)):
            self.assertEqual(line.split()[1:], [f"{weight:.2f}" if key <= query else "·" for key, weight in enumerate(row)])
        self.assert_one_error(self.attention("--json", "--format", "terminal"), 2, "--format")

    def test_a_chosen_head_is_drawn_alone(self):
        show = ["attention", "--model", self.model, "--text", "abc", "--out_dir", self.out, "--format", "terminal"]
        self.assertIn("every head", run(*show).out)
        one = run(*show, "--layer", 1, "--head", 2).out
        self.assertIn("layer 1, head 2", one)
        self.assertNotIn("heads", one.split("where each token looks most")[1])
        self.assertIn("the chosen heads", run(*show, "--layer", 1).out)

    def test_faults_name_the_flag(self):
        self.assert_one_error(self.attention(text="a" * 49), 1, "--text", "49 tokens", "48")
        self.assertEqual(self.attention(text="a" * 48).code, 0)
        self.assert_one_error(self.attention(text=""), 1, "--text", "empty")
        self.assert_one_error(self.attention("--layer", 2), 2, "--layer 2", "from 0 to 1")
        self.assert_one_error(self.attention("--head", 3), 2, "--head 3", "from 0 to 2")
        self.assert_one_error(self.attention("--text_pair", "b"), 2, "--text_pair", "encoder")
        self.assert_one_error(self.attention("--target", "b"), 2, "--target", "encoder-decoder")

    def test_a_folder_that_cannot_be_written_costs_the_files_only(self):
        numbers = self.attention().out
        blocked = self.folder / "file"
        blocked.write_text("a file")
        result = run("attention", "--model", self.model, "--text", "a cab", "--out_dir", blocked / "below")
        self.assertEqual(result.out, numbers)
        self.assert_one_error(result, 1, str(blocked))

    def test_without_gnuplot_the_page_and_the_numbers_still_come(self):
        numbers = self.attention().out
        for path in self.out.iterdir():
            path.unlink()
        result = self.attention(PATH=os.fspath(self.folder))
        self.assertEqual((result.code, result.out), (0, numbers), result)
        self.assertIn("gnuplot is not installed", result.err)
        self.assertEqual(sorted(os.listdir(self.out)), ["attention.html", "attention.json"])


if __name__ == "__main__":
    unittest.main()
