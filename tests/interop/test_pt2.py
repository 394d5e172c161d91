"""tzoo export --format pt2, as torch.export loads it, against transformers: nothing here loads a line of ours."""

import os
import unittest
import warnings

import torch
import transformers
from exported_cases import DECODER, GPT2, VOCABULARY, ExportedCases, export
from exported_models import ExportedModel
from forward_parity import hf
from tier import long

FORMAT = ("--format", "pt2")


class Pt2Test(ExportedCases, unittest.TestCase):
    TARGET = "model.pt2"

    def program(self, model, *words):
        """The file's program, loaded without a warning."""
        model.save_pretrained(self.source)
        done = export(self.source, self.target, *FORMAT, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        with warnings.catch_warnings(), self.assertNoLogs("torch", "WARNING"):
            warnings.simplefilter("error")
            return torch.export.load(self.target)

    def exported(self, model):
        run = self.program(model, "--verify").module()

        def forward(**inputs):
            found = run(*inputs.values())
            return found if isinstance(found, tuple) else (found,)

        return forward

    def decoding(self, model):
        model.save_pretrained(self.source)
        done = export(self.source, self.target, *FORMAT, "--decoding")
        self.assertEqual(done.returncode, 0, done.stderr)
        return ExportedModel.from_pt2(self.target)

    def test_weights_are_shared_and_have_their_type(self):
        model = hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2), 22)
        program = self.program(model, "--dtype", "bfloat16")
        self.assertEqual({x.dtype for x in program.state_dict.values()}, {torch.bfloat16})
        table = program.state_dict["embeddings.token.weight"]
        self.assertTrue(torch.equal(table, model.transformer.wte.weight.bfloat16()))
        self.assertEqual(sum(x.numel() for x in program.state_dict.values()), model.num_parameters())
        self.assertTrue(all(p.requires_grad for p in program.parameters()))

    @long
    @torch.no_grad()
    def test_core_aten_decomposes_and_sizes_are_checked(self):
        model = hf.random_model(transformers.LlamaForCausalLM, transformers.LlamaConfig(**DECODER), 23)
        program = self.program(model)
        ids = torch.arange(21).view(3, 7)
        decomposed = program.run_decompositions()
        self.assertNotIn("aten.linear.default", {str(node.target) for node in decomposed.graph.nodes})
        for length in (7, 2):
            x = ids[:, :length].contiguous()
            self.assert_close(decomposed.module()(x, torch.ones_like(x)), model(x).logits)
        with self.assertRaises(Exception):
            program.module()(ids, torch.ones(3, 6, dtype=torch.long))
        with self.assertRaises(Exception):  # beyond the context
            program.module()(torch.zeros(1, 45, dtype=torch.long), torch.ones(1, 45, dtype=torch.long))

    @torch.no_grad()
    def test_a_classifier_that_does_not_know_padding_takes_one_row(self):
        config = transformers.GPT2Config(**GPT2, num_labels=3)
        model = hf.random_model(transformers.GPT2ForSequenceClassification, config, 26)
        run = self.program(model, "--verify").module()
        said = export(self.source, self.target, *FORMAT).stdout
        self.assertIn("not exported: batches of several texts, which need a pad_token_id", said)
        ids = torch.arange(14).view(2, 7)
        self.assert_close(run(ids[:1], torch.ones(1, 7, dtype=torch.long)), model(ids[:1]).logits)
        with self.assertRaises(Exception):
            run(ids, torch.ones_like(ids))

    def test_another_file_is_never_replaced(self):
        model = hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2), 24)
        model.save_pretrained(self.source)
        for _ in range(2):  # an earlier export is
            self.assertEqual(export(self.source, self.target, *FORMAT).returncode, 0)
        done = export(self.source, self.target)
        self.assertIn("exists and is no TorchScript file", done.stderr)
        torch.save({}, self.target)  # also a zip
        with open(self.target, "rb") as file:
            before = file.read()
        done = export(self.source, self.target, *FORMAT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("exists and is no PT2 file", done.stderr)
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_what_a_graph_cannot_express_is_refused_by_name(self):
        config = transformers.BartConfig(d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
                                         encoder_ffn_dim=40, decoder_ffn_dim=40, vocab_size=VOCABULARY, max_position_embeddings=44)
        hf.random_model(transformers.BartForQuestionAnswering, config, 25).save_pretrained(self.source)
        done = export(self.source, self.target, *FORMAT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("an encoder-decoder's question-answering head cannot be exported", done.stderr)
        self.assertFalse(os.path.exists(self.target))


if __name__ == "__main__":
    unittest.main()
