"""The guide of the page of tzoo serve: pages for each kind of model, each with something to try that works."""

import string
import unittest
import urllib.parse

import tokenizers
import transformers

from page_of_models import PageOfModels
from test_analysis import hf
from text_models import tzoo


class PageGuide(PageOfModels):
    def titles(self):
        """Reads all pages, tries each, and looks where it points."""
        self.browser.one("#guide-open").click()
        found = []
        while True:
            number, title = self.browser.one("#guide-title").text.split(": ")
            found.append(title)
            self.assertEqual(number.split(" of ")[0], str(len(found)))
            self.assertGreater(len(self.browser.one("#guide-says").text), 80)
            self.assertTrue(self.browser.one("#guide-equation").text)
            self.browser.script("document.getElementById('status').textContent = ''")
            self.browser.one("#guide-try").click()
            self.browser.wait(lambda: "answered in" in self.browser.one("#status").text)
            pointed = self.browser.wait(lambda: self.browser.one(".pointed"))
            self.assertTrue(pointed.is_displayed(), title)
            self.assertEqual([each.text for each in self.browser.all("p.error") if each.is_displayed()], [])
            if not self.browser.one("#guide-next").is_enabled():
                return found
            self.browser.one("#guide-next").click()

    def test_a_decoder(self):
        titles = self.titles()
        self.assertEqual(len(titles), 11)
        self.assertIn("No looking ahead", titles)
        self.assertNotIn("Two texts, one attention", titles)
        self.assertEqual(self.browser.one("#temperature").get_property("value"), "0.5")
        self.browser.one("#guide-close").click()
        self.assertFalse(self.browser.one("#guide").is_displayed())
        self.assertEqual(self.browser.script("return document.activeElement.id"), "guide-open")

    def test_an_encoder(self):
        self.choose("#model", "bert")
        self.browser.wait(lambda: "[MASK]" in self.browser.one("#text").get_property("value"))
        titles = self.titles()
        self.assertNotIn("No looking ahead", titles)
        self.assertNotIn("Two texts, one attention", titles)
        self.assertGreaterEqual(len(titles), 9)

    def test_an_encoder_decoder(self):
        self.choose("#model", "t5")
        self.browser.wait(lambda: self.browser.one("#target").is_displayed())
        titles = self.titles()
        self.assertIn("Two texts, one attention", titles)
        self.assertEqual(len(titles), 12)

    def test_nothing_moves_where_motion_is_reduced(self):
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
        self.addCleanup(self.browser.resize, 1280, 1000)
        self.browser.script("window.asked = []; Element.prototype.scrollIntoView = (how) => { asked.push(how.behavior); }")
        self.browser.one("#guide-open").click()
        self.browser.one("#guide-try").click()
        self.browser.wait(lambda: self.browser.script("return asked") == ["auto"])

    def test_every_width_hinders_nobody(self):
        self.addCleanup(self.browser.resize, 1280, 1000)
        self.browser.one("#guide-open").click()
        self.browser.one('#heads [data-head="0"]').click()
        self.browser.wait(lambda: self.browser.one("#steps").is_displayed())
        for width in (390, 1280, 2560):
            for dark in (False, True):
                self.browser.resize(width, 900, dark)
                self.browser.wait(lambda width=width: self.browser.script("return innerWidth") == width)
                self.browser.wait(lambda: self.browser.script("return document.documentElement.scrollWidth") <= self.browser.script("return innerWidth"))
                self.assertEqual(self.browser.hindrances(), [])


