"""tzoo models."""

import json
import os
import tempfile
import unittest

from tiny_checkpoint import write_checkpoint
from tzoo_runner import CommandTest, run

# The counts that Hugging Face and OpenAI publish; GPT-3's is that of GPT-2's layout at its sizes.
PUBLISHED = {
    "gpt2": 124439808,
    "gpt2-medium": 354823168,
    "gpt2-large": 774030080,
    "gpt2-xl": 1557611200,
    "bert-base-uncased": 109482240,
    "bert-large-uncased": 335141888,
    "roberta-base": 124645632,
    "distilbert-base-uncased": 66362880,
    "albert-base-v2": 11683584,
    "mixtral-8x7b": 46702792704,
    "qwen3-30b-a3b": 30532122624,
    "qwen1.5-moe-a2.7b": 14315784192,
    "albert-xxlarge-v2": 222595584,
    "nanochat-d20": 560988160,
}


class Models(CommandTest):
    def describe(self, name):
        return json.loads(self.succeed("models", name, "--json"))

    def test_the_list_has_the_published_counts(self):
        models = {model["name"]: model for model in json.loads(self.succeed("models", "--json"))}
        for name, count in PUBLISHED.items():
            self.assertEqual(models[name]["parameters"], count, name)
        table = self.succeed("models", "--all")
        self.assertRegex(table, r"(?m)^gpt2 +124\.4 M +12 +1024 ")
        rows = {line.split()[0] for line in table.splitlines() if line}
        self.assertLessEqual(set(models), rows)

    def test_the_first_list_names_each_family_in_the_width_of_a_terminal(self):
        families = {model["family"] for model in json.loads(self.succeed("models", "--json"))}
        out = self.succeed("models")
        self.assertLessEqual(families, {line.split()[0] for line in out.splitlines() if line})
        self.assertIn("'tzoo models --all' lists", out)
        self.assert_one_error(run("models", "gpt2", "--all"), 2, "--all", "'gpt2'")

    def test_gpt3_is_counted_without_being_made(self):
        # 12 L C^2 + 13 L C in the layers, (V + T) C in the embeddings, 2 C in the last norm.
        layers, width = 96, 12288
        count = 12 * layers * width**2 + 13 * layers * width + (50257 + 2048) * width + 2 * width
        self.assertEqual(self.describe("gpt3")["parameters"], count)
        self.assertAlmostEqual(count / 1e9, 175, delta=1)

    def test_nanogpts_character_model_has_its_published_size(self):
        # nanoGPT counts without positions and prints "0.80M".
        model = self.describe("shakespeare-char")
        positions = {part["name"]: part["parameters"] for part in model["components"]}["position embedding"]
        self.assertEqual(positions, 64 * 128)
        self.assertEqual(f"{(model['parameters'] - positions) / 1e6:.2f}", "0.80")

    def test_components_and_memory_add_up(self):
        for name in PUBLISHED:
            model = self.describe(name)
            self.assertEqual(sum(part["parameters"] for part in model["components"]), model["parameters"])
            self.assertAlmostEqual(sum(part["share"] for part in model["components"]), 1)
        memory = self.describe("gpt2")["memory"]
        count = PUBLISHED["gpt2"]
        expected = {"float32": 4 * count, "bfloat16": 2 * count, "int8": count, "training": 16 * count}
        self.assertEqual(memory, expected)

    def test_one_model_as_text(self):
        text = self.succeed("models", "gpt2")
        for words in ("124,439,808", "token embedding", "38,597,376", "31.0%", "497.8 MB", "2.0 GB", "1024"):
            self.assertIn(words, text)

    def test_a_checkpoint_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            model = write_checkpoint(os.path.join(folder, "tiny"))
            described = self.describe(model)
            self.assertEqual((described["layers"], described["width"], described["context"]), (2, 16, 24))
            width, vocabulary = 16, described["vocabulary"]
            layer = 12 * width**2 + 13 * width
            self.assertEqual(described["parameters"], 2 * layer + (vocabulary + 24) * width + 2 * width)

    def test_an_unknown_name_suggests_the_nearest(self):
        self.assert_one_error(run("models", "gtp2"), 1, "'gtp2'", "did you mean 'gpt2'")


if __name__ == "__main__":
    unittest.main()
