"""tzoo forward and export beside transformers: random GPT-2s with every head."""

import json
import os
import random
import tempfile
import unittest

import torch
import transformers
from forward_parity import ForwardParity, hf
from safetensors.torch import load_file, save_file
from transformers import GPT2Config


class Gpt2Test(ForwardParity, unittest.TestCase):
    HEADS = {
        "causal-lm": transformers.GPT2LMHeadModel,
        "base": transformers.GPT2Model,
        "sequence-classification": transformers.GPT2ForSequenceClassification,
    }

    @staticmethod
    def random_config(draw, head):
        heads = draw.choice([1, 2, 3, 4])
        problem = draw.choice([None, None, "regression", "multi_label_classification"])
        return GPT2Config(
            n_layer=draw.choice([1, 2, 3]), n_head=heads, n_embd=heads * draw.choice([4, 5, 8, 16]),
            vocab_size=draw.randint(5, 90), n_positions=draw.randint(9, 30),
            n_inner=draw.choice([None, 7, 33]), activation_function=draw.choice(["gelu_new", "gelu", "relu", "silu"]),
            layer_norm_epsilon=draw.choice([1e-5, 1e-3]),
            tie_word_embeddings=draw.random() < 0.6,
            num_labels=draw.choice([1, 2, 3, 7]), problem_type=problem if head == "sequence-classification" else None,
            pad_token_id=draw.choice([0, 3]) if head == "sequence-classification" else None,
            resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.1,  # must not act outside of training
            bos_token_id=None, eos_token_id=None)

    def save(self, model, head, directory, seed):
        bare = head == "causal-lm" and model.config.tie_word_embeddings and seed % 2 == 0
        if not bare:
            return super().save(model, head, directory, seed)
        model.transformer.save_pretrained(directory)  # names without "transformer."
        return ["--head", "causal-lm"]

    def test_tied_weights(self):
        """Under the name of the copy alone, as safetensors.torch.save_model writes them; or different from the copy."""
        config = GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=11, n_positions=9, bos_token_id=None, eos_token_id=None)
        inputs = {"input_ids": torch.tensor([[1, 2, 3]])}
        for own_head in (False, True):
            with self.subTest(own_head=own_head), tempfile.TemporaryDirectory() as directory:
                model = hf.random_model(transformers.GPT2LMHeadModel, config, 1)
                model.save_pretrained(directory)
                path = os.path.join(directory, "model.safetensors")
                tensors = load_file(path)
                embedding = tensors["transformer.wte.weight"] if own_head else tensors.pop("transformer.wte.weight")
                tensors["lm_head.weight"] = embedding + 0.1 * own_head * torch.randn_like(embedding)
                save_file(tensors, path, {"format": "pt"})
                opened = transformers.GPT2LMHeadModel.from_pretrained(directory).eval()
                self.assertEqual(torch.equal(opened.lm_head.weight, opened.transformer.wte.weight), not own_head)
                expected = opened(**inputs).logits
                torch.testing.assert_close(self.forward(directory, inputs)["logits"], expected, rtol=0, atol=2e-5)

    def test_what_is_not_asked_for_is_not_written(self):
        with tempfile.TemporaryDirectory() as directory:
            self.random_model(0)[1].save_pretrained(directory)
            inputs = {"input_ids": torch.tensor([[1, 2, 3]])}
            names = self.forward(directory, inputs)
            self.assertFalse([name for name in names if name == "loss" or name.startswith("grad.")])
            self.assertIn("logits", names)

    def test_faults(self):
        config = self.random_config(random.Random(2), "causal-lm")
        with tempfile.TemporaryDirectory() as directory:
            hf.random_model(transformers.GPT2LMHeadModel, config, 2).save_pretrained(directory)
            good = "[[1, 2, 3], [0, 1, 2]]"
            self.check_faults(directory, [
                (["--input_ids", "[[1, 2"], 2, ["--input_ids"]),
                (["--input_ids", "[1, 2]"], 2, ["--input_ids", "rows"]),
                (["--input_ids", "[]"], 2, ["--input_ids"]),
                (["--input_ids", "[[]]"], 2, ["--input_ids"]),
                (["--input_ids", "[[1], [1, 2]]"], 2, ["--input_ids", "equally long", "1 and 2"]),
                (["--input_ids", "[[1, 2.5]]"], 2, ["--input_ids", "2.5"]),
                (["--input_ids", "[[1, \"a\"]]"], 2, ["--input_ids", "\"a\""]),
                (["--input_ids", f"[[1, {config.vocab_size}]]"], 2, ["--input_ids", f"got {config.vocab_size}"]),
                (["--input_ids", "[[1, -3]]"], 2, ["--input_ids", "got -3"]),
                (["--input_ids", "[[18446744073709551615]]"], 2, ["--input_ids", "got 18446744073709551615"]),
                (["--input_ids", json.dumps([[0] * (config.n_positions + 1)])], 1,
                 [f"{config.n_positions + 1} tokens", f"{config.n_positions} positions"]),
                (["--input_ids", good, "--attention_mask", "[[1, 1, 1]]"], 2, ["--attention_mask", "[2, 3]"]),
                (["--input_ids", good, "--attention_mask", "[[1, 1, 1], [0, 1, 1]]", "--weights", "int8"], 2,
                 ["--attention_mask", "packed"]),
                (["--input_ids", good, "--labels", good, "--gradients", "--weights", "float32"], 2, ["--labels", "modules"]),
                (["--input_ids", json.dumps([[0] * (config.n_positions + 1)]), "--weights", "float32"], 1,
                 [str(config.n_positions)]),
                (["--input_ids", good, "--attention_mask", "[[1, 1, 2], [1, 1, 1]]"], 2, ["--attention_mask", "2"]),
                (["--input_ids", good, "--labels", "[[1, 1, -1], [1, 1, 1]]"], 2, ["--labels", "-1", "-100"]),
                (["--input_ids", good, "--head", "casual-lm"], 2, ["casual-lm", "causal-lm"]),
                (["--input_ids", good, "--head", "masked-lm"], 1, ["masked-lm"]),
                (["--input_ids", good, "--gradients"], 2, ["--gradients", "--labels"]),
                ([], 2, ["input_ids"]),
            ])


if __name__ == "__main__":
    unittest.main()
