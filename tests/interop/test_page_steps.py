"""The page of tzoo serve: a head step by step, clicks on the drawing, the link and the files of what is shown."""

import base64
import json
import re
import unittest
import urllib.parse
import xml.etree.ElementTree

import torch
from selenium.webdriver.common.keys import Keys

from page_of_models import PageOfModels
from test_analysis import CLEAN, CORRUPTED, WORDS


class PageSteps(PageOfModels):
    def follow(self, layer, head, title=None):
        block = f'#blocks [data-layer="{layer}"]'
        if self.browser.wait(lambda: self.browser.one(block).get_attribute("aria-expanded")) == "false":
            self.press(block)
        self.browser.wait(lambda: self.browser.one("#opened-title").text == f"Block {layer}")
        self.press(f'#heads [data-head="{head}"]')
        self.browser.wait(lambda: self.browser.one("#steps-head").text.startswith(f"Head {head} of block {layer}")
                          and "waiting" not in self.browser.one("#steps").get_attribute("class"))
        if title:
            self.step(title)

    def step(self, title):
        next(each for each in self.browser.all("#step-list button") if each.text.endswith(title)).click()

    def titles(self):
        return [re.sub(r"^\d+ ", "", each.text) for each in self.browser.all("#step-list button")]

    def attention(self, name, kind="attentions"):
        return self.references[name].forward(CLEAN, output_attentions=True)[kind]

    def test_what_is_shown_adds_up(self):
        self.type_text(CLEAN)
        self.follow(1, 1)
        self.assertEqual(self.titles(), ["Query", "Keys", "Dot products", "Scale", "Mask", "Softmax", "Values", "Output"])
        self.choose("#query", "3")
        self.browser.wait(lambda: "What 3 " in self.browser.one("#step-says").text)
        weights = self.attention("gpt2")[1][0, 1, 3]
        self.step("Softmax")
        cells = "#step-table tbody tr:not(:last-child) td[title]"
        numbers = torch.tensor(self.numbers(cells), dtype=torch.float64).reshape(6, 2)
        self.assertLess((numbers[:, 0].softmax(0) - numbers[:, 1]).abs().max().item(), 1e-5)
        self.assertLess((numbers[:, 1] - weights).abs().max().item(), 1e-5)
        self.assertEqual(numbers[4:, 1].tolist(), [0, 0])
        scores = numbers[:4, 0]
        self.step("Scale")
        dots, scaled = torch.tensor(self.numbers(cells.replace("tr:not(:last-child)", "tr")), dtype=torch.float64).reshape(6, 2).T
        self.assertLess((dots / 6 ** 0.5 - scaled).abs().max().item(), 1e-5)
        self.assertLess((scaled[:4] - scores).abs().max().item(), 1e-9)
        # A pocket calculator on the line of a chosen key.
        self.step("Dot products")
        self.press('#step-table [data-key="2"]')
        line = self.words_of("#step-sum")
        self.assertIn("k for 2 ", line)
        terms, result = line.split(": ", 1)[1].replace("−", "-").replace("(", "").replace(")", "").rsplit(" = ", 1)
        products = [float(a) * float(b) for a, b in (term.split(" · ") for term in terms.split(" + "))]
        self.assertEqual(len(products), 6)
        self.assertAlmostEqual(sum(products), float(result), delta=1e-3)
        self.assertAlmostEqual(float(result), dots[2].item(), delta=1e-4)
        # The head's output, which the model reads before the projection.
        self.step("Output")
        _, seen, _ = self.references["gpt2"].run(CLEAN)
        output = self.references["gpt2"].value(seen, ("head", 1, 1))[0, 3]
        shown = [float(number) for number in re.search(r"Output = \((.*)\)", self.words_of("#step-sum"))[1].replace("−", "-").split(", ")]
        for number, expected in zip(shown, output.tolist(), strict=True):
            self.assertAlmostEqual(number, expected, delta=1e-4)

    def test_positions_in_the_scores(self):
        self.choose("#model", "t5")
        self.browser.wait(lambda: self.browser.one("#target").is_displayed())
        self.type_text(CLEAN)
        self.type("#target", "a dog sat")
        self.choose("#stack", "encoder")
        self.browser.wait(lambda: len(self.browser.all("#blocks .open")) == 2)
        self.follow(1, 0, "Position")
        self.choose("#query", "2")
        self.browser.wait(lambda: "2 " in self.browser.one("#query").get_property("selectedOptions")[0].text and self.numbers("#step-table td[title]"))
        self.assertIn("T5's buckets", self.browser.one("#step-says").text)
        with torch.no_grad():
            bias = self.references["t5"].model.encoder.block[0].layer[0].SelfAttention.compute_bias(6, 6)[0, 0, 2].detach()

        def added():
            before, after = torch.tensor(self.numbers("#step-table td[title]"), dtype=torch.float64).reshape(6, 2).T
            return (after - before - bias).abs().max().item() < 1e-5

        self.browser.wait(added)
        self.step("Scale")
        self.assertIn("multiplies by 1.0000, not by 1 / √5", self.browser.one("#step-says").text)
        # To the encoder, from the decoder.
        self.choose("#stack", "decoder")
        self.browser.wait(lambda: len(self.browser.all("#blocks .open")) == 3)
        self.choose("#map", "cross")
        self.follow(1, 1, "Softmax")
        self.assertNotIn("Position", self.titles())
        self.assertEqual(len(self.browser.all("#step-table [data-key]")), 6)

    def test_the_drawing_is_touched(self):
        self.type_text(CLEAN)
        on = self.references["gpt2"].run(CLEAN)[0][-1].softmax(-1)
        self.assert_shares(on)
        self.press('[data-click="off"]')
        self.press('#heads [data-head="1"]', Keys.ENTER)
        off = self.references["gpt2"].run(CLEAN, [(("head", 0, 1), torch.zeros_like)])[0][-1].softmax(-1)
        self.assert_shares(on, off)
        self.assertEqual(self.chips(), ["off head 1 of block 0"])
        self.press('#blocks [data-layer="1"]', Keys.SPACE)
        self.browser.wait(lambda: self.chips() == ["off head 1 of block 0", "off block 1"])
        self.press('#blocks [data-layer="1"]', Keys.SPACE)
        self.press('#heads [data-head="1"]')
        self.assert_shares(on)
        # A token of the flow, a sublayer and a head are patched.
        self.press('[data-click="patch"]')
        self.press('[data-flow="1.2"]', Keys.SPACE)
        self.browser.wait(lambda: self.browser.script("return document.activeElement.id") == "patch-text")
        self.type("#patch-text", CORRUPTED)
        _, source, _ = self.references["gpt2"].run(CORRUPTED)

        def patched(*site, position=None):
            def change(of):
                value = self.references["gpt2"].value(source, site)
                if position is None:
                    return value
                of = of.clone()
                of[:, position] = value[:, position]
                return of
            return self.references["gpt2"].run(CLEAN, [(site, change)])[0][-1].softmax(-1)

        self.assert_shares(on, patched("residual", 1, position=2))
        self.assertEqual(self.chips(), ["patched residual stream of block 1, token 2"])
        self.assertEqual(len(self.browser.all(".flow .patched")), 1)
        self.press('#blocks [data-site="sublayers 1.feed_forward"]', Keys.SPACE)
        self.assert_shares(on, patched("feed_forward", 1))
        self.assertTrue(self.browser.one('#blocks [data-site="sublayers 1.feed_forward"]').is_selected())
        self.press('#heads [data-head="0"]', Keys.SPACE)
        self.assert_shares(on, patched("head", 0, 0))
        for button in self.browser.all("#heads [data-head], .flow button, #clicks button, #step-list button"):
            self.assertTrue(button.get_attribute("aria-label") or button.text)

    def test_the_link_has_the_whole_state(self):
        self.type_text(CLEAN)
        self.follow(1, 1, "Scale")
        self.choose("#query", "3")
        self.press('#blocks [data-site="sublayers 0.feed_forward"]')
        self.browser.wait(lambda: self.chips() == ["off feed-forward of block 0"])
        self.type("#patch-text", CORRUPTED)
        self.browser.wait(lambda: len(self.chips()) == 2)
        self.press('#step-table [data-key="2"]')
        self.browser.script("const t = document.getElementById('temperature'); t.value = 0.5; t.dispatchEvent(new Event('input'))")
        self.browser.one("#guide-open").click()
        self.browser.one("#guide-next").click()

        def state():
            return [self.chips(), self.shares(), self.words_of("#step-sum"), self.browser.one("#query").get_property("value"), self.titles(),
                    self.words_of("#guide-title"), self.browser.one("#patch-text").get_property("value"),
                    [each.get_attribute("aria-pressed") for each in self.browser.all("#step-list button")]]

        before = state()
        self.assertIn("3 ", self.words_of("#query"))
        self.browser.wait(lambda: "guide=1" in self.browser.script("return location.hash") and "temperature=0.5" in self.browser.script("return location.hash"))
        address = self.browser.script("return location.hash")
        self.open(address)
        self.browser.wait(lambda: state() == before)
        # Another link in the same window; and one that the model cannot follow.
        self.browser.script("location.hash = arguments[0]", "#" + urllib.parse.urlencode({"model": "bert", "text": "the [MASK] sat"}))
        self.browser.wait(lambda: self.browser.one("#answer-title").text == "Token at position 1")
        self.assertEqual(self.chips(), [])
        self.refused = True
        self.open("#model=gpt2&text=the+cat&off=heads+7.9")
        self.browser.wait(lambda: "The link does not fit the model" in self.browser.one("#status").text)
        self.assertEqual(self.chips(), [])
        self.open("#model=none&layer=x&temperature=y")
        self.assertEqual(self.browser.one("#opened-title").text, "Block 0")

    def test_panels_are_saved(self):
        self.type_text(CLEAN)
        self.follow(1, 1, "Softmax")
        self.browser.script("window.made = []; const url = URL.createObjectURL; URL.createObjectURL = (blob) => { made.push(blob); return url(blob); }")

        def saved(panel, kind):
            """What the panel's menu gives to be saved."""
            count = self.browser.script("return made.length")
            self.browser.script("for (const each of document.querySelectorAll(arguments[0])) if (each.textContent.includes(arguments[1])) each.click()",
                                f"#{panel} > .save button", kind)
            self.browser.wait(lambda: self.browser.script("return made.length") == count + 1)
            return base64.b64decode(self.browser.driver.execute_async_script(
                "const [done] = arguments, reader = new FileReader();"
                " reader.onload = () => done(reader.result.split(',')[1]); reader.readAsDataURL(made.at(-1));"))

        for panel in ("answer-part", "blocks-part", "attention-part", "steps", "lens-part", "norms-part", "rollout-part"):
            with self.subTest(panel=panel):
                svg = xml.etree.ElementTree.fromstring(saved(panel, "SVG"))
                words = [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]
                self.assertTrue(any(word.strip("␣") in WORDS for word in words), words)
                png = saved(panel, "PNG")
                self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
                width, height = (int.from_bytes(png[at:at + 4], "big") for at in (16, 20))
                self.assertEqual([width, height], [2 * int(svg.get("width")), 2 * int(svg.get("height"))])
                self.assertGreater(min(width, height), 100)
        weights = self.attention("gpt2")[1][0, 1]
        found = json.loads(saved("attention-part", "JSON"))
        self.assertLess((torch.tensor(found["weights"]) - weights).abs().max().item(), 0.5 / 255 + 1e-4)
        steps = json.loads(saved("steps", "JSON"))
        self.assertLess((torch.tensor(steps["shares"]) - weights[steps["query_position"]]).abs().max().item(), 1e-5)
        answer = self.references["gpt2"].run(CLEAN)[0][-1].softmax(-1)
        for each in json.loads(saved("answer-part", "JSON"))["answers"]:
            self.assertAlmostEqual(each["probability"], answer[each["id"]].item(), delta=1e-5)


if __name__ == "__main__":
    unittest.main()
