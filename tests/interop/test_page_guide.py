"""The guide of the page of tzoo serve: pages for each kind of model, each with something to try that works."""

import unittest

from page_of_models import PageOfModels


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

    def test_every_width_and_contrast(self):
        self.addCleanup(self.browser.resize, 1280, 1000)
        self.browser.one("#guide-open").click()
        self.browser.one('#heads [data-head="0"]').click()
        self.browser.wait(lambda: self.browser.one("#steps").is_displayed())
        contrast = """
          const light = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
          const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
          const back = (part) => { for (; part; part = part.parentElement) { const c = numbers(getComputedStyle(part).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } };
          const poor = [];
          for (const part of document.querySelectorAll('#guide *, #steps *, #clicks *, .save *, header *')) {
            if (part.disabled || ![...part.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || part.getClientRects().length === 0) continue;
            const [a, b] = [numbers(getComputedStyle(part).color), back(part)].map((rgb) => light(rgb.slice(0, 3))).sort((x, y) => y - x);
            if ((a + 0.05) / (b + 0.05) < 4.5) poor.push([part.outerHTML.slice(0, 80), (a + 0.05) / (b + 0.05)]);
          }
          return poor;"""
        for width in (390, 1280, 2560):
            for dark in (False, True):
                self.browser.resize(width, 900, dark)
                self.browser.wait(lambda width=width: self.browser.script("return innerWidth") == width)
                self.browser.wait(lambda: self.browser.script("return document.documentElement.scrollWidth") <= self.browser.script("return innerWidth"))
                self.assertEqual(self.browser.script(contrast), [])


if __name__ == "__main__":
    unittest.main()
