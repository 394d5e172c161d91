"""tzoo embed on directories with Sentence-Transformers' files, versions 2 to 6: each module as its documentation and torch
define it, each text by itself without padding."""

import itertools
import json
import pathlib
import tempfile
import unittest

import safetensors.torch
import tokenizers
import torch
import transformers

from text_models import TEXTS, byte_level, configure, lines, shaken, sizes, tzoo, wordpiece

LEGACY = {"cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens", "mean": "pooling_mode_mean_tokens",
          "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
          "weightedmean": "pooling_mode_weightedmean_tokens", "lasttoken": "pooling_mode_lasttoken"}
ACTIVATIONS = ["activation.Tanh", "linear.Identity", "activation.ReLU", "activation.GELU", "activation.SiLU",
               "activation.Sigmoid", "activation.LeakyReLU", "activation.ELU", "activation.Mish", "activation.Softplus"]


def pooled(mode, x, kept):
    """x [T, C], kept [T]: the tokens that count."""
    weights = torch.arange(1, len(x) + 1)[kept, None].float()
    x = x[kept]
    return {"cls": x[0], "max": x.max(0).values, "mean": x.mean(0), "mean_sqrt_len_tokens": x.sum(0) / len(x) ** 0.5,
            "weightedmean": (x * weights).sum(0) / weights.sum(), "lasttoken": x[-1]}[mode]


class SentenceModulesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)
        self.modules = []
        torch.manual_seed(3)

    def write(self, name, content):
        self.directory.joinpath(name).parent.mkdir(exist_ok=True)
        self.directory.joinpath(name).write_text(json.dumps(content))

    def add(self, kind, config=None, tensors=None, prefix="sentence_transformers.models."):
        path = "" if kind == "Transformer" else f"{len(self.modules)}_{kind}"
        self.modules.append({"idx": len(self.modules), "name": str(len(self.modules)), "path": path,
                             "type": prefix + kind})
        self.write("modules.json", self.modules)
        if config is not None:
            self.write(f"{path}/config.json", config)
        if tensors:
            safetensors.torch.save_file(tensors, self.directory / path / "model.safetensors")

    def pooling(self, modes, legacy=False, **more):
        if legacy:
            config = {"word_embedding_dimension": 16} | {key: mode in modes for mode, key in LEGACY.items()}
        else:
            config = {"embedding_dimension": 16, "pooling_mode": modes[0] if len(modes) == 1 else modes}
        self.add("Pooling", config | more)

    def bert(self, model_class=transformers.BertModel, tokenizer=None):
        tokenizer = tokenizer or wordpiece()
        model = shaken(model_class(transformers.BertConfig(**sizes(tokenizer), max_position_embeddings=64)))
        model.save_pretrained(self.directory)
        tokenizer.save_pretrained(self.directory)
        self.add("Transformer")
        return tokenizer, getattr(model, "bert", model)

    @torch.no_grad()
    def reference(self, tokenizer, model, texts, modes, *, prompt="", include_prompt=True, limit=64, then=lambda x: x):
        skipped = 0 if include_prompt or not prompt else len(tokenizer(prompt)["input_ids"]) - 1
        vectors = []
        for text in texts:
            batch = tokenizer(prompt + text, truncation=True, max_length=limit, return_tensors="pt")
            x = model(**batch).last_hidden_state[0]
            kept = torch.arange(len(x)) >= skipped
            vectors.append(then(torch.cat([pooled(mode, x, kept) for mode in modes])))
        return torch.stack(vectors)

    def check(self, expected, texts=TEXTS, *flags):
        found = lines("embed", "--model", str(self.directory), "--input", "-", "--batch_size", "3", *flags,
                      stdin="".join(text + "\n" for text in texts))
        found = torch.tensor([line["embedding"] for line in found])
        self.assertEqual(found.shape, expected.shape)
        self.assertLessEqual((found - expected).abs().max().item(), 1e-5 * expected.abs().max().item())

    def refused(self, *said, words=()):
        done = tzoo("embed", "--model", str(self.directory), "--text", "a", *words)
        self.assertEqual((done.returncode, done.stderr.count("error:"), "exception" in done.stderr), (1, 1, False))
        for words in said:
            self.assertIn(words, done.stderr)

    def test_every_pooling(self):
        texts = [*TEXTS, ""]
        for modes in [*([mode] for mode in LEGACY), ["mean", "max"], ["lasttoken", "cls", "weightedmean"]]:
            for legacy in False, True:
                self.modules = []
                tokenizer, model = self.bert()
                self.pooling(modes, legacy)
                ordered = [mode for mode in LEGACY if mode in modes] if legacy else modes
                self.check(self.reference(tokenizer, model, texts, ordered), texts)
        self.check(self.reference(tokenizer, model, texts, ["max", "cls"]), texts, "--pooling", "max", "--pooling", "cls")

    def test_prompts(self):
        prompts = {"query": "God said: ", "passage": "the earth "}
        for include, default in itertools.product([False, True], [None, "query"]):
            self.modules = []
            tokenizer, model = self.bert()
            self.pooling(list(LEGACY), include_prompt=include)
            self.write("config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": default})
            def expected(prompt):
                return self.reference(tokenizer, model, TEXTS, list(LEGACY), prompt=prompt, include_prompt=include)
            self.check(expected(prompts[default] if default else ""))
            self.check(expected(prompts["passage"]), TEXTS, "--prompt_name", "passage")
            self.check(expected("and "), TEXTS, "--prompt", "and ")
        done = tzoo("embed", "--model", str(self.directory), "--text", "a", "--prompt_name", "other")
        self.assertIn("there is no prompt 'other'; the model has document, passage, query", done.stderr)

    def test_modules_after_pooling(self):
        for residual, activation in itertools.product([False, True], ACTIVATIONS):
            self.modules = []
            tokenizer, model = self.bert()
            self.pooling(["mean"])
            width = 16 if activation == "activation.ReLU" else 9
            dense = torch.nn.Linear(16, width, bias=not residual)
            norm = torch.nn.LayerNorm(width)
            torch.nn.init.normal_(norm.weight)
            other = torch.nn.Linear(16, width, bias=False)
            tensors = {f"linear.{name}": tensor.data for name, tensor in dense.named_parameters()}
            if residual and width != 16:
                tensors["residual.weight"] = other.weight.data
            self.add("Dense", {"in_features": 16, "out_features": width, "bias": not residual, "use_residual": residual,
                               "activation_function": "torch.nn.modules." + activation}, tensors)
            self.add("Dropout", {"dropout": 0.5})
            self.add("LayerNorm", {"dimension": width}, {"norm.weight": norm.weight.data, "norm.bias": norm.bias.data})
            self.add("Normalize")
            function = getattr(torch.nn, activation.split(".")[1])()

            def then(x, normalize=True):
                y = function(dense(x)) + (0 if not residual else x if width == 16 else other(x))
                y = norm(y)
                return torch.nn.functional.normalize(y, dim=0) if normalize else y

            self.check(self.reference(tokenizer, model, TEXTS, ["mean"], then=then))
        self.check(self.reference(tokenizer, model, TEXTS, ["mean"], then=lambda x: then(x, False)), TEXTS, "--no_normalize")

    def test_version_6_types_and_truncated_vectors(self):
        tokenizer, model = self.bert()
        self.modules[0]["type"] = "sentence_transformers.base.modules.transformer.Transformer"
        self.write("sentence_bert_config.json", {
            "transformer_task": "feature-extraction", "module_output_name": "token_embeddings",
            "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}})
        self.write("config_sentence_transformers.json", {"model_type": "SentenceTransformer", "truncate_dim": 5})
        self.add("Pooling", {"embedding_dimension": 16, "pooling_mode": "mean"},
                 prefix="sentence_transformers.sentence_transformer.modules.pooling.")
        cut = self.reference(tokenizer, model, TEXTS, ["mean"])[:, :5]
        self.check(cut)
        self.check(torch.nn.functional.normalize(cut), TEXTS, "--normalize")

    def test_lengths_and_sides(self):
        for limit, file_limit, side in [(7, None, "right"), (9, None, "left"), (12, 12, "right")]:
            self.modules = []
            tokenizer, model = self.bert()
            configure(self.directory, tokenizer, model_max_length=limit if file_limit is None else 5, truncation_side=side)
            self.write("sentence_bert_config.json", {"max_seq_length": file_limit, "do_lower_case": False})
            self.pooling(["mean"])
            self.check(self.reference(tokenizer, model, TEXTS, ["mean"], limit=limit))

    def test_lower_case(self):
        tokenizer = wordpiece()
        tokenizer.backend_tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False)
        _, model = self.bert(tokenizer=tokenizer)
        self.pooling(["mean"])
        texts = [*TEXTS, "[MASK] GOD [mask] İ ΑΣ"]
        self.check(self.reference(tokenizer, model, texts, ["mean"]), texts)
        self.write("sentence_bert_config.json", {"do_lower_case": True})
        tokenizer.backend_tokenizer.normalizer = tokenizers.normalizers.Sequence(
            [tokenizers.normalizers.Lowercase(), tokenizers.normalizers.BertNormalizer(lowercase=False)])
        self.check(self.reference(tokenizer, model, texts, ["mean"]), texts)

    def test_models_without_pooler(self):
        """A masked language model has none; bare, it gives its hidden states."""
        for model_class in transformers.BertForMaskedLM, transformers.BertModel:
            self.modules = []
            tokenizer, model = self.bert(model_class)
            self.directory.joinpath("modules.json").unlink()
            if model_class is transformers.BertModel:
                model.pooler = None
                model.save_pretrained(self.directory)
            self.check(self.reference(tokenizer, model, TEXTS, ["mean"]), TEXTS, "--no_normalize")
            output = self.directory / "states.safetensors"
            ids = tokenizer(TEXTS[0])["input_ids"]
            done = tzoo("forward", "--model", str(self.directory), "--head", "base", "--input_ids", json.dumps([ids]),
                        "--output", str(output))
            self.assertEqual(done.returncode, 0, done.stderr)
            states = safetensors.torch.load_file(output)
            self.assertNotIn("pooler_output", states)
            with torch.no_grad():
                expected = model(torch.tensor([ids])).last_hidden_state
            self.assertLess((states["last_hidden_state"] - expected).abs().max().item(), 1e-5)

    def test_decoder_and_texts_without_tokens(self):
        tokenizer = byte_level(eos_token="</s>", pad_token="</s>")
        model = shaken(transformers.GPT2Model(transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2,
                                                                      n_head=2, n_positions=128)))
        model.save_pretrained(self.directory)
        tokenizer.save_pretrained(self.directory)
        self.add("Transformer")
        self.pooling(["lasttoken", "weightedmean"])
        self.check(self.reference(tokenizer, model, TEXTS, ["lasttoken", "weightedmean"], limit=128))
        done = tzoo("embed", "--model", str(self.directory), "--text", "a", "--text", "")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the text '' has no tokens", done.stderr)

    def test_what_is_unknown_is_refused(self):
        self.bert()
        self.refused("modules.json", "has no Pooling")
        self.add("CLIPModel")
        self.refused("modules.json", "modules[1].type is 'sentence_transformers.models.CLIPModel'")
        self.modules.pop()
        self.pooling(["mean"])
        file = "1_Pooling/config.json"
        for config, said in [({"pooling_mode": "median"}, 'pooling_mode is "median"'),
                             ({"pooling_mode_median": True}, "pooling_mode_median is not known"),
                             ({"pooling_mode_mean_tokens": 5}, "pooling_mode_mean_tokens is number"), ([], "expected a JSON object"),
                             ({"pooling_mode": "mean", "include_prompt": "no"}, "include_prompt is string")]:
            self.write(file, config)
            self.refused(file, said)
        self.write(file, {"pooling_mode": "mean"})
        dense = {"in_features": 16, "out_features": 3, "activation_function": "torch.nn.modules.activation.Tanh"}
        tensors = {"linear.weight": torch.ones(3, 16), "linear.bias": torch.ones(3)}
        self.add("Dense", dense, tensors)
        for config, weights, said in [
                (dense | {"activation_function": "mine.Tanh"}, tensors, "activation_function is 'mine.Tanh'"),
                (dense | {"gain": 2}, tensors, "gain is not known"), (dense | {"out_features": 4}, tensors, "linear.weight"),
                (dense, tensors | {"other": torch.ones(1)}, "the tensor other has no place"),
                (dense | {"module_input_name": "all_layer_embeddings"}, tensors, "module_input_name"),
                (dense, {"linear.weight": torch.ones(3, 16)}, "the tensor linear.bias is missing")]:
            self.modules.pop()
            self.add("Dense", config, weights)
            self.refused("2_Dense", said)
        self.modules.pop()
        self.add("Dense", dense, tensors)
        self.refused("2_Dense", "says vectors of 16 numbers, got 32", words=("--pooling", "mean", "--pooling", "max"))
        for config, said in [({"do_lower_case": "yes"}, "do_lower_case is string"), ({"model_args": {"a": 1}}, "model_args"),
                             ({"transformer_task": "fill-mask"}, "transformer_task is 'fill-mask'"),
                             ({"modality_config": {"message": {}}}, "modality_config")]:
            self.write("sentence_bert_config.json", config)
            self.refused("sentence_bert_config.json", said)
        self.write("sentence_bert_config.json", {})
        for config, said in [({"model_type": "SparseEncoder"}, "model_type is 'SparseEncoder'"),
                             ({"prompts": {"a": 1}}, "prompts.a is number"),
                             ({"similarity_fn_name": "max"}, "similarity_fn_name is 'max'"),
                             ({"default_prompt_name": "a"}, "default_prompt_name is 'a'")]:
            self.write("config_sentence_transformers.json", config)
            self.refused("config_sentence_transformers.json", said)
        self.write("modules.json", {})
        self.refused("modules.json", "expected a JSON array")


if __name__ == "__main__":
    unittest.main()
