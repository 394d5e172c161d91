"""tzoo forward and export beside transformers: random T5s in every form that checkpoints have."""

import json
import os
import pathlib
import random
import tempfile
import unittest

import torch
import transformers
from forward_parity import ForwardParity, hf, tzoo
from generation_parity import GenerationParity
from transformers import T5Config


def untie(model):
    """A projection of its own. Release 5 of transformers ties what its files do not hold twice."""
    model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) * 0.3)
    model.all_tied_weights_keys.pop("lm_head.weight", None)
    model._tied_weights_keys = {k: v for k, v in model._tied_weights_keys.items() if k != "lm_head.weight"}


def with_small_queries(model):
    """Scores are not divided by sqrt(D): a T5 has smaller queries instead. Otherwise every softmax would be a choice."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("Attention.q.weight"):
                parameter.mul_(model.config.d_kv ** -0.5)
    return model


def as_release_4(directory):
    """config.json with the keys of transformers 4, where one of them says two things."""
    path = os.path.join(directory, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
    config["torch_dtype"] = config.pop("dtype")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


class T5Test(ForwardParity, GenerationParity, unittest.TestCase):
    # The ways to tie the output projection or not and to scale the hidden state before it or not; bare models.
    HEADS = {
        "version 1.0": transformers.T5ForConditionalGeneration,
        "version 1.1": transformers.T5ForConditionalGeneration,
        "version 1.1 in release 5": transformers.T5ForConditionalGeneration,
        "tied, not scaled": transformers.T5ForConditionalGeneration,
        "untied, scaled": transformers.T5ForConditionalGeneration,
        "bare": transformers.T5Model,
        "encoder": transformers.T5EncoderModel,
    }

    @staticmethod
    def random_config(draw, form):
        config = T5Config(
            num_layers=draw.choice([1, 2, 3]), num_decoder_layers=draw.choice([1, 2, 3]),
            num_heads=draw.choice([1, 2, 4]), d_model=draw.choice([8, 12, 32]), d_kv=draw.choice([3, 4, 8]),
            d_ff=draw.choice([7, 16, 33]), vocab_size=draw.randint(6, 90),
            relative_attention_num_buckets=draw.choice([4, 7, 8, 32]),
            relative_attention_max_distance=draw.choice([17, 20, 128]), layer_norm_epsilon=draw.choice([1e-6, 1e-3]),
            feed_forward_proj=draw.choice(["relu", "gated-gelu", "gated-silu", "gated-relu", "gelu"]),
            dropout_rate=0.1,  # must not act outside of training
            decoder_start_token_id=draw.choice([0, 1, 3]), pad_token_id=draw.choice([0, 2]), eos_token_id=1)
        config.scale_decoder_outputs = form in ("version 1.0", "untied, scaled")
        return config

    def random_model(self, seed):
        draw = random.Random(seed)
        form = list(self.HEADS)[seed % len(self.HEADS)]
        model = hf.random_model(self.HEADS[form], self.random_config(draw, form), seed)
        with_small_queries(model)
        if form.startswith("version 1.1") or form.startswith("untied"):
            untie(model)
        head = "seq2seq-lm" if self.HEADS[form] is transformers.T5ForConditionalGeneration else "base"
        length = draw.randint(5, 40)
        return head, model, hf.random_inputs(model, head, length, draw.randint(1, length - 3), draw.randint(1, length - 3))

    def save(self, model, head, directory, seed):
        model.save_pretrained(directory)
        if list(self.HEADS)[seed % len(self.HEADS)] in ("version 1.0", "version 1.1"):
            as_release_4(directory)
        return []

    SIDE = "right"

    def generator(self, seed):
        # No decoder deeper than the encoder: the cache that transformers 5.23 makes for generate has too few layers then.
        config = T5Config(
            num_layers=2, num_decoder_layers=[2, 1, 2][seed % 3], num_heads=4, d_model=32, d_kv=[8, 6][seed % 2], d_ff=40,
            vocab_size=61, relative_attention_num_buckets=8, relative_attention_max_distance=12,
            feed_forward_proj=["relu", "gated-gelu", "gated-silu"][seed % 3], decoder_start_token_id=[0, 3][seed % 2],
            pad_token_id=0, eos_token_id=None)
        config.scale_decoder_outputs = seed % 2 == 0
        return with_small_queries(hf.random_model(transformers.T5ForConditionalGeneration, config, seed))

    @torch.no_grad()
    def test_a_torchscript_file_hides_padding_as_transformers_does(self):
        with tempfile.TemporaryDirectory() as folder:
            model = self.generator(1)
            script = self.exported(model, folder)
            ids = torch.randint(4, 61, (3, 9))
            ids[1, 5:] = 0
            ids[2, :2] = 0
            expected = model.generate(ids, attention_mask=ids.ne(0).long(), max_new_tokens=12, do_sample=False)[:, 1:]
            self.assertEqual(script.generate(ids, 12, 0, 0).tolist(), expected.tolist())
            given = script.generate(ids, 12, 0, 0, torch.ones_like(ids))
            self.assertNotEqual(given.tolist(), expected.tolist())

    def test_faults(self):
        with tempfile.TemporaryDirectory() as directory:
            self.generator(0).save_pretrained(directory)
            ids = ["--input_ids", "[[1, 2, 3], [0, 1, 2]]"]
            self.check_faults(directory, [
                (ids, 2, ["--decoder_input_ids", "--labels"]),
                ([*ids, "--decoder_input_ids", "[[1, 61], [2, 3]]"], 2, ["--decoder_input_ids", "0 to 60", "got 61"]),
                ([*ids, "--decoder_input_ids", "[[1, 2]]"], 2, ["--decoder_input_ids", "2 rows", "got 1"]),
                ([*ids, "--labels", "[[1, -1], [2, 3]]"], 2, ["--labels", "-1", "-100"]),
                ([*ids, "--labels", "[[1, 2]]"], 2, ["--labels", "2 rows", "got 1"]),
                ([*ids, "--labels", "[[1, 2], [3, 4]]", "--decoder_input_ids", "[[1], [2]]"], 1, ["labels must be [2, 1]"]),
                ([*ids, "--decoder_input_ids", "[[1], [2]]", "--head", "causal-lm"], 1, ["causal-lm", "seq2seq-lm"]),
            ])
            done = tzoo("generate", "--model", directory)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--prompt", done.stderr)
            config = pathlib.Path(directory, "config.json")
            config.write_text(json.dumps(json.loads(config.read_text()) | {"num_decoder_layers": 0}))
            self.check_faults(directory, [([*ids, "--decoder_input_ids", "[[1], [2]]"], 1, ["'num_decoder_layers' is 0", "at least 1"])])

    @torch.no_grad()
    def test_packed_weights_read_what_padding_at_the_end_leaves(self):
        model = self.generator(2)
        torch.manual_seed(2)
        inputs = {"input_ids": torch.randint(4, 61, (3, 9)), "attention_mask": torch.ones(3, 9, dtype=torch.long),
                  "decoder_input_ids": torch.randint(4, 61, (3, 6))}
        inputs["attention_mask"][1, 5:] = inputs["attention_mask"][2, 1:] = 0
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            logits = self.forward(folder, inputs, "--weights", "float32")["logits"]
            exact = hf.exact_tensors(model, "seq2seq-lm", inputs)["logits"]
            error, rounding = ((each - exact).abs().max().item() for each in (logits, model(**inputs).logits))
            self.assertLess(error, 4 * rounding)
            for row in ([0, 1, 1], [1, 0, 1], [0, 0, 0]):
                done = tzoo("forward", "--model", folder, "--input_ids", "[[5, 6, 7]]", "--decoder_input_ids", "[[3]]",
                            "--attention_mask", json.dumps([row]), "--weights", "float32", "--output", os.path.join(folder, "o"))
                self.assertEqual(done.returncode, 1, row)
                self.assertIn("--attention_mask: with packed weights", done.stderr)


if __name__ == "__main__":
    unittest.main()
