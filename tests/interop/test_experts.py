"""Mixtures of experts: files with the experts of a layer in one tensor, as transformers 5 holds them in memory, and packed weights
of every type."""

import json
import os
import tempfile
import unittest

import torch
import transformers
from forward_parity import flags_of, hf, tzoo
from safetensors.torch import load_file, save_file

SIZES = dict(vocab_size=61, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
             max_position_embeddings=64, bos_token_id=None, eos_token_id=None, pad_token_id=None)
QWEN = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True)
MODELS = {"mixtral": lambda: (transformers.MixtralForCausalLM, transformers.MixtralConfig(**SIZES, num_local_experts=5)),
          "qwen2_moe": lambda: (transformers.Qwen2MoeForCausalLM, transformers.Qwen2MoeConfig(
              **SIZES, **QWEN, shared_expert_intermediate_size=48)),
          "qwen3_moe": lambda: (transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig(
              **SIZES, **QWEN, head_dim=16, mlp_only_layers=[0]))}
TENSORS = {"float32": 1e-5, "bfloat16": 0.03, "int8": 0.05, "int4": 0.5}  # how far the logits may be


class ExpertsTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def saved(self, name):
        """The model, and its directory in each form."""
        cls, config = MODELS[name]()
        model = hf.random_model(cls, config, 3)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.5)
        apart, joined = (os.path.join(self.folder, name + form) for form in ("-apart", "-joined"))
        model.save_pretrained(apart)
        model.save_pretrained(joined, save_original_format=False)
        return model, apart, joined

    def forward(self, folder, inputs, *words):
        path = os.path.join(self.folder, "out.safetensors")
        done = tzoo("forward", "--model", folder, *flags_of(inputs), "--output", path, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return load_file(path)

    def test_both_forms_of_files(self):
        for name in MODELS:
            with self.subTest(name=name):
                model, apart, joined = self.saved(name)
                shapes = {tensor.dim() for tensor in load_file(os.path.join(joined, "model.safetensors")).values()}
                self.assertIn(3, shapes)
                inputs = hf.random_inputs(model, "causal-lm", 9, 2, 2)
                one, other = (self.forward(folder, inputs, "--gradients") for folder in (apart, joined))
                self.assertEqual(sorted(one), sorted(other))
                for key, tensor in one.items():
                    self.assertTrue(torch.equal(tensor, other[key]), key)
                self.assertEqual(self.ids(apart, "float32"), self.ids(joined, "float32"))
                self.assertEqual(self.ids(apart, "int4"), self.ids(joined, "int4"))

    def ids(self, folder, weights):
        done = tzoo("generate", "--model", folder, "--input_ids", "[[5, 6, 7], [9]]", "--max_new_tokens", "20", "--temperature", "0",
                    "--json", "--weights", weights)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["ids"]

    def test_packed_weights_of_every_type(self):
        """The log-probabilities of what float32 writes, by weights of each type; of one token at a time and of many."""
        for name in MODELS:
            model, folder, _ = self.saved(name)
            prompt = torch.randint(61, (1, 40), generator=torch.Generator().manual_seed(2))
            with torch.no_grad():
                expected = torch.log_softmax(model(prompt).logits[0, -1], -1)
            for weights, tolerance in TENSORS.items():
                with self.subTest(name=name, weights=weights):
                    done = tzoo("generate", "--model", folder, "--input_ids", json.dumps(prompt.tolist()), "--max_new_tokens", "1",
                                "--temperature", "0", "--json", "--logprobs", "--weights", weights)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    said = json.loads(done.stdout)
                    token = said["ids"][0][0]
                    self.assertLess(abs(said["logprobs"][0][0] - expected[token].item()), tolerance * expected.abs().max().item())

    def test_a_tensor_of_all_experts_that_does_not_fit(self):
        _, _, folder = self.saved("mixtral")
        path = os.path.join(folder, "model.safetensors")
        tensors = load_file(path)
        name = "model.layers.1.mlp.experts.down_proj"
        for wrong in (tensors[name][:4], tensors[name].flatten(0, 1)):
            save_file({**tensors, name: wrong.contiguous()}, path)
            done = tzoo("forward", "--model", folder, "--input_ids", "[[1]]", "--output", os.path.join(self.folder, "x"))
            self.assertEqual(done.returncode, 1)
            self.assertIn(name + ": expected [5, 64, 96]", done.stderr)


if __name__ == "__main__":
    unittest.main()
