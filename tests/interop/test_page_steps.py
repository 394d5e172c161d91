"""The page of tzoo serve: a head step by step, clicks on the drawing."""

import re
import unittest

import torch
from selenium.webdriver.common.keys import Keys

from page_of_models import PageOfModels
from test_analysis import CLEAN, CORRUPTED, WORDS


class PageSteps(PageOfModels):
    def follow(self, layer, head, title=None):
        block = self.browser.one(f'#blocks [data-layer="{layer}"]')
        if block.get_attribute("aria-expanded") == "false":
            block.click()
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


if __name__ == "__main__":
    unittest.main()
