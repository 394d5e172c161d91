"""The page of tzoo serve in a real browser: what it shows is what transformers computes."""

import pathlib
import re
import shutil
import sys
import tempfile
import unittest
from xml.etree import ElementTree

import torch
import transformers
from selenium.webdriver.common.keys import Keys

import test_analysis as analysis
from browser import Browser
from test_analysis import CLEAN, CORRUPTED, TARGET, WORDS, hf
from text_models import byte_level, tzoo

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server  # noqa: E402

MARKUP = "<img src=x onerror=alert(1)><b>"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.references = {"gpt2": analysis.gpt2(5), "later": analysis.gpt2(6), "bert": analysis.bert(5), "t5": analysis.t5(5)}
        for name, reference in cls.references.items():
            reference.model.save_pretrained(cls.folder / name)
            analysis.save_tokenizer(cls.folder / name)
            reference.model.double()
        tokens = byte_level()
        tokens.add_tokens([MARKUP])
        hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(
            n_positions=512, n_embd=12, n_layer=2, n_head=2, vocab_size=len(tokens), bos_token_id=None, eos_token_id=None),
            3).save_pretrained(cls.folder / "bytes")
        tokens.save_pretrained(cls.folder / "bytes")
        hf.random_model(transformers.T5ForConditionalGeneration, transformers.T5Config(
            vocab_size=len(tokens), d_model=12, d_kv=6, d_ff=16, num_layers=2, num_heads=2, pad_token_id=0, decoder_start_token_id=0,
            eos_token_id=None), 3).save_pretrained(cls.folder / "spelled")
        tokens.save_pretrained(cls.folder / "spelled")
        (cls.folder / "letters.txt").write_text("the cat sat on a mat")
        made = tzoo("tokenizer", "train", "--kind", "char", "--input", cls.folder / "letters.txt", "--out_dir", cls.folder / "letters")
        assert made.returncode == 0, made.stderr
        hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(
            n_positions=32, n_embd=12, n_layer=2, n_head=2, vocab_size=len(set("the cat sat on a mat")), bos_token_id=None,
            eos_token_id=None), 3).save_pretrained(cls.folder / "letters")
        cls.scored = {}
        for name, problem, count in (("several", "multi_label_classification", 3), ("reranker", None, 1)):
            cls.scored[name] = hf.random_model(transformers.BertForSequenceClassification, transformers.BertConfig(
                vocab_size=len(WORDS), hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
                max_position_embeddings=20, pad_token_id=0, num_labels=count, problem_type=problem), 4)
            cls.scored[name].save_pretrained(cls.folder / name)
            analysis.save_tokenizer(cls.folder / name)
        models = [word for name in ("gpt2", "later", "bert", "t5", "bytes", "letters", "spelled", *cls.scored) for word in ("--model", cls.folder / name)]
        cls.server = Server(*models)
        cls.addClassCleanup(cls.server.close)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.refused = False  # requests of this test
        self.browser.open(f"http://127.0.0.1:{self.server.port}/")
        self.browser.wait(lambda: self.bars())

    def tearDown(self):
        # Chromium itself notes each request that is refused.
        noted = [fault for fault in self.browser.faults() if not (self.refused and ("400" in fault or "401" in fault))]
        self.assertEqual(noted, [])

    def bars(self, host="#bars"):
        """name -> (before, after) or (now,), as shares; without the line of all others."""
        found = {}
        for row in self.browser.script(
                "return [...document.querySelectorAll(arguments[0])].map((li) =>"
                " [li.querySelector('.name').firstChild.textContent, li.querySelector('.value').textContent])", f"{host} li"):
            if " others" not in row[0]:
                found[row[0].strip("␣")] = tuple(float(part.strip(" %")) / 100 for part in row[1].split("→"))
        return found

    def type(self, field, text):
        """As a person types: the field is chosen, emptied, written."""
        self.browser.one(field).send_keys(Keys.CONTROL, "a", Keys.NULL, text)

    def choose(self, select, value):
        self.browser.script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))",
                            self.browser.one(select), value)

    def slide(self, name, value):
        self.browser.script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
                            self.browser.one(f"#{name}"), value)

    def tokens(self, host="#tokens"):
        return [int(chip.text) for chip in self.browser.all(f"{host} small")]

    def answer(self, name, text=CLEAN, changes=(), position=-1):
        with torch.no_grad():
            return self.references[name].run(text, changes)[0][position]

    def assert_bars(self, *expected, host="#bars"):
        """The bars show these distributions over WORDS, to the digits that are shown."""
        def agrees():
            bars = self.bars(host)
            for word, shares in bars.items():
                wanted = [distribution[WORDS.index(word)].item() for distribution in expected]
                if len(wanted) != len(shares) or any(abs(a - b) > 6e-4 for a, b in zip(shares, wanted)):
                    return False
            return len(bars) >= 10

        try:
            self.browser.wait(agrees, seconds=20)
        except Exception:
            self.fail(f"{self.bars(host)} instead of {[dict(zip(WORDS, d.tolist())) for d in expected]}")

    def test_a_text_is_typed_and_a_candidate_appended(self):
        self.type("#text", CLEAN)
        self.assert_bars(self.answer("gpt2").softmax(-1))
        ids = [WORDS.index(word) for word in CLEAN.split()]
        self.assertEqual(self.tokens(), ids)
        best = self.answer("gpt2").argmax().item()
        self.browser.one("#bars button").click()
        self.browser.wait(lambda: self.tokens() == [*ids, best])
        longer = f"{CLEAN} {WORDS[best]}"
        self.assert_bars(self.answer("gpt2", longer).softmax(-1))
        self.assertEqual(self.browser.one("#text").get_property("value").split(), longer.split())
        # The answer after an earlier token, and back.
        self.browser.all("#tokens button")[2].click()
        self.assert_bars(self.answer("gpt2", longer, position=2).softmax(-1))
        self.assertIn("after position 2", self.browser.one("#answer-title").text)
        self.browser.one("#undo").click()
        self.browser.wait(lambda: self.tokens() == ids)

    def test_sliders_act_without_the_server(self):
        self.type("#text", CLEAN)
        logits = self.answer("gpt2")
        self.assert_bars(logits.softmax(-1))
        before = re.findall(r'path="/look".*', self.server.request("GET", "/metrics")[1])
        self.slide("temperature", 0.5)
        sharper = (logits / 0.5).softmax(-1)
        self.assert_bars(sharper)

        def kept(distribution, keep):
            left = torch.where(keep, distribution, 0)
            return left / left.sum()

        self.slide("top_k", 4)
        top = kept(sharper, sharper >= sharper.topk(4).values[-1])
        self.assert_bars(top)
        self.slide("top_p", 0.6)
        ordered, indices = top.sort(descending=True)
        inside = torch.zeros_like(top, dtype=torch.bool)
        inside[indices[ordered.cumsum(0) - ordered < 0.6]] = True
        nucleus = kept(top, inside)
        self.assert_bars(nucleus)
        self.slide("top_p", 1)
        self.slide("top_k", 0)
        self.slide("min_p", 0.3)
        self.assert_bars(kept(sharper, sharper >= 0.3 * sharper.max()))
        self.assertEqual(re.findall(r'path="/look".*', self.server.request("GET", "/metrics")[1]), before)
        self.assertTrue(before)

    def open_block(self, layer):
        block = self.browser.one(f'#blocks [data-layer="{layer}"]')
        if block.get_attribute("aria-expanded") == "false":
            block.click()
        self.browser.wait(lambda: self.browser.one("#opened-title").text == f"Block {layer}")

    def test_a_head_is_switched_off(self):
        self.type("#text", CLEAN)
        on = self.answer("gpt2")
        self.assert_bars(on.softmax(-1))
        self.open_block(1)
        self.browser.wait(lambda: len(self.browser.all("#heads .head")) == 2)
        self.browser.one('#heads [data-site="heads 1.0"]').click()
        off = self.answer("gpt2", changes=[(("head", 1, 0), torch.zeros_like)])
        self.assert_bars(on.softmax(-1), off.softmax(-1))
        self.assertEqual(self.chips(), ["off head 0 of block 1"])
        moved = float(re.search(r"by (\S+) bits", self.browser.one("#moved").text)[1])
        divergence = (on.softmax(-1) * (on.log_softmax(-1) - off.log_softmax(-1))).sum().item() / 0.6931471805599453
        self.assertAlmostEqual(moved, divergence, delta=0.01 * divergence)
        self.browser.one('#blocks [data-site="sublayers 0.feed_forward"]').click()
        both = self.answer("gpt2", changes=[(("head", 1, 0), torch.zeros_like), (("feed_forward", 0), torch.zeros_like)])
        self.assert_bars(on.softmax(-1), both.softmax(-1))
        self.assertEqual(self.chips(), ["off head 0 of block 1", "off feed-forward of block 0"])
        # A chip is taken away: its part is on again, also on the drawing.
        self.browser.all("#chips .chip")[1].click()
        self.assert_bars(on.softmax(-1), off.softmax(-1))
        self.assertTrue(self.browser.one('#blocks [data-site="sublayers 0.feed_forward"]').is_selected())
        self.browser.one('#blocks [data-site="layers 0"]').click()
        self.browser.wait(lambda: self.chips() == ["off head 0 of block 1", "off block 0"])
        self.browser.one("#all-on").click()
        self.assert_bars(on.softmax(-1))
        self.assertEqual(self.chips(), [])

    def test_a_state_is_patched(self):
        self.type("#text", CLEAN)
        on = self.answer("gpt2")
        self.assert_bars(on.softmax(-1))
        self.choose("#patch-layer", "1")
        self.type("#patch-text", CORRUPTED)
        _, source, _ = self.references["gpt2"].run(CORRUPTED)
        patched = self.answer("gpt2", changes=[(("residual", 1), lambda _: source["residual", 1])])
        self.assert_bars(on.softmax(-1), patched.softmax(-1))
        self.assertIn("6 of 6 tokens: with all of them patched, the blocks after block 1 read the other text", self.browser.one("#patch-count").text)
        self.assertEqual(self.chips(), ["patched residual stream of block 1, all tokens"])
        self.choose("#patch-position", "4")
        self.browser.wait(lambda: self.browser.one("#patch-count").text == "6 of 6 tokens")
        self.choose("#patch-position", "")
        # Two texts of other lengths: the counter says so at the field, and the answer is that of no patch.
        self.type("#patch-text", "the cat")
        self.browser.wait(lambda: self.browser.one("#patch-count").text.startswith("2 of 6 tokens: nothing is patched"))
        self.assert_bars(on.softmax(-1))
        self.assertEqual(self.chips(), [])
        self.type("#patch-text", CORRUPTED)
        self.assert_bars(on.softmax(-1), patched.softmax(-1))
        self.browser.all("#chips .chip")[0].click()
        self.assert_bars(on.softmax(-1))
        self.assertEqual(self.browser.one("#patch-text").get_property("value"), "")

    def chips(self):
        return [chip.text.removesuffix(" ✕") for chip in self.browser.all("#chips .chip")]

    def assert_said_at(self, place, words):
        """The error stands there and nowhere else, and what the last answer said is dimmed and out of reach."""
        said = self.browser.wait(lambda: (found := self.browser.one(f"#{place}-error").text) and words in found and found)
        self.assertNotIn("'", said.replace("'s", ""))  # no field of the API
        shown = [each.get_attribute("id") for each in self.browser.all("p.error") if each.is_displayed()]
        self.assertEqual(shown, [f"{place}-error"])
        self.assertEqual(self.browser.one("#status").text, "")
        self.assertEqual(self.dimmed(), [True] * 4)
        self.assertEqual(self.browser.hindrances(), [])
        self.assertFalse(self.browser.one("#run").is_enabled())

    def dimmed(self):
        return self.browser.script("return ['#tokens', '#lists', '#inside', '#blocks .says'].map((each) =>"
                                   " getComputedStyle(document.querySelector(each)).opacity < 0.5)")

    def test_an_error_stands_at_its_cause(self):
        self.refused = True
        for text, words in [("", "at least one token"), ("the " * 17, "17 tokens are too many: at most 16")]:
            self.type("#text", CLEAN)
            self.assert_bars(self.answer("gpt2").softmax(-1))
            self.assertEqual(self.dimmed(), [False] * 4)
            self.type("#text", text + Keys.BACK_SPACE * (text == ""))
            self.assert_said_at("text", words)
            self.assertEqual(self.browser.one("#text").get_attribute("aria-invalid"), "true")
            self.browser.one("#text").send_keys(Keys.CONTROL, Keys.ENTER)  # nothing to go on from
            self.assertEqual(self.browser.one("#run").text, "Run")
            self.assertEqual(self.browser.one("#text").get_property("value"), text)
        # What causes it may be a control; taking it back is the next good answer.
        self.type("#text", CLEAN)
        ids = [WORDS.index(word) for word in CLEAN.split()]
        self.browser.wait(lambda: self.tokens() == ids and self.dimmed() == [False] * 4)
        self.browser.one('#blocks [data-site="layers 1"]').click()
        self.browser.wait(lambda: self.chips() == ["off block 1"])
        self.choose("#with", "mean")
        self.assert_said_at("with", "A whole block has no mean")
        self.browser.one("#chips .chip").click()
        self.assert_bars(self.answer("gpt2").softmax(-1))
        self.assertEqual(self.dimmed(), [False] * 4)
        self.assertFalse(self.browser.one("#with-error").is_displayed())
        # A character that the model does not know, in either text.
        self.choose("#model", "letters")
        self.type("#text", "the cat")
        self.browser.wait(lambda: len(self.tokens()) == 7)
        self.type("#text", "the \u2603 cat")
        self.assert_said_at("text", "does not know \u201c\u2603\u201d (U+2603)")
        self.type("#text", "the cat")
        self.browser.wait(lambda: self.dimmed() == [False] * 4)
        self.type("#patch-text", "the \u2603at")
        self.browser.wait(lambda: "\u2603" in self.browser.one("#patch-error").text)
        self.assertEqual(self.dimmed(), [False] * 4)  # the answer is true without the patch
        self.choose("#model", "t5")
        self.type("#text", "")
        self.type("#text", Keys.BACK_SPACE)
        self.assert_said_at("text", "at least one token")

    def test_at_the_end_of_the_context_the_text_slides(self):
        self.refused = True  # the request that finds the end
        self.type("#text", "the cat " * 8)
        ids = [WORDS.index("the"), WORDS.index("cat")] * 8
        self.browser.wait(lambda: self.tokens() == ids)
        self.assertFalse(self.browser.one("#slid").is_displayed())
        best = int(self.browser.one("#bars small").text)
        self.browser.one("#bars button").click()
        kept = [*ids, best][-8:]  # half of the 16 tokens, as generate keeps them
        self.browser.wait(lambda: self.tokens() == kept)
        text = " ".join(WORDS[i] for i in kept)
        self.assert_bars(self.answer("gpt2", text).softmax(-1))
        self.assertEqual(self.browser.one("#text").get_property("value").split(), text.split())
        self.assertIn("reads at most 16 tokens", self.browser.one("#slid").text)
        self.assertIn("last 8 tokens", self.browser.one("#slid").text)
        # Run goes on and slides again, to the greedy tokens; nothing is appended that the page does not show.
        self.slide("temperature", 0)
        self.browser.one("#run").click()
        for _ in range(60):
            kept.append(self.answer("gpt2", " ".join(WORDS[i] for i in kept)).argmax().item())
            kept = kept if len(kept) <= 16 else kept[-8:]
        self.browser.wait(lambda: self.tokens() == kept and self.browser.one("#run").text == "Run")
        self.assertEqual(self.dimmed(), [False] * 4)

    def test_the_first_sight(self):
        self.browser.resize(1280, 820)
        self.addCleanup(self.browser.resize, 1280, 1000)
        self.assertEqual(self.browser.one("#opened-title").text, "Block 0")
        self.assertTrue(self.browser.one("#inside").is_displayed())
        words = self.browser.one("body").text
        for old in ("Slide", "Beside it", "nothing\n", "Off means", " kept"):
            self.assertNotIn(old, words)
        sizes = []
        for width in (1280, 2560):
            self.browser.resize(width, 820)
            sizes.append(self.browser.wait(lambda width=width: self.browser.script(
                "if (innerWidth != arguments[0]) return null;"
                "const box = (name) => document.querySelector(name).getBoundingClientRect();"
                "return [parseFloat(getComputedStyle(document.body).fontSize), box('#left').width, box('#heads canvas').width,"
                " box('#blocks').bottom < 820 && box('#lists').bottom < 820, box('#opened').right / innerWidth]", width)))
        for small, large in zip(sizes[0][:3], sizes[1][:3]):
            self.assertGreater(large, 1.3 * small)
        for *_, fits, right in sizes[:1]:
            self.assertTrue(fits)
            self.assertGreater(right, 0.95)

    def test_labels_are_beside_the_bars(self):
        self.addCleanup(self.browser.resize, 1280, 1000)
        self.browser.one('#blocks [data-site="sublayers 0.feed_forward"]').click()
        self.choose("#other", "later")
        self.browser.wait(lambda: self.bars("#other-bars"))
        for width in (390, 1280, 2560):
            self.browser.resize(width, 900)
            self.browser.wait(lambda width=width: self.browser.script("return innerWidth") == width)
            over = self.browser.script(
                "const box = (part) => part.getBoundingClientRect();"
                "return [...document.querySelectorAll('.bars .track')].filter((track) => box(track.previousSibling).right > box(track).left"
                " || box(track).right > box(track.nextSibling).left || box(track).width < 20"
                " || track.nextSibling.scrollWidth > track.nextSibling.clientWidth + 1).length")
            self.assertEqual(over, 0)
        # Each list has an axis, of one scale for both models, and before and after a legend.
        ends = [each.text for each in self.browser.all(".axis .most")]
        self.assertEqual(len(ends), 2)
        self.assertEqual(ends[0], ends[1])
        most = max(share for host in ("#bars", "#other-bars") for shares in self.bars(host).values() for share in shares)
        self.assertAlmostEqual(float(ends[0].strip(" %")) / 100, most, delta=1e-9)
        self.assertIn("before", self.browser.one("#bars-legend").text)

    def test_an_opened_block(self):
        self.type("#text", CLEAN)
        self.assert_bars(self.answer("gpt2").softmax(-1))
        self.open_block(0)
        reference = self.references["gpt2"]
        _, seen, _ = reference.run(CLEAN)
        with torch.no_grad(), hf.float64():
            p = reference.readout(seen["residual", 0])[0, -1].softmax(-1)

        def lens():
            rows = self.browser.script("return [...document.querySelectorAll('#lens tbody tr')].map((row) => row.innerText)")
            return [row.split("\t") for row in rows]

        self.browser.wait(lambda: len(lens()) == 5)
        for row, at in zip(lens(), p.topk(5).indices, strict=True):
            self.assertEqual(row[0].strip("␣"), WORDS[at])
            self.assertAlmostEqual(float(row[1].strip(" %")) / 100, p[at].item(), delta=6e-4)
        # A head's numbers, and bertviz's gesture: a token under the pointer says what it attends to.
        weights = reference.forward(CLEAN, output_attentions=True).attentions[0][0]
        # Below each head, what it looks at most, if it is more than 0.3.
        for said, of in zip([each.text for each in self.browser.all("#heads small")], weights, strict=True):
            shares = {"first": of[:, 0], "itself": of.diagonal(), "previous": of.diagonal(-1), "next": of.diagonal(1)}
            name, share = max(((name, each.mean().item()) for name, each in shares.items()), key=lambda each: each[1])
            if abs(share - 0.3) > 0.01:
                self.assertEqual(said.split(" ")[0], name if share > 0.3 else "")
            if said:
                self.assertAlmostEqual(float(said.split(" ")[1]), share, delta=0.011)
        self.browser.one('#heads [data-head="1"]').click()
        self.browser.wait(lambda: self.browser.one("#pattern").text.startswith("Head 1:"))
        first = float(re.search(r"first (\S+?),", self.browser.one("#pattern").text)[1])
        self.assertAlmostEqual(first, weights[1, :, 0].mean().item(), delta=0.011)
        canvas = self.browser.one("#lines")
        self.browser.script("arguments[0].dispatchEvent(new PointerEvent('pointermove', {clientX: "
                            "arguments[0].getBoundingClientRect().left + 5, clientY: "
                            "arguments[0].getBoundingClientRect().top + 2 + 22 * 3.5}))", canvas)
        said = self.browser.wait(lambda: self.browser.one("#readout").text)
        strongest = weights[1, 3].argmax().item()
        self.assertRegex(said, rf"^3 ␣?on attends to ␣?{re.escape(WORDS[analysis.ids_of(CLEAN)[0, strongest]])} ")
        self.assertAlmostEqual(float(said.split(" attends to ")[1].split(", ")[0].split()[-1]), weights[1, 3].max().item(), delta=0.003)
        # The same by keys.
        canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.browser.wait(lambda: re.match("1 ␣?cat attends to ", self.browser.one("#readout").text))
        drawn = self.browser.script("const c = document.getElementById('lines'); return c.getContext('2d')"
                                    ".getImageData(0, 0, c.width, c.height).data.some((byte) => byte > 0)")
        self.assertTrue(drawn)
        self.browser.script("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
        self.browser.wait(lambda: self.browser.one("#opened-title").text == "Open a block")

    def test_neurons_and_norms_of_a_block(self):
        self.type("#text", CLEAN)
        self.assert_bars(self.answer("gpt2").softmax(-1))
        self.open_block(1)
        block, seen = self.references["gpt2"].model.transformer.h[1], {}
        hooks = [block.mlp.c_proj.register_forward_pre_hook(lambda _, x: seen.update(neurons=x[0].reshape(-1, x[0].shape[-1])[-1])),
                 block.ln_2.register_forward_pre_hook(lambda _, x: seen.update(state=x[0][0, -1]))]
        self.answer("gpt2")
        for hook in hooks:
            hook.remove()
        strengths = seen["neurons"].abs() * block.mlp.c_proj.weight.norm(dim=1)
        rows = [row.text.split() for row in self.browser.all("#neurons tbody tr")]
        self.assertEqual([int(row[0]) for row in rows], strengths.argsort(descending=True)[:8].tolist())
        self.assertEqual([row[1].replace("−", "-") for row in rows[:2]], [f"{seen['neurons'][int(row[0])].item():.3g}".ljust(4, "0") for row in rows[:2]])
        self.assertEqual(len(rows[0]), 3 + 5)  # and what it promotes
        divisor = (seen["state"].var(unbiased=False) + block.ln_2.eps).sqrt().item()
        said = self.browser.all('#blocks [aria-current="true"] .norm')[1]
        self.assertAlmostEqual(float(said.text.split("÷")[1]), divisor, delta=1e-2 * divisor)
        self.assertIn("norm before feed-forward: takes off the mean", said.get_attribute("title"))

    def test_all_heads_are_compared_and_drawn_in_colours(self):
        text = "the cat sat the cat sat"
        self.type("#text", text)
        self.browser.wait(lambda: len(self.tokens()) == 6)
        self.open_block(0)
        attentions = self.references["gpt2"].forward(text, output_attentions=True).attentions
        self.browser.one("#all-heads-ask").click()
        rows = self.browser.wait(lambda: [row.text.split() for row in self.browser.all("#all-heads tbody tr")])
        expected = {}
        for layer, weights in enumerate(attentions):
            for head, of in enumerate(weights[0]):
                expected[f"{layer}.{head}"] = [of.diagonal(-1).mean(), of.diagonal(-2)[1:].mean(), of.diagonal(-3).mean(), of[:, 0].mean()]
        self.assertEqual([row[0] for row in rows], list(expected))
        for name, *shares in rows:
            self.assertTrue(all(abs(float(share) - wanted.item()) < 0.011 for share, wanted in zip(shares, expected[name], strict=True)), (name, shares, expected[name]))
        self.browser.one('#all-heads [data-order="induction"]').click()
        ordered = [float(row.text.split()[2]) for row in self.browser.all("#all-heads tbody tr")]
        self.assertEqual(ordered, sorted(ordered, reverse=True))
        best = self.browser.one("#all-heads tbody button")
        layer, head = best.text.split(".")
        best.click()
        self.browser.wait(lambda: self.browser.one("#steps-head").text == f"Head {head} of block {layer}")
        # All heads at once, each in its colour; a click takes one away.
        self.browser.one("#coloured").click()
        pressed = "return [...document.querySelectorAll('#heads [data-head]')].map((each) => each.getAttribute('aria-pressed'))"
        self.assertEqual(self.browser.script(pressed), ["true", "true"])
        colours = ("const of = document.getElementById('lines'), c = new OffscreenCanvas(of.width, of.height), x = c.getContext('2d', { willReadFrequently: true });"
                   "x.drawImage(of, 0, 0); const d = x.getImageData(0, 0, c.width, c.height).data; let red = 0, green = 0;"
                   "for (let i = 0; i < d.length; i += 4) { if (d[i] > d[i + 1] + 40) ++red; if (d[i + 1] > d[i] + 40) ++green; } return [red > 20, green > 20]")
        self.browser.wait(lambda: self.browser.script(colours) == [True, True])
        self.browser.one('#heads [data-head="1"]').click()
        self.browser.wait(lambda: self.browser.script(colours) == [True, False])
        self.browser.one("#coloured").click()
        # Of another text the table is asked for again.
        self.type("#text", CLEAN)
        self.browser.wait(lambda: self.browser.one("#all-heads-ask").is_displayed() and not self.browser.one("#all-heads").is_displayed())

    def test_scores_and_several_labels(self):
        def logits(name, off):
            ids, types = torch.cat([analysis.ids_of("the cat"), analysis.ids_of("a dog")], 1), torch.tensor([[0, 0, 1, 1]])
            model = self.scored[name]
            hook = model.bert.encoder.layer[0].output.dense.register_forward_hook(lambda _, __, y: torch.zeros_like(y) if off else None)
            with torch.no_grad():
                found = model(input_ids=ids, token_type_ids=types).logits[0]
            hook.remove()
            return found

        for name, title, unit in (("several", "Labels", "probability"), ("reranker", "Score", "score")):
            self.choose("#model", name)
            self.browser.wait(lambda name=name: self.browser.one("#about").text.startswith(name))
            self.type("#text", "the cat")
            self.type("#pair", "a dog")
            self.browser.wait(lambda: len(self.tokens()) == 4)
            if name == "several":  # it stays off in a model of the same kind
                self.browser.one('#blocks [data-site="sublayers 0.feed_forward"]').click()
            self.browser.wait(lambda: self.browser.one("#bars-legend").is_displayed())
            self.assertEqual(self.browser.one("#answer-title").text, title)
            self.assertEqual(self.browser.one("#axis .unit").text, unit)
            self.assertIn("sigmoid", self.browser.one("#moved").text)
            self.assertFalse(self.browser.one("#sliders").is_displayed())
            before, after = logits(name, False), logits(name, True)
            rows = {row.text.split()[0]: row.text.split(None, 1)[1] for row in self.browser.all("#bars li")}
            for i in range(len(before)):
                found = [float(part.replace("−", "-").strip(" %")) for part in rows[f"LABEL_{i}"].split("→")]
                wanted = [each[i].sigmoid().item() * 100 if name == "several" else each[i].item() for each in (before, after)]
                self.assertTrue(all(abs(a - b) < 6e-2 for a, b in zip(found, wanted, strict=True)), (name, found, wanted))
        self.assertIn(f"sigmoid of the score): {before[0].sigmoid():.3f} → {after[0].sigmoid():.3f}", self.browser.one("#moved").text)
        self.assertEqual(self.browser.one("#text-label").text, "Text, or query")

    def test_another_head_of_a_run_draws_only_what_depends_on_it(self):
        self.type("#text", CLEAN)
        self.assert_bars(self.answer("gpt2").softmax(-1))
        parts = "'#heads canvas', '#blocks .open', '#tokens button'"
        marked = f"return [{parts}].map((each) => document.querySelector(each).marked ?? false)"
        self.browser.script(f"for (const each of [{parts}]) document.querySelector(each).marked = true")
        for head in (1, 0):
            self.browser.one(f'#heads [data-head="{head}"]').click()
            self.browser.wait(lambda head=head: self.browser.one("#steps-head").text.startswith(f"Head {head} ") and "waiting" not in self.browser.one("#steps").get_attribute("class"))
            self.assertTrue(self.browser.one("#pattern").text.startswith(f"Head {head}:"))
            self.assertEqual([each.get_attribute("aria-pressed") for each in self.browser.all("#heads [data-head]")], ["true", "false"][::1 - 2 * head])
            self.assertEqual(self.browser.script(marked), [True] * 3)
        self.browser.one('#blocks [data-site="layers 1"]').click()
        self.browser.wait(lambda: self.browser.script(marked)[:2] == [False] * 2)

    def test_two_models_side_by_side(self):
        self.type("#text", CLEAN)
        self.choose("#other", "later")
        self.assert_bars(self.answer("gpt2").softmax(-1))
        self.assert_bars(self.answer("later").softmax(-1), host="#other-bars")
        self.choose("#other", "")
        self.slide("slide", 1)  # the next step of a run keeps the text
        self.assert_bars(self.answer("later").softmax(-1))
        self.assertEqual(self.browser.one("#model").get_property("value"), "later")

    def test_the_steps_of_a_run_begin_with_the_newest_and_are_played(self):
        steps = [self.folder / "checkpoints" / f"step-0000000{number}" for number in (1, 2)]
        for step, name in zip(steps, ("gpt2", "later")):
            shutil.copytree(self.folder / name, step)
        server = Server("--model", steps[0], "--model", steps[1])
        self.addCleanup(server.close)
        self.browser.open(f"http://127.0.0.1:{server.port}/#model=nope")
        self.browser.wait(lambda: self.browser.one("#status").text == "The link is of a model that is not here: nope")
        self.assertEqual(self.browser.one("#model").get_property("value"), steps[1].name)
        self.browser.script("window.played = []; new MutationObserver(() => played.push(document.getElementById('about').textContent.split(':')[0]))"
                            ".observe(document.getElementById('about'), { childList: true })")
        self.browser.one("#play").click()
        self.browser.wait(lambda: self.browser.script("return played") == [step.name for step in steps])
        self.browser.wait(lambda: self.browser.one("#play").text == "Play")
        # The same as one animated picture: a frame for each step, with its own numbers.
        self.browser.script("window.made = []; const url = URL.createObjectURL; URL.createObjectURL = (blob) => { made.push(blob); return url(blob); }")
        self.browser.one("#animate").click()
        self.browser.wait(lambda: self.browser.script("return made.length") == 1)
        svg = ElementTree.fromstring(self.browser.driver.execute_async_script("const [done] = arguments; made[0].text().then(done)"))
        frames = [each for each in svg if each.tag.endswith("}g")]
        self.assertEqual([frame[0].text for frame in frames], [step.name for step in steps])
        self.assertEqual([frame[-1].get("values") for frame in frames], ["visible;hidden", "hidden;visible"])
        texts = [{each.text for each in frame.iter() if each.tag.endswith("}text")} for frame in frames]
        for shown, name in zip(texts, ("gpt2", "later")):
            share = self.answer(name, "the cat sat on the").softmax(-1).max().item()
            self.assertIn(f"{100 * share:.1f}" if share >= 0.1 else f"{100 * share:.2f}", shown)
        self.browser.wait(lambda: self.browser.one("#animate").is_enabled())

    def test_a_model_with_other_tokens_gets_the_text(self):
        self.type("#text", "the cat")
        self.assert_bars(self.answer("gpt2", "the cat").softmax(-1))
        self.browser.one("#bars button").click()
        grown = f"the cat {WORDS[self.answer('gpt2', 'the cat').argmax()]}"
        self.assert_bars(self.answer("gpt2", grown).softmax(-1))
        self.browser.all("#tokens button")[0].click()
        self.assert_bars(self.answer("gpt2", grown, position=0).softmax(-1))
        expected = self.server.post("/look", model="bytes", text=grown)
        names = list(dict.fromkeys(name.strip() for name in expected["answer"]["names"][:6]))  # half characters look alike
        self.choose("#other", "bytes")
        self.browser.wait(lambda: list(self.bars("#other-bars"))[:len(names)] == names)
        self.assertEqual(self.browser.one("#beside-title").text, "bytes: probability, next token")
        self.choose("#other", "")
        self.choose("#model", "bytes")
        self.browser.wait(lambda: self.tokens() == [token["id"] for token in expected["tokens"]])
        self.assertEqual(self.browser.one("#text").get_property("value"), grown)
        self.browser.wait(lambda: list(self.bars())[:len(names)] == names)

    def test_an_encoder_and_an_encoder_decoder(self):
        self.choose("#model", "bert")
        self.browser.wait(lambda: "[MASK]" in self.browser.one("#text").get_property("value"))
        self.type("#text", CLEAN)
        self.assert_bars(self.answer("bert", position=4).softmax(-1))
        self.assertEqual(self.browser.one("#answer-title").text, "Token at position 4")
        self.choose("#model", "t5")
        self.browser.wait(lambda: self.browser.one("#target").is_displayed())
        self.type("#text", CLEAN)
        self.type("#target", TARGET)
        on = self.answer("t5")
        self.assert_bars(on.softmax(-1))
        self.browser.one('#blocks [data-site="sublayers 1.cross_attention"]').click()
        off = self.answer("t5", changes=[(("cross_attention", 1), torch.zeros_like)])
        self.assert_bars(on.softmax(-1), off.softmax(-1))
        self.assertEqual(self.chips(), ["off cross-attention of block 1"])
        self.open_block(1)
        self.choose("#map", "cross")
        label = self.browser.wait(lambda: self.browser.one("#heat").get_attribute("aria-label"))
        self.assertIn(f"{1 + len(TARGET.split())} by {len(CLEAN.split())} tokens", label)
        self.browser.one("#chips .chip").click()
        self.assert_bars(on.softmax(-1))
        self.choose("#stack", "encoder")
        self.browser.wait(lambda: len(self.browser.all("#blocks .open")) == 2)

    def test_letters_that_stand_for_bytes_are_shown_as_text(self):
        self.choose("#model", "spelled")
        self.browser.wait(lambda: self.browser.one("#target").is_displayed())
        self.type("#text", "a café ☃")
        self.browser.wait(lambda: "".join(chip.text.split("\n")[0] for chip in self.browser.all("#tokens > *")).startswith("a␣caf"))
        names = self.browser.script("return [...document.querySelectorAll('#tokens > *, .bars .name, #blocks .says b')].map((each) => each.firstChild.textContent)")
        self.assertEqual([name for name in names if re.search("[ĠÃâ]", name)], [])

    def test_a_key_is_asked_for(self):
        server = Server("--model", self.folder / "gpt2", "--api_key", "sesame")
        self.addCleanup(server.close)
        self.refused = True
        self.browser.open(f"http://127.0.0.1:{server.port}/")
        self.browser.wait(lambda: self.browser.one("#key").is_displayed())
        self.assertIn("API key", self.browser.one("#status").text)
        self.assertEqual(self.bars(), {})
        self.browser.one("#key").send_keys("sesame\t")
        self.browser.wait(self.bars)

    def test_a_run_is_watched(self):
        run = self.folder / "run"
        run.mkdir()
        lines = ['{"iter": 0, "train_loss": 4.5, "tokens_per_second": 1000, "val_loss": 4.25}',
                 '{"iter": 1500, "train_loss": 3.5, "tokens_per_second": 2000}']
        (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        server = Server("--model", self.folder / "gpt2", "--run", run)
        self.addCleanup(server.close)
        self.browser.open(f"http://127.0.0.1:{server.port}/")
        self.browser.wait(lambda: self.browser.one("#loss-now").text.startswith("Iteration 1,500: training loss 3.500, "
                                                                                "validation loss 4.250"))
        self.assertEqual(self.browser.one("#run-name").text, "run")
        with open(run / "metrics.jsonl", "a") as file:  # as training goes on, the last line half written
            file.write('{"iter": 2000, "train_loss": 3.0, "tokens_per_second": 3000, "val_loss": 2.75}\n{"iter": 25')
        self.browser.wait(lambda: self.browser.one("#loss-now").text.startswith("Iteration 2,000: training loss 3.000, "
                                                                                "validation loss 2.750"))
        self.assertIn("3,000 tokens a second", self.browser.one("#loss-now").text)
        coloured = self.browser.script("const c = document.getElementById('loss'); return c.getContext('2d')"
                                       ".getImageData(0, 0, c.width, c.height).data.some((byte) => byte > 0)")
        self.assertTrue(coloured)
        with open(run / "metrics.jsonl", "a") as file:  # it diverges
            file.write('00, "train_loss": null}\n')
        self.browser.wait(lambda: self.browser.one("#loss-now").text.startswith("Iteration 2,500: training loss not finite"))

    def test_it_runs_and_stops(self):
        self.choose("#model", "bytes")
        self.browser.wait(lambda: len(self.tokens()) > 5)  # the words of the model before are bytes here
        count = len(self.tokens())
        self.browser.one("#run").click()
        self.browser.wait(lambda: len(self.tokens()) > count + 2)
        self.browser.one("#run").click()
        self.browser.wait(lambda: self.browser.one("#run").text == "Run")

    def test_texts_and_errors_are_never_markup(self):
        self.choose("#model", "bytes")
        self.type("#text", MARKUP)
        self.browser.wait(lambda: len(self.tokens()) == 1)
        self.assertIn(MARKUP.replace(" ", "␣"), self.browser.one("#tokens button").text)
        self.browser.one("#more").click()
        self.assertEqual(self.browser.all("main img, main b:not(.says b)"), [])
        self.refused = True
        self.type("#text", "a" * 513)
        self.browser.wait(lambda: "at most 512" in self.browser.one("#text-error").text)
        self.type("#text", "the")
        self.browser.wait(lambda: not self.browser.one("#text-error").is_displayed())

    def test_every_width_and_both_schemes(self):
        self.addCleanup(self.browser.resize, 1280, 1000)
        self.open_block(0)
        self.browser.one("#all-heads-ask").click()
        self.browser.wait(lambda: self.browser.one("#all-heads").is_displayed())
        for width in (390, 1280, 2560):
            for dark in (False, True):
                self.browser.resize(width, 900, dark)
                self.browser.wait(lambda width=width: self.browser.script("return innerWidth") == width)
                self.assertLessEqual(self.browser.script("return document.documentElement.scrollWidth"), width)
                ink, page = self.browser.script("const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]")
                light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ink, page)]
                self.assertEqual(light[0] > light[1], dark)
                self.assertEqual(self.browser.hindrances(), [])


if __name__ == "__main__":
    unittest.main()
