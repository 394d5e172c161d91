"""POST /look of tzoo serve beside transformers with PyTorch's hooks, computing in float64."""

import base64
import math
import pathlib
import sys
import tempfile
import unittest

import numpy
import torch
import transformers

import test_analysis as analysis
from test_analysis import CLEAN, CORRUPTED, TARGET, WORDS, hf
from text_models import byte_level

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server  # noqa: E402


def levels(text, *shape):
    return torch.tensor(numpy.frombuffer(base64.b64decode(text), numpy.uint8).reshape(shape) / 255)


def rest(text):
    return numpy.frombuffer(base64.b64decode(text), numpy.float32)


class Look(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.references = {"gpt2": analysis.gpt2(5), "bert": analysis.bert(5), "t5": analysis.t5(5)}
        for name, reference in cls.references.items():
            cls.save(name, reference.model)
            reference.model.double()
        more = {name: make(5) for name, make in (("llama", analysis.llama), ("gemma2", analysis.gemma2), ("olmo2", analysis.olmo2), ("neox", analysis.gpt_neox))}
        cls.all_references = cls.references | more
        for name, reference in more.items():
            cls.save(name, reference.model)
            reference.model.double()
        config = transformers.BertConfig(
            vocab_size=len(WORDS), hidden_size=12, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=20, pad_token_id=0, id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
        cls.labels = hf.random_model(transformers.BertForSequenceClassification, config, 4)
        cls.spans = hf.random_model(transformers.BertForQuestionAnswering, config, 4)
        cls.save("labels", cls.labels)
        cls.save("spans", cls.spans)
        cls.twice = hf.random_model(transformers.BartForSequenceClassification, transformers.BartConfig(
            vocab_size=len(WORDS), d_model=12, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
            encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=16, bos_token_id=1, eos_token_id=2, pad_token_id=0,
            decoder_start_token_id=2, num_labels=3), 4)
        cls.save("twice", cls.twice)
        cls.mixture = hf.random_model(transformers.MixtralForCausalLM, transformers.MixtralConfig(
            hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, num_local_experts=3,
            num_experts_per_tok=2, max_position_embeddings=16, **analysis.IDS), 4)
        cls.save("mixture", cls.mixture)
        cls.scored = {}
        for name, problem, count in (("several", "multi_label_classification", 3), ("ratings", "regression", 2), ("reranker", None, 1)):
            config = transformers.BertConfig(
                vocab_size=len(WORDS), hidden_size=12, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16,
                max_position_embeddings=20, pad_token_id=0, num_labels=count, problem_type=problem)
            cls.scored[name] = hf.random_model(transformers.BertForSequenceClassification, config, 4)
            cls.save(name, cls.scored[name])
        tokens = byte_level()
        cls.large = hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(
            n_positions=32, n_embd=12, n_layer=2, n_head=2, vocab_size=len(tokens) + 1, bos_token_id=None, eos_token_id=None), 3)
        cls.save("large", cls.large)
        tokens.save_pretrained(cls.folder / "large")
        names = ["gpt2", "bert", "t5", "labels", "spans", "twice", "large", "mixture", *cls.scored, *more]
        cls.server = Server(*[word for name in names for word in ("--model", cls.folder / name)])
        cls.addClassCleanup(cls.server.close)

    @classmethod
    def save(cls, name, model):
        model.save_pretrained(cls.folder / name)
        analysis.save_tokenizer(cls.folder / name)

    def look(self, name, text=CLEAN, **fields):
        if name == "t5":
            fields["target"] = TARGET
        return self.server.post("/look", model=name, text=text, **fields)

    def position(self, name):
        return CLEAN.split().index("[MASK]") if name == "bert" else -1

    def answer(self, name, text=CLEAN, changes=()):
        return self.references[name].run(text, changes)[0][self.position(name)]

    def assert_close(self, found, expected, what):
        found, expected = torch.as_tensor(found).double(), torch.as_tensor(expected).double()
        self.assertEqual(found.shape, expected.shape, what)
        self.assertLess((found - expected).abs().max().item(), 1e-5 * max(1.0, expected.abs().max().item()), what)

    def logits(self, answer, part=None):
        """In the order of the ids."""
        by_id = dict(zip(answer["ids"], (part or answer)["logits"], strict=True))
        return torch.tensor([by_id[i] for i in range(len(by_id))], dtype=torch.float64)

    def test_answer_lens_and_lengths(self):
        for name, reference in self.references.items():
            with self.subTest(model=name):
                found = self.look(name)
                logits, seen, embedded = reference.run(CLEAN)
                at = self.position(name)
                self.assertEqual((found["answer"]["kind"], found["answer"]["count"]), ("token", len(WORDS)))
                self.assert_close(self.logits(found["answer"]), logits[at], "logits")
                self.assertEqual([WORDS[i] for i in found["answer"]["ids"]],
                                 [each.strip() for each in found["answer"]["names"]])  # a word of a decoder has its space
                self.assertEqual(found["answer"]["ids"][0], logits[at].argmax().item())
                self.assertEqual([token["id"] for token in found["tokens"]], analysis.ids_of(CLEAN)[0].tolist())
                states = [embedded, *(seen["residual", i] for i in range(len(reference.parts["residual"])))]
                self.assert_close(found["norms"], torch.stack([state[0].norm(dim=-1) for state in states]), "lengths")
                for row, state in zip(found["lens"], states, strict=True):
                    with torch.no_grad(), hf.float64():
                        log_p = reference.readout(state)[0, at].log_softmax(-1)
                    best = log_p.exp().topk(5)
                    self.assert_close([answer["probability"] for answer in row["answers"]], best.values, "lens")
                    self.assertEqual([answer["id"] for answer in row["answers"]], best.indices.tolist())
                    self.assert_close(row["entropy"], -(log_p.exp() * log_p).sum() / math.log(2), "entropy")

    def test_what_is_off(self):
        sites = [("head", 0, 1), ("feed_forward", 0), ("attention", 1)]
        fields = {"heads": ["0.1"], "sublayers": ["0.feed_forward", "1.attention"]}
        for name in self.references:
            with self.subTest(model=name):
                found = self.look(name, **fields)["answer"]
                clean, off = self.answer(name), self.answer(name, changes=[(site, torch.zeros_like) for site in sites])
                self.assert_close(self.logits(found), off, "off")
                self.assert_close(self.logits(found, found["plain"]), clean, "plain")
                on, less = clean.log_softmax(-1), off.log_softmax(-1)
                self.assert_close(found["divergence"], (on.exp() * (on - less)).sum() / math.log(2), "divergence")
                _, seen, _ = self.references[name].run(CLEAN)
                mean = self.references[name].value(seen, sites[0]).mean(1, keepdim=True)
                expected = self.answer(name, changes=[(sites[0], lambda of, mean=mean: mean.expand_as(of))])
                self.assert_close(self.logits(self.look(name, heads=["0.1"], **{"with": "mean"})["answer"]), expected, "mean")
        encoder = self.look("t5", heads=["1.0"], stack="encoder")["answer"]
        self.assert_close(self.logits(encoder), self.answer("t5", changes=[(("encoder_head", 1, 0), torch.zeros_like)]), "encoder")
        cross = self.look("t5", cross_heads=["1.0"])["answer"]
        self.assert_close(self.logits(cross), self.answer("t5", changes=[(("cross_head", 1, 0), torch.zeros_like)]), "cross")

    def test_a_patched_state(self):
        for name in ("gpt2", "bert"):
            with self.subTest(model=name):
                _, source, _ = self.references[name].run(CORRUPTED)
                value = source["residual", 1][:, 2]

                def patched(of, value=value):
                    of = of.clone()
                    of[:, 2] = value
                    return of

                found = self.look(name, patch_text=CORRUPTED, patch_layer=1, patch_positions=[2])["answer"]
                self.assert_close(self.logits(found), self.answer(name, changes=[(("residual", 1), patched)]), "patched")
                head = self.references[name].value(source, ("head", 2, 1))
                found = self.look(name, patch_text=CORRUPTED, patch_part="head", patch_layer=2, patch_head=1)["answer"]
                self.assert_close(self.logits(found), self.answer(name, changes=[(("head", 2, 1), lambda _, head=head: head)]), "head")

    def test_attention_and_rollout(self):
        for name, stack in (("gpt2", None), ("bert", None), ("t5", "decoder"), ("t5", "encoder")):
            with self.subTest(model=name, stack=stack):
                found = self.look(name, layer=1, **({"stack": stack} if stack else {}))["attention"]
                output = self.references[name].forward(CLEAN, output_attentions=True)
                expected = {None: "attentions", "decoder": "decoder_attentions", "encoder": "encoder_attentions"}[stack]
                expected = {"self": output[expected]}
                if stack == "decoder":
                    expected["cross"] = output.cross_attentions
                self.assertEqual([each["kind"] for each in found["maps"]], list(expected))
                for each in found["maps"]:
                    weights = expected[each["kind"]][1][0]
                    near = (levels(each["weights"], *weights.shape) - weights).abs().max().item()
                    self.assertLess(near, 0.5 / 255 + 1e-4)
                rollout = torch.eye(expected["self"][0].shape[-1], dtype=torch.float64)
                for weights in expected["self"][:2]:
                    rollout = (0.5 * weights[0].mean(0) + 0.5 * torch.eye(len(rollout))) @ rollout
                self.assertLess((levels(found["rollout"], *rollout.shape) - rollout).abs().max().item(), 0.5 / 255 + 1e-4)

    def test_answers_without_a_name_are_in_the_rest(self):
        found = self.server.post("/look", model="large", text="and the", append=[20, 30])
        ids = [token["id"] for token in found["tokens"]]
        self.assertEqual(ids[-2:], [20, 30])
        self.assertEqual(found["text"], "and the" + byte_level().decode([20, 30]))
        with torch.no_grad(), hf.float64():
            logits = self.large.double()(input_ids=torch.tensor([ids])).logits[0, -1]
        answer = found["answer"]
        self.assertEqual(len(answer["ids"]), 200)
        self.assert_close(answer["logits"], logits[answer["ids"]], "named")
        self.assert_close(answer["logits"], logits.topk(200).values, "the largest")
        padded = self.server.post("/look", model="large", text="and the", append=[20, len(byte_level())])
        self.assertEqual((padded["text"], padded["tokens"][-1]["id"]), ("and the" + byte_level().decode([20]), len(byte_level())))
        self.assert_close(sorted(rest(answer["rest"]).tolist()), logits.sort().values[:-200], "rest")
        # Also after an earlier token, whose logits a decoder gives too.
        with torch.no_grad(), hf.float64():
            logits = self.large.double()(input_ids=torch.tensor([ids])).logits[0, 1]
        found = self.server.post("/look", model="large", text="and the", append=[20, 30], position=1)
        self.assert_close(found["answer"]["logits"], logits.topk(200).values, "position")

    def test_labels_and_spans(self):
        answer = self.look("labels", sublayers=["1.attention"])["answer"]
        self.assertEqual((answer["kind"], set(answer["names"])), ("label", {"bad", "good"}))
        with torch.no_grad(), hf.float64():
            model = self.labels.double()
            on = model(input_ids=analysis.ids_of(CLEAN)).logits[0]
            hook = analysis.on_output(model.bert.encoder.layer[1].attention.output.dense, torch.zeros_like)
            off = model(input_ids=analysis.ids_of(CLEAN)).logits[0]
            hook.remove()
            question, context = "the cat", "a dog sat on a mat"
            ids = torch.cat([analysis.ids_of(question), analysis.ids_of(context)], 1)
            types = torch.tensor([[0] * len(question.split()) + [1] * len(context.split())])
            output = self.spans.double()(input_ids=ids, token_type_ids=types)
            twice = f"{CLEAN} [SEP]"
            double = self.twice.double()(input_ids=analysis.ids_of(twice)).logits[0]
        self.assert_close(self.logits(answer, answer["plain"]), on, "labels")
        self.assertEqual(self.look("labels")["position"], 0)  # the token that BERT's head reads
        found = self.look("twice", twice)
        self.assertEqual([token["id"] for token in found["written"]], [2, *analysis.ids_of(CLEAN)[0].tolist()])
        self.assert_close(self.logits(found["answer"]), double, "labels of two stacks")
        self.assert_close(self.logits(answer), off, "labels without a sublayer")
        answer = self.look("spans", question, text_pair=context)["answer"]
        self.assertEqual(answer["kind"], "span")
        words, first = context.split(), len(question.split())
        expected = {" ".join(words[i:j + 1]): (output.start_logits[0, first + i] + output.end_logits[0, first + j]).item()
                    for i in range(len(words)) for j in range(i, len(words)) if words[i:j + 1] != ["a"]}
        found = dict(zip(answer["names"], answer["logits"], strict=True))
        self.assertEqual(answer["count"], len(words) * (len(words) + 1) // 2)
        for span, logit in expected.items():
            self.assert_close(found[span], logit, span)

    # A block's norms in their order, and the matrix from its neurons to the stream.
    INSIDE = {
        "gpt2": lambda m, l: ([m.transformer.h[l].ln_1, m.transformer.h[l].ln_2, m.transformer.ln_f], m.transformer.h[l].mlp.c_proj),
        "llama": lambda m, l: ([m.model.layers[l].input_layernorm, m.model.layers[l].post_attention_layernorm, m.model.norm],
                               m.model.layers[l].mlp.down_proj),
        "gemma2": lambda m, l: ([*(getattr(m.model.layers[l], f"{name}_layernorm") for name in
                                   ("input", "post_attention", "pre_feedforward", "post_feedforward")), m.model.norm], m.model.layers[l].mlp.down_proj),
        "olmo2": lambda m, l: ([m.model.layers[l].post_attention_layernorm, m.model.layers[l].post_feedforward_layernorm, m.model.norm],
                               m.model.layers[l].mlp.down_proj),
        "neox": lambda m, l: ([m.gpt_neox.layers[l].input_layernorm, m.gpt_neox.layers[l].post_attention_layernorm, m.gpt_neox.final_layer_norm],
                              m.gpt_neox.layers[l].mlp.dense_4h_to_h),
        "bert": lambda m, l: ([m.bert.encoder.layer[l].attention.output.LayerNorm, m.bert.encoder.layer[l].output.LayerNorm],
                              m.bert.encoder.layer[l].output.dense),
        "t5": lambda m, l: ([*(layer.layer_norm for layer in m.decoder.block[l].layer), m.decoder.final_layer_norm],
                            m.decoder.block[l].layer[-1].DenseReluDense.wo),
    }

    def test_norms_and_neurons_of_a_block(self):
        for name, inside in self.INSIDE.items():
            with self.subTest(model=name):
                reference = self.all_references[name]
                layer, at, seen = len(reference.parts["residual"]) - 1, self.position(name), {}
                norms, down = inside(reference.model, layer)
                hooks = [norm.register_forward_hook(lambda _, x, y, i=i: seen.update({i: (x[0][0, at], y[0, at])})) for i, norm in enumerate(norms)]
                hooks.append(down.register_forward_pre_hook(lambda _, x: seen.update(neurons=x[0].reshape(-1, x[0].shape[-1])[at])))
                reference.run(CLEAN, [(("attention", layer), torch.zeros_like)])
                for hook in hooks:
                    hook.remove()
                found = self.look(name, layer=layer, sublayers=[f"{layer}.attention"])["inside"]
                self.assert_close([(each["before"], each["after"]) for each in found["norms"]],
                                  [[state.norm() for state in seen[i]] for i in range(len(norms))], "lengths")
                for each, norm, (state, _) in zip(found["norms"], norms, [seen[i] for i in range(len(norms))], strict=True):
                    mean = state.mean() if isinstance(norm, torch.nn.LayerNorm) else 0
                    self.assertEqual(each["mean"] is None, not isinstance(norm, torch.nn.LayerNorm))
                    self.assert_close(each["mean"] or 0, mean, each["name"])
                    eps = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
                    self.assert_close(each["divisor"], ((state - mean).square().mean() + eps).sqrt(), each["name"])
                columns = down.weight if isinstance(down, transformers.pytorch_utils.Conv1D) else down.weight.T  # [F, C]
                strengths = seen["neurons"].abs() * columns.norm(dim=1)
                self.assertEqual([each["id"] for each in found["neurons"]], [i for i in strengths.argsort(descending=True)[:8].tolist() if strengths[i] > 0])
                self.assert_close([each["activation"] for each in found["neurons"]], [seen["neurons"][each["id"]] for each in found["neurons"]], "activations")
                table = reference.model.get_output_embeddings().weight
                for each in found["neurons"]:
                    raised = table @ (seen["neurons"][each["id"]] * columns[each["id"]])
                    expected = [] if name == "bert" else [WORDS[i] for i in raised.topk(5).indices]
                    self.assertEqual([token.strip() for token in each["tokens"]], expected)

    def test_experts_of_each_token(self):
        with torch.no_grad(), hf.float64():
            logits = self.mixture.double()(input_ids=analysis.ids_of(CLEAN), output_router_logits=True).router_logits[1]
        weights, experts = logits.softmax(-1).topk(2)
        found = self.look("mixture", layer=1)["inside"]
        self.assertEqual((found["neurons"], [[each["expert"] for each in row] for row in found["experts"]]), ([], experts.tolist()))
        self.assert_close([[each["weight"] for each in row] for row in found["experts"]], weights / weights.sum(-1, keepdim=True), "weights")

    def test_scores_and_several_labels_are_no_distribution(self):
        for name, kind in (("several", "labels"), ("ratings", "score"), ("reranker", "score")):
            found = self.look(name, "the cat", text_pair="a dog sat", sublayers=["1.attention"])["answer"]
            ids, types = torch.cat([analysis.ids_of("the cat"), analysis.ids_of("a dog sat")], 1), torch.tensor([[0] * 2 + [1] * 3])
            with torch.no_grad(), hf.float64():
                model = self.scored[name].double()
                on = model(input_ids=ids, token_type_ids=types).logits[0]
                hook = analysis.on_output(model.bert.encoder.layer[1].attention.output.dense, torch.zeros_like)
                off = model(input_ids=ids, token_type_ids=types).logits[0]
                hook.remove()
            self.assertEqual((found["kind"], found["count"]), (kind, len(on)))
            self.assertNotIn("divergence", found)
            self.assert_close(self.logits(found, found["plain"]), on, name)
            self.assert_close(self.logits(found), off, name)

    def test_what_is_refused_names_its_field(self):
        for param, words, fields in [
            ("text", ["missing"], {"text": None}), ("text", ["empty"], {"text": ""}),
            ("text", ["17 tokens", "at most 16"], {"text": "the " * 17}),
            ("append", ["below 12"], {"append": [12]}), ("position", ["position"], {"position": 6}),
            ("layer", ["0 to 2"], {"layer": 3}), ("stack", ["encoder"], {"stack": "encoder"}), ("stack", ["encoder or decoder"], {"stack": "encodr"}),
            ("heads", ["0.7", "0 to 1"], {"heads": ["0.7"]}), ("heads", ["LAYER.HEAD"], {"heads": ["x"]}),
            ("layers", ["9"], {"layers": ["9"]}), ("sublayers", ["cross"], {"sublayers": ["0.cross_attention"]}),
            ("with", ["zero or mean"], {"with": "one"}), ("with", ["layer"], {"layers": ["1"], "with": "mean"}),
            ("patch_text", ["3 tokens", "6"], {"patch_text": "the cat sat", "patch_layer": 0}),
            ("patch_layer", ["missing"], {"patch_text": CORRUPTED}), ("patch_layer", ["0 to 2"], {"patch_layer": 7}),
            ("patch_head", ["missing"], {"patch_text": CORRUPTED, "patch_layer": 0, "patch_part": "head"}),
            ("patch_part", ["residual"], {"patch_text": CORRUPTED, "patch_layer": 0, "patch_part": "x"}),
            ("patch_positions", ["below 6"], {"patch_text": CORRUPTED, "patch_layer": 0, "patch_positions": [6]}),
            ("text_pair", ["encoder"], {"text_pair": "a"}), ("target", ["encoder-decoder"], {"target": "a"}),
            ("temperature", ["not supported"], {"temperature": 1}),
        ]:
            with self.subTest(fields=fields):
                status, data, _ = self.server.request("POST", "/look", {"model": "gpt2", "text": CLEAN, **fields})
                error = analysis.json.loads(data)["error"]
                self.assertEqual((status, error["param"]), (400, param), data)
                for word in words:
                    self.assertIn(word, error["message"])
                self.assertNotIn("--", error["message"])

    def test_counts_of_tokens_are_fields(self):
        for fields, tokens in (({"text": "the " * 17}, 17), ({"text": ""}, 0), ({"text": CLEAN}, None), ({"text": CLEAN, "patch_text": "", "patch_layer": 0}, 0)):
            status, data, _ = self.server.request("POST", "/look", {"model": "gpt2", "layers": [] if tokens is not None else ["9"], **fields})
            error = analysis.json.loads(data)["error"]
            self.assertEqual((status, error.get("tokens"), error.get("limit")), (400, tokens, 16 if tokens is not None else None), data)

    def test_a_large_model_is_refused_before_it_is_loaded(self):
        server = Server("--model", self.folder / "gpt2", "--look_gb", 0)
        self.addCleanup(server.close)
        status, data, _ = server.request("POST", "/look", {"text": CLEAN})
        self.assertEqual(status, 400)
        self.assertIn("--look_gb", data)
        self.assertIn("'gpt2'", data)


if __name__ == "__main__":
    unittest.main()
