"""tzoo forward beside transformers: logits, loss, hidden states, attentions and gradients of random GPT-2s."""

import json
import os
import random
import subprocess
import tempfile
import unittest

import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel

SEEDS = range(20)


def tzoo(*words):
    return subprocess.run([os.environ["TZOO"], *words], capture_output=True, text=True, timeout=300)


def random_config(draw):
    heads = draw.choice([1, 2, 3, 4])
    return GPT2Config(
        n_layer=draw.choice([1, 2, 3]), n_head=heads, n_embd=heads * draw.choice([2, 5, 8, 16]),
        vocab_size=draw.randint(5, 90), n_positions=draw.randint(9, 30),
        n_inner=draw.choice([None, 7, 33]), activation_function=draw.choice(["gelu_new", "gelu", "relu", "silu"]),
        layer_norm_epsilon=draw.choice([1e-5, 1e-3]), tie_word_embeddings=draw.random() < 0.6,
        resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.1,  # must not act outside of training
        bos_token_id=None, eos_token_id=None, attn_implementation="eager")


def random_model(config, seed):
    torch.manual_seed(seed)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():  # biases of zero and norms of one would hide a fault
        for name, parameter in model.named_parameters():
            is_norm_weight = ".ln_" in name and name.endswith(".weight")
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (1.0 if is_norm_weight else 0.0))
    return model


def random_inputs(config, draw):
    """Three rows: one whole, one padded on the left, one on the right. No label is predicted from a hidden query."""
    length = draw.randint(5, config.n_positions)
    ids = torch.randint(config.vocab_size, (3, length))
    mask = torch.ones_like(ids)
    left, right = draw.randint(1, length - 3), draw.randint(1, length - 3)
    mask[1, :left] = 0
    mask[2, length - right:] = 0
    labels = ids.masked_fill(torch.rand(ids.shape) < 0.2, -100).masked_fill(mask == 0, -100)
    labels[1, :left + 1] = -100
    labels[0, 1] = ids[0, 1]  # there is one at least
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def expected_tensors(model, inputs):
    output = model(**inputs, output_hidden_states=True, output_attentions=True, use_cache=False)
    output.loss.backward()
    tensors = {"logits": output.logits, "loss": output.loss}
    tensors.update({f"hidden_states.{i}": tensor for i, tensor in enumerate(output.hidden_states)})
    tensors.update({f"attentions.{i}": tensor for i, tensor in enumerate(output.attentions)})
    tensors.update({f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()})
    return {name: tensor.detach() for name, tensor in tensors.items()}


def without_hidden_rows(name, tensor, mask):
    """A query whose keys are all hidden has no defined answer: transformers spreads it evenly, the zoo gives zeros."""
    seen = mask.cumsum(-1) > 0
    if name.startswith("attentions."):
        return tensor * seen[:, None, :, None]
    return tensor * seen[:, :, None] if name == "logits" or name.startswith("hidden_states.") else tensor


def relative_error(actual, expected):
    # Some gradients are zero by their nature (a key's bias moves no softmax): there what is left is rounding.
    return ((actual - expected).abs().max() / expected.abs().max().clamp_min(1e-6)).item()


