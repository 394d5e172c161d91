"""The page of tzoo attention in a real browser, beside the attention that transformers computes."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import torch
import transformers

from browser import Browser
from test_attention import WORDS, randomized, tokenizer

TEXT = "the cat sat on a mat on the dog"


def saved(directory, model, **special):
    model.save_pretrained(directory)
    tokenizer(**special).save_pretrained(directory)
    return model


class AttentionPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        torch.manual_seed(2)
        config = transformers.BertConfig(vocab_size=10, hidden_size=12, num_hidden_layers=3, num_attention_heads=2,
                                         intermediate_size=16, max_position_embeddings=20)
        with torch.no_grad():
            cls.bert = saved(cls.folder / "bert", randomized(transformers.BertModel._from_config(config, attn_implementation="eager")),
                             pairs=True, cls_token="[CLS]", sep_token="[SEP]")
            ids = torch.tensor([[1, *(WORDS.index(word) for word in TEXT.split()), 2]])
            cls.weights = torch.stack(cls.bert(ids, output_attentions=True).attentions)[:, 0]  # [L, H, T, T]
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self, *words, model="bert", text=TEXT):
        out = self.folder / "out"
        done = subprocess.run([os.environ["TZOO"], "attention", self.folder / model, "--text", text, "--out_dir", out, *words],
                              env={**os.environ, "PATH": ""}, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.browser.open((out / "attention.html").as_uri())
        return out / "attention.html"

    def tearDown(self):
        self.assertEqual(self.browser.faults(), [])

    def title(self):
        return self.browser.one("#one-title").text

    def point(self, canvas, x, y):
        self.browser.script(
            "const box = arguments[0].getBoundingClientRect(); arguments[0].dispatchEvent(new PointerEvent('pointermove',"
            " {clientX: box.left + arguments[1], clientY: box.top + arguments[2]}))", self.browser.one(canvas), x, y)
        return self.browser.one("#readout").text

    def test_it_opens_on_the_head_that_picks_out_tokens(self):
        file = self.open()
        queries = self.weights.shape[-1]
        far = torch.tensor([[0 < k < queries - 1 and abs(q - k) > 2 for k in range(queries)] for q in range(queries)])
        score = ((self.weights - self.weights.mean(-2, keepdim=True)) * far).amax(-1).mean(-1)
        layer, head = divmod(score.argmax().item(), 2)
        self.assertEqual(self.title(), f"Layer {layer}, head {head}")
        self.assertIn("opens here", self.browser.one("#why").text)
        self.assertEqual(self.browser.one("h1").text, "Attention bert (bert)")  # its folder and its family
        self.assertNotIn(str(self.folder), file.read_text())
        self.open("--layer", "2", "--head", "1")
        self.assertEqual(self.title(), "Layer 2, head 1")
        self.assertFalse(self.browser.one("#why").is_displayed())

    def test_a_token_under_the_pointer_shows_what_it_attends_to(self):
        self.open("--layer", "1", "--head", "0")
        said = self.point("#lines", 4, 2 + 22 * 2.5)  # the third token on the left
        row = self.weights[1, 0, 2]
        tokens = ["[CLS]", *TEXT.split(), "[SEP]"]
        best = row.topk(4).indices.tolist()
        expected = [f"{i} {tokens[i]} {row[i]:.3f}" for i in best]
        self.assertTrue(said.startswith("2 cat attends to "), said)
        for found, wanted in zip(said.removeprefix("2 cat attends to ").split(", "), expected, strict=True):
            self.assertEqual(found.split()[:2], wanted.split()[:2])
            self.assertAlmostEqual(float(found.split()[2]), float(wanted.split()[2]), delta=0.003)
        width = self.browser.script("return document.getElementById('lines').clientWidth")
        said = self.point("#lines", width - 4, 2 + 22 * 3.5)
        column = self.weights[1, 0, :, 3]
        self.assertTrue(said.startswith("3 sat is attended by "), said)
        index, _, weight = said.removeprefix("3 sat is attended by ").split(", ")[0].split()
        self.assertAlmostEqual(float(weight), column.max().item(), delta=0.003)
        self.assertAlmostEqual(column[int(index)].item(), column.max().item(), delta=0.005)

    def test_the_mean_of_a_layers_heads_and_the_order_by_pattern(self):
        self.open()
        self.browser.one('#grid [data-place="2.-1"]').click()
        self.assertEqual(self.title(), "Layer 2, mean of its heads")
        mean = self.weights[2].mean(0)
        first = float(re.search(r"first (\S+?),", self.browser.one("#pattern").text)[1])
        self.assertAlmostEqual(first, mean[:, 0].mean().item(), delta=0.003)
        itself = float(re.search(r"itself (\S+?),", self.browser.one("#pattern").text)[1])
        self.assertAlmostEqual(itself, mean.diagonal().mean().item(), delta=0.003)
        tokens = ["[CLS]", *TEXT.split(), "[SEP]"]
        repeats = torch.tensor([[k < q and tokens[k] == tokens[q] for k in range(len(tokens))] for q in range(len(tokens))])
        for name, pairs in (("duplicate", repeats), ("induction", repeats.roll(1, dims=1))):
            share = float(re.search(rf"{name} (\S+?)(,|$)", self.browser.one("#pattern").text)[1])
            self.assertAlmostEqual(share, (mean * pairs).sum().item() / repeats.any(1).sum().item(), delta=0.003)
        self.browser.script("const s = document.getElementById('order'); s.value = 'itself'; s.dispatchEvent(new Event('change'))")
        shown = [caption.text.split(" · ") for caption in self.browser.all("#grid figcaption")]
        own = {f"{layer}.{head}": self.weights[layer, head].diagonal().mean().item() for layer in range(3) for head in range(2)}
        self.assertEqual({name for name, _ in shown}, set(own))
        for (before, _), (after, _) in zip(shown, shown[1:]):
            self.assertGreater(own[before], own[after] - 2e-4)
        for name, value in shown:
            self.assertAlmostEqual(float(value), own[name], delta=0.0051)

    def test_special_tokens_are_hidden(self):
        self.open("--layer", "0", "--head", "0")
        self.assertIn("11 by 11 tokens", self.browser.one("#heat").get_attribute("aria-label"))
        self.browser.one("#special").click()
        self.assertIn("9 by 9 tokens", self.browser.one("#heat").get_attribute("aria-label"))
        self.assertTrue(self.point("#lines", 4, 2 + 22 * 0.5).startswith("1 the attends to "))
        rows = self.browser.script("return [...document.querySelectorAll('#most tr')].map((row) => row.cells[1].textContent)")
        self.assertEqual(rows, TEXT.split())
        self.open(text="")
        self.browser.one("#special").click()  # these two alone stay
        self.assertIn("2 by 2 tokens", self.browser.one("#heat").get_attribute("aria-label"))

    def test_buttons_and_keys_walk_through_the_heads(self):
        self.open("--layer", "0", "--head", "1")
        self.browser.one("#next").click()
        self.assertEqual(self.title(), "Layer 1, head 0")
        self.browser.one("#previous").click()
        self.assertEqual(self.title(), "Layer 0, head 1")

        def press(key):
            self.browser.script("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key)

        press("ArrowDown")
        self.assertEqual(self.title(), "Layer 1, head 1")
        press("j")
        press("j")
        self.assertTrue(self.browser.one("#readout").text.startswith("1 the attends to "))
        press("Escape")
        self.assertEqual(self.browser.one("#readout").text, "")

    def test_every_width_and_both_schemes(self):
        self.open()
        self.addCleanup(self.browser.resize, 1280, 1000)
        for width in (390, 1280, 2560):
            for dark in (False, True):
                self.browser.resize(width, 900, dark)
                self.browser.wait(lambda width=width: self.browser.script("return innerWidth") == width)
                self.assertLessEqual(self.browser.script("return document.documentElement.scrollWidth"), width)
                self.assertEqual(self.browser.hindrances(), [])

    @torch.no_grad()
    def test_256_tokens_of_gpt2s_heads_take_two_megabytes(self):
        # 3 of GPT-2 small's 12 layers: a quarter of its maps.
        config = transformers.GPT2Config(vocab_size=10, n_positions=256, n_embd=96, n_layer=3, n_head=12, bos_token_id=None,
                                         eos_token_id=None)
        model = saved(self.folder / "gpt2", randomized(transformers.GPT2LMHeadModel._from_config(config, attn_implementation="eager")))
        ids = torch.randint(3, 10, (1, 256))
        file = self.open("--layer", "2", "--head", "5", model="gpt2", text=" ".join(WORDS[i] for i in ids[0]))
        self.assertLess(file.stat().st_size, 2_000_000 / 4)
        self.browser.wait(self.title)
        weights = model(ids, output_attentions=True).attentions[2][0, 5]
        said = self.point("#lines", 4, 2 + 22 * 200.5)
        self.assertTrue(said.startswith(f"200 {WORDS[ids[0, 200]]} attends to "), said)
        self.assertAlmostEqual(float(said.split(" attends to ")[1].split(", ")[0].split()[-1]), weights[200].max().item(), delta=0.003)


if __name__ == "__main__":
    unittest.main()