class GuideTexts(PageOfModels):
    """The text that a page proposes suits the model: its kind, and what its tokenizer knows."""
    NAMES, MORE = ("gpt2",), ("scripture", "masked", "spanish", "sums")
    HEAVEN = "In the beginning God created the heaven and the"

    @classmethod
    def add_models(cls):
        sizes = {"n_embd": 12, "n_layer": 2, "n_head": 2, "bos_token_id": None, "eos_token_id": None}
        letters = {"scripture": string.ascii_letters.replace("L", "") + " ,.;:", "sums": "0123456789+="}
        for name, text in letters.items():
            (cls.folder / "letters.txt").write_text(text)
            made = tzoo("tokenizer", "train", "--kind", "char", "--input", cls.folder / "letters.txt", "--out_dir", cls.folder / name)
            assert made.returncode == 0, made.stderr
        words = {"masked": f"{cls.HEAVEN} earth . And Moses spake unto the children of Israel, saying, Thou shalt not do evil The LORD is my shepherd; I shall want.",
                 "spanish": "the black cat el gato negro sigue a la reina y las niñas cantan"}
        for name, text in words.items():
            model = tokenizers.Tokenizer(tokenizers.models.WordLevel(
                {word: i for i, word in enumerate(["<none>", "<mask>", *dict.fromkeys(text.split())])}, unk_token="<none>"))
            model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
            transformers.PreTrainedTokenizerFast(tokenizer_object=model, pad_token="<none>", mask_token="<mask>").save_pretrained(cls.folder / name)
            words[name] = model.get_vocab_size()
        pair = {"d_model": 12, "d_kv": 6, "d_ff": 16, "num_layers": 2, "num_heads": 2, "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": None}
        for name, kind, config in (
                ("scripture", transformers.GPT2LMHeadModel, transformers.GPT2Config(n_positions=128, vocab_size=len(letters["scripture"]), **sizes)),
                ("masked", transformers.BertForMaskedLM, transformers.BertConfig(
                    vocab_size=words["masked"], hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, max_position_embeddings=40)),
                ("spanish", transformers.T5ForConditionalGeneration, transformers.T5Config(vocab_size=words["spanish"], **pair)),
                ("sums", transformers.T5ForConditionalGeneration, transformers.T5Config(vocab_size=len(letters["sums"]), **pair))):
            hf.random_model(kind, config, 3).save_pretrained(cls.folder / name)

    def guide_of(self, model, title):
        """Opens the model's guide at a page."""
        self.open("#" + urllib.parse.urlencode({"model": model, "text": {"sums": "1"}.get(model, "the")}))
        self.browser.wait(lambda: self.browser.one("#about").text.startswith(f"{model}:"))
        self.browser.one("#guide-open").click()
        while title not in self.browser.one("#guide-title").text:
            self.browser.one("#guide-next").click()

    def proposed(self):
        return self.browser.wait(lambda: self.browser.one("#guide-text").text)

    def value(self, field="text"):
        return self.browser.one(f"#{field}").get_property("value")

    def test_letters_of_scripture(self):
        self.guide_of("scripture", "No looking ahead")
        self.assertEqual(self.proposed().strip("“”\" "), self.HEAVEN)
        # A typed text stays until the example is taken; from then on, trying a page takes its text.
        self.press("#guide-try")
        self.browser.wait(lambda: self.browser.all(".pointed"))
        self.assertEqual(self.value(), "the")
        self.press("#guide-take")
        self.browser.wait(lambda: len(self.shown_tokens()) == len(self.HEAVEN) + 1)
        self.assertEqual(self.value(), self.HEAVEN + " ")
        self.assertFalse(self.browser.one("#guide-example").is_displayed())
        self.browser.one("#guide-next").click()  # a text with a letter that it lacks
        self.assertFalse(self.browser.one("#guide-example").is_displayed())
        self.browser.one("#guide-next").click()
        self.assertIn("the darkness he called", self.proposed())
        self.press("#guide-try")
        self.browser.wait(lambda: self.value().endswith("the darkness he called "))

    def test_an_encoder_gets_its_mask(self):
        self.guide_of("masked", "Scores become shares")
        self.assertEqual(self.proposed().strip("“”\""), "The LORD is my shepherd; I shall not <mask>.")

    def test_an_encoder_decoder_gets_both_texts(self):
        self.guide_of("spanish", "Two texts, one attention")
        self.assertEqual(self.proposed().strip("“”\""), "the black cat → el gato")
        self.press("#guide-take")
        self.browser.wait(lambda: (self.value(), self.value("target")) == ("the black cat", "el gato"))
        self.guide_of("sums", "Two texts, one attention")
        self.assertEqual(self.proposed().strip("“”\""), "27+15 → 4")

    def test_nothing_is_proposed_that_is_not_known(self):
        self.guide_of("gpt2", "No looking ahead")
        self.press("#guide-try")
        self.browser.wait(lambda: self.browser.all(".pointed"))
        self.assertFalse(self.browser.one("#guide-example").is_displayed())


if __name__ == "__main__":
    unittest.main()
