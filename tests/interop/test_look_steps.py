"""A head step by step, as POST /look sends it: query, keys, values, scale, softcap and what is added to the scores give the
weights and the head's output of transformers in float64, for each kind of position."""

import base64
import json
import math
import pathlib
import sys
import tempfile
import unittest

import numpy
import torch
import transformers

import test_analysis as analysis
from test_analysis import CLEAN, TARGET, WORDS, hf, on_output

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server  # noqa: E402

SIZES = {"vocab_size": len(WORDS), "bos_token_id": None, "eos_token_id": 2, "pad_token_id": 0}
ROTARY = SIZES | {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24,
                  "max_position_embeddings": 32}
DECODERS = {  # grouped heads; a norm of queries and keys; a softcap and a window; ALiBi
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**ROTARY)),
    "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**ROTARY, head_dim=8)),
    "gemma2": (transformers.Gemma2ForCausalLM, transformers.Gemma2Config(
        **ROTARY, head_dim=4, attn_logit_softcapping=2.0, sliding_window=3, layer_types=["sliding_attention", "full_attention"],
        query_pre_attn_scalar=9)),
    "bloom": (transformers.BloomForCausalLM, transformers.BloomConfig(**SIZES, hidden_size=16, n_layer=2, n_head=2)),
}


def floats(text, *shape):
    return torch.tensor(numpy.frombuffer(base64.b64decode(text), numpy.float32).astype(numpy.float64)).reshape(*shape)