class ForwardTest(unittest.TestCase):
    def forward(self, directory, inputs, *words):
        path = os.path.join(directory, "out.safetensors")
        flags = [word for name, value in inputs.items() for word in ("--" + name, json.dumps(value.tolist()))]
        done = tzoo("forward", "--model", directory, *flags, "--output", path, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return load_file(path)

    def test_random_models(self):
        worst = {}
        for seed in SEEDS:
            draw = random.Random(seed)
            config = random_config(draw)
            model = random_model(config, seed)
            inputs = random_inputs(config, draw)
            expected = expected_tensors(model, inputs)
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as directory:
                # Every fourth without its head, whose names have no "transformer.".
                bare = config.tie_word_embeddings and seed % 4 == 0
                (model.transformer if bare else model).save_pretrained(directory)
                actual = self.forward(directory, inputs, "--gradients", *(["--head", "causal-lm"] if bare else []))
                self.assertEqual(sorted(actual), sorted(expected))
                for name, tensor in expected.items():
                    error = relative_error(without_hidden_rows(name, actual[name], inputs["attention_mask"]),
                                           without_hidden_rows(name, tensor, inputs["attention_mask"]))
                    kind = name.split(".")[0]
                    worst[kind] = max(worst.get(kind, (0, "")), (error, f"{name}, seed {seed}"))
                    self.assertLessEqual(error, 1e-4 if kind == "grad" else 1e-5, name)
        for kind, (error, where) in worst.items():
            print(f"{kind}: worst relative error {error:.1e} ({where})")

    def test_what_is_not_asked_for_is_not_written(self):
        config = random_config(random.Random(1))
        with tempfile.TemporaryDirectory() as directory:
            random_model(config, 1).save_pretrained(directory)
            inputs = {"input_ids": torch.tensor([[1, 2, 3]])}
            names = self.forward(directory, inputs)
            self.assertFalse([name for name in names if name == "loss" or name.startswith("grad.")])
            self.assertIn("logits", names)

    def test_faults(self):
        config = random_config(random.Random(2))
        with tempfile.TemporaryDirectory() as directory:
            random_model(config, 2).save_pretrained(directory)
            output = os.path.join(directory, "out.safetensors")
            good = "[[1, 2, 3], [0, 1, 2]]"
            for words, code, said in [
                    (["--input_ids", "[[1, 2"], 1, ["--input_ids"]),
                    (["--input_ids", "[1, 2]"], 1, ["--input_ids", "rows"]),
                    (["--input_ids", "[]"], 1, ["--input_ids"]),
                    (["--input_ids", "[[]]"], 1, ["--input_ids"]),
                    (["--input_ids", "[[1], [1, 2]]"], 1, ["--input_ids", "equally long", "1 and 2"]),
                    (["--input_ids", "[[1, 2.5]]"], 1, ["--input_ids", "2.5"]),
                    (["--input_ids", "[[1, \"a\"]]"], 1, ["--input_ids", "\"a\""]),
                    (["--input_ids", f"[[1, {config.vocab_size}]]"], 1, ["--input_ids", f"got {config.vocab_size}"]),
                    (["--input_ids", "[[1, -3]]"], 1, ["--input_ids", "got -3"]),
                    (["--input_ids", "[[18446744073709551615]]"], 1, ["--input_ids", "got 18446744073709551615"]),
                    (["--input_ids", json.dumps([[0] * (config.n_positions + 1)])], 1,
                     [f"{config.n_positions + 1} tokens", f"{config.n_positions} positions"]),
                    (["--input_ids", good, "--attention_mask", "[[1, 1, 1]]"], 1, ["--attention_mask", "[2, 3]"]),
                    (["--input_ids", good, "--attention_mask", "[[1, 1, 2], [1, 1, 1]]"], 1, ["--attention_mask", "2"]),
                    (["--input_ids", good, "--labels", "[[1, 1, -1], [1, 1, 1]]"], 1, ["--labels", "-1", "-100"]),
                    (["--input_ids", good, "--head", "casual-lm"], 1, ["casual-lm", "causal-lm"]),
                    (["--input_ids", good, "--head", "masked-lm"], 1, ["masked-lm"]),
                    (["--input_ids", good, "--gradients"], 2, ["--gradients", "--labels"]),
                    ([], 2, ["input_ids"])]:
                with self.subTest(words=words):
                    done = tzoo("forward", "--model", directory, "--output", output, *words)
                    self.assertEqual(done.returncode, code, done.stderr)
                    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
                    self.assertEqual(len(errors), 1, done.stderr)
                    for text in said:
                        self.assertIn(text, errors[0])
                    self.assertFalse(os.path.exists(output))


if __name__ == "__main__":
    unittest.main()
