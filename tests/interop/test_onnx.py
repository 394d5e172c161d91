"""tzoo export --format onnx in ONNX Runtime, against transformers, with the names that Optimum looks for."""

import json
import os
import pathlib
import unittest

import torch
import transformers
from exported_cases import ENCODER, GPT2, T5, ExportedCases, export
from forward_parity import hf
from exported_models import ExportedModel, Session

FORMAT = ("--format", "onnx")


class OnnxTest(ExportedCases, unittest.TestCase):
    TARGET = "onnx"

    def files(self, model, *words):
        model.save_pretrained(self.source)
        done = export(self.source, self.target, *FORMAT, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return ExportedModel.from_onnx(self.target)

    def exported(self, model):
        return self.files(model).forward

    def decoding(self, model):
        return self.files(model)

    def test_names_are_those_of_optimum(self):
        decoder = self.files(hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2), 22)).model
        caches = [f"{layer}.{part}" for layer in range(2) for part in ("key", "value")]
        self.assertEqual(list(decoder.inputs), ["input_ids", "attention_mask", "position_ids"] + [f"past_key_values.{x}" for x in caches])
        self.assertEqual(decoder.outputs, ["logits"] + [f"present.{x}" for x in caches])
        encoder = self.files(hf.random_model(transformers.BertModel, transformers.BertConfig(**ENCODER), 22)).model
        self.assertEqual(list(encoder.inputs), ["input_ids", "attention_mask", "token_type_ids"])
        self.assertEqual(encoder.outputs, ["last_hidden_state"])
        both = self.files(hf.random_model(transformers.T5ForConditionalGeneration, transformers.T5Config(**T5), 22))
        owned = [f"{layer}.{owner}.{part}" for owner in ("decoder", "encoder") for layer in range(2) for part in ("key", "value")]
        self.assertEqual(both.encoder.outputs, ["last_hidden_state"])
        self.assertEqual(set(both.start.inputs), {"input_ids", "encoder_hidden_states", "encoder_attention_mask"})
        self.assertEqual(both.start.outputs, ["logits"] + [f"present.{x}" for x in owned])
        self.assertEqual(list(both.step.inputs), ["input_ids", "encoder_attention_mask"] + [  # Optimum goes by this order
            f"past_key_values.{layer}.{owner}.{part}" for layer in range(2) for owner in ("decoder", "encoder") for part in ("key", "value")])
        self.assertEqual(both.step.outputs, ["logits"] + [f"present.{x}" for x in owned if ".decoder." in x])

    def test_segments_are_an_input(self):
        model = hf.random_model(transformers.BertModel, transformers.BertConfig(**ENCODER), 23)
        ids, segments = torch.arange(14).view(2, 7), torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1]])
        mask = torch.ones_like(ids)
        with torch.no_grad():
            expected = model(ids, attention_mask=mask, token_type_ids=segments).last_hidden_state
        self.assert_close(self.files(model).forward(ids, mask, token_type_ids=segments)[0], expected)

    def test_half_precision(self):
        model = hf.random_model(transformers.BertModel, transformers.BertConfig(**ENCODER), 24)
        ids = torch.arange(14).view(2, 7)
        with torch.no_grad():
            expected = model(ids).last_hidden_state
        found, = self.files(model, "--dtype", "float16").forward(ids, torch.ones_like(ids))
        self.assertEqual(found.dtype, torch.float16)
        self.assertLess(((found - expected).abs().max() / expected.abs().max()).item(), 1e-2)

    def test_what_several_files_share_is_written_once(self):
        model = hf.random_model(transformers.T5ForConditionalGeneration, transformers.T5Config(**(T5 | dict(vocab_size=3000))), 25)
        self.files(model)
        size = sum(path.stat().st_size for path in pathlib.Path(self.target).glob("*.onnx*"))
        self.assertLess(size, 1.5 * 4 * model.num_parameters() + 400000)  # the table of tokens alone has 384,000 bytes

    def test_the_files_of_the_model_come_along(self):
        hf.random_model(transformers.BertModel, transformers.BertConfig(**ENCODER, id2label={0: "no", 1: "yes"}), 26).save_pretrained(self.source)
        pathlib.Path(self.source, "tokenizer_config.json").write_text('{"do_lower_case": true}')
        for _ in range(2):  # an earlier export is replaced
            done = export(self.source, self.target, *FORMAT)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(self.target)), ["config.json", "model.onnx", "tokenizer_config.json"])
        config = json.loads(pathlib.Path(self.target, "config.json").read_text())
        self.assertEqual((config["model_type"], config["id2label"]), ("bert", {"0": "no", "1": "yes"}))
        pathlib.Path(self.target, "mine.txt").write_text("mine")
        done = export(self.source, self.target, *FORMAT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("holds mine.txt, which would be lost", done.stderr)
        Session(os.path.join(self.target, "model.onnx"))  # as it was

    def test_what_cannot_be_is_refused_by_name(self):
        config = transformers.LlamaConfig(**ENCODER, rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0})
        hf.random_model(transformers.LlamaForCausalLM, config, 27).save_pretrained(self.source)
        for words, text in (((), "rope_scaling = dynamic"), (("--verify",), "--verify does not go with --format onnx"),
                            (("--dtype", "bfloat16"), "--format onnx needs --dtype float32 or float16"),
                            (("--weights", "int8"), "--weights needs --format gguf, gguf-lora, packed or html")):
            with self.subTest(words=words):
                done = export(self.source, self.target, *FORMAT, *words)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(text, done.stderr)
                self.assertFalse(os.path.exists(self.target))


if __name__ == "__main__":
    unittest.main()