class LookSteps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.references = {"gpt2": analysis.gpt2(5), "bert": analysis.bert(5), "t5": analysis.t5(5)}
        cls.models = {name: reference.model for name, reference in cls.references.items()}
        for name, (kind, config) in DECODERS.items():
            cls.models[name] = hf.random_model(kind, config, 7)
        for name, model in cls.models.items():
            model.save_pretrained(cls.folder / name)
            analysis.save_tokenizer(cls.folder / name)
            model.double().eval()
            model.set_attn_implementation("eager")
        cls.server = Server(*[word for name in cls.models for word in ("--model", cls.folder / name)])
        cls.addClassCleanup(cls.server.close)

    def steps(self, name, **fields):
        """The answer, and the scores, weights and output that follow from it."""
        target = {"target": TARGET} if name == "t5" else {}
        sent = self.server.post("/look", model=name, text=CLEAN, **target, **fields)["attention"]["steps"]
        query, added, weights = (floats(sent[part], -1) for part in ("query", "added", "weights"))
        keys, values = (floats(sent[part], len(added), len(query)) for part in ("keys", "values"))
        scores = keys @ query * sent["scale"]
        if sent["softcap"] > 0:
            scores = sent["softcap"] * torch.tanh(scores / sent["softcap"])
        return sent, keys @ query, weights, (scores + added).softmax(-1), (scores + added).softmax(-1) @ values

    def assert_close(self, found, expected, what):
        self.assertEqual(found.shape, expected.shape, what)
        self.assertLess((found - expected).abs().max().item(), 1e-5 * max(1.0, expected.abs().max().item()), what)

    def attentions(self, name, kind):
        with torch.no_grad(), hf.float64():
            inputs = {"input_ids": analysis.ids_of(CLEAN)}
            if name == "t5":
                inputs["decoder_input_ids"] = torch.cat([torch.tensor([[0]]), analysis.ids_of(TARGET)], 1)
            return self.models[name](**inputs, output_attentions=True)[kind]

    def test_the_scores_give_the_weights(self):
        cases = [(name, {}, "attentions") for name in self.models if name != "t5"]
        cases += [("t5", {"stack": "encoder"}, "encoder_attentions"), ("t5", {}, "decoder_attentions"), ("t5", {"cross": True}, "cross_attentions")]
        for name, fields, kind in cases:
            heads = 4 if name in ("llama", "qwen3", "gemma2") else 2
            for layer, head, query in ((0, heads - 1, 3), (1, 0, 2)):
                with self.subTest(model=name, layer=layer, head=head, query=query, **fields):
                    _, _, weights, softmax, _ = self.steps(name, layer=layer, head=head, query=query, **fields)
                    expected = self.attentions(name, kind)[layer][0, head, query]
                    self.assert_close(softmax, weights, "softmax of the scores")
                    self.assert_close(weights, expected, "weights")

    def test_values_give_the_output(self):
        for name, part in (("gpt2", "head"), ("bert", "head"), ("t5", "head"), ("t5", "cross_head")):
            with self.subTest(model=name, part=part):
                _, seen, _ = self.references[name].run(CLEAN)
                *_, output = self.steps(name, layer=1, head=1, query=2, **({"cross": True} if part == "cross_head" else {}))
                self.assert_close(output, self.references[name].value(seen, (part, 1, 1))[0, 2], "output")

    def test_the_query_is_the_answers_by_default(self):
        self.assertEqual(self.steps("gpt2", layer=1, head=1)[0], self.steps("gpt2", layer=1, head=1, query=5)[0])
        self.assertEqual(self.steps("bert", layer=1, head=1)[0], self.steps("bert", layer=1, head=1, query=4)[0])

    def test_rotation(self):
        """Before their rotation, queries and keys are the outputs of their projections."""
        seen, attention = {}, self.models["llama"].model.layers[1].self_attn
        hooks = [on_output(getattr(attention, name), lambda value, name=name: seen.update({name: value})) for name in ("q_proj", "k_proj")]
        self.attentions("llama", "attentions")
        for hook in hooks:
            hook.remove()
        sent, dots, *_ = self.steps("llama", layer=1, head=3, query=4)
        expected = seen["k_proj"][0].unflatten(-1, (2, 4))[:, 1] @ seen["q_proj"][0, 4].unflatten(-1, (4, 4))[3]
        unrotated = floats(sent["unrotated"], -1)
        self.assert_close(unrotated, expected, "unrotated")
        self.assert_close(unrotated[4], dots[4], "at distance 0, both turn by the same angle")
        self.assertGreater((unrotated - dots).abs().max().item(), 1e-2)
        self.assertNotIn("unrotated", self.steps("gpt2", layer=1, head=1)[0])

    def test_scale_softcap_and_what_is_added(self):
        infinite = -math.inf
        sent = self.steps("gpt2", layer=0, head=0, query=2)[0]
        self.assertAlmostEqual(sent["scale"], 1 / math.sqrt(6), places=12)
        self.assertEqual(floats(sent["added"], -1).tolist(), [0, 0, 0, infinite, infinite, infinite])
        sent = self.steps("gemma2", layer=0, head=0, query=4)[0]
        self.assertEqual((sent["scale"], sent["softcap"]), (1 / 3, 2.0))
        self.assertEqual(floats(sent["added"], -1).tolist(), [infinite, infinite, 0, 0, 0, infinite])  # a window of 3
        self.assertEqual(floats(self.steps("gemma2", layer=1, head=0, query=4)[0]["added"], -1).tolist(), [0] * 5 + [infinite])
        # ALiBi's slopes of two heads are 2^-4 and 2^-8 (Press et al., 2022, section 3).
        sent = self.steps("bloom", layer=0, head=1, query=3)[0]
        self.assertEqual(floats(sent["added"], -1).tolist(), [-3 / 256, -2 / 256, -1 / 256, 0, infinite, infinite])
        # T5's buckets, and its scores without a scale.
        sent, bias = self.steps("t5", stack="encoder", layer=1, head=1, query=2)[0], self.models["t5"].encoder.block[0].layer[0].SelfAttention
        self.assertEqual(sent["scale"], 1)
        with torch.no_grad():
            self.assert_close(floats(sent["added"], -1), bias.compute_bias(6, 6)[0, 1, 2], "buckets")

    def test_refusals(self):
        for param, fields in (("head", {"head": 0}), ("head", {"layer": 0, "head": 2}), ("query", {"layer": 0, "head": 0, "query": 6}),
                              ("cross", {"layer": 0, "head": 0, "cross": True}), ("query", {"layer": 0, "head": 0, "query": -1})):
            status, data, _ = self.server.request("POST", "/look", {"model": "gpt2", "text": CLEAN, **fields})
            self.assertEqual((status, json.loads(data)["error"]["param"]), (400, param), data)


if __name__ == "__main__":
    unittest.main()
