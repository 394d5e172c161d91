"""Tests of the page of tzoo serve in a real browser, with tiny models of each shape."""

import pathlib
import re
import sys
import tempfile
import unittest

from selenium.webdriver.common.keys import Keys

import test_analysis as analysis
from browser import Browser

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server  # noqa: E402


class PageOfModels(unittest.TestCase):
    NAMES = ("gpt2", "bert", "t5")
    MORE = ()  # of a test's own, which add_models() saves

    @classmethod
    def add_models(cls):
        pass

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.references = {name: getattr(analysis, name)(5) for name in cls.NAMES}
        for name, reference in cls.references.items():
            reference.model.save_pretrained(cls.folder / name)
            analysis.save_tokenizer(cls.folder / name)
            reference.model.double()
            reference.model.set_attn_implementation("eager")
        cls.add_models()
        cls.server = Server(*[word for name in (*cls.NAMES, *cls.MORE) for word in ("--model", cls.folder / name)])
        cls.addClassCleanup(cls.server.close)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.driver.set_script_timeout(60)
        cls.address = f"http://127.0.0.1:{cls.server.port}/"

    def open(self, state=""):
        self.browser.open("about:blank")
        self.browser.open(self.address + state)
        self.browser.wait(lambda: self.browser.all("#bars li"))

    def setUp(self):
        self.refused = False
        self.open()

    def tearDown(self):
        noted = [fault for fault in self.browser.faults() if not (self.refused and "400" in fault)]
        self.assertEqual(noted, [])

    def type(self, field, text):
        self.browser.one(field).send_keys(Keys.CONTROL, "a", Keys.NULL, text)

    def choose(self, select, value):
        self.browser.script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))",
                            self.browser.one(select), value)

    def press(self, selector, *keys):
        """Clicks it, or presses a key on it; again if the page has just redrawn it."""
        def done():
            part = self.browser.one(selector)
            (part.send_keys(*keys) if keys else part.click())
            return True

        self.browser.wait(done)

    def shown_tokens(self):
        return [int(chip.text) for chip in self.browser.all("#tokens small")]

    def type_text(self, text):
        self.type("#text", text)
        self.browser.wait(lambda: self.shown_tokens() == analysis.ids_of(text)[0].tolist())

    def chips(self):
        return [chip.text.removesuffix(" ✕") for chip in self.browser.all("#chips .chip")]

    def shares(self):
        """name -> (before, after) or (now,) of the bars."""
        rows = self.browser.script("return [...document.querySelectorAll('#bars li')].map((li) =>"
                                   " [li.querySelector('.name').firstChild.textContent, li.querySelector('.value').textContent])")
        return {name.strip("␣"): tuple(float(part.strip(" %")) / 100 for part in value.split("→")) for name, value in rows if " others" not in name}

    def assert_shares(self, *expected):
        """The bars agree with these distributions to the digits that are shown."""
        def agrees():
            found = self.shares()
            return len(found) >= 10 and all(
                len(shares) == len(expected) and all(abs(share - each[analysis.WORDS.index(word)].item()) <= 6e-4 for share, each in zip(shares, expected))
                for word, shares in found.items())

        self.browser.wait(agrees, seconds=20)

    def numbers(self, selector):
        """The full numbers of cells, whose titles have them."""
        return [float(cell.get_attribute("title").replace("Infinity", "inf")) for cell in self.browser.all(selector)]

    def words_of(self, selector):
        return re.sub(r"\s+", " ", self.browser.one(selector).text)
