"""tzoo export --format pt2, as torch.export loads it, against transformers: nothing here loads a line of ours."""

import os
import subprocess
import tempfile
import unittest
import warnings

import torch
import transformers
from forward_parity import hf
from torch.export.pt2_archive._package import load_pt2

VOCABULARY = 61
ENCODER = dict(num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=40, vocab_size=VOCABULARY,
               max_position_embeddings=44)
DECODER = dict(ENCODER, num_key_value_heads=2)
GPT2 = dict(n_layer=2, n_head=4, n_embd=32, vocab_size=VOCABULARY, n_positions=44, bos_token_id=None, eos_token_id=None)


def export(source, target, *words):
    return subprocess.run([os.environ["TZOO"], "export", "--model", source, "--format", "pt2", "--output", target, *words],
                          capture_output=True, text=True, timeout=300)


class Pt2Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source, self.target = os.path.join(folder.name, "model"), os.path.join(folder.name, "model.pt2")

    def exported(self, model, *words):
        """The file's program, loaded without a warning."""
        model.save_pretrained(self.source)
        done = export(self.source, self.target, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        with warnings.catch_warnings(), self.assertNoLogs("torch", "WARNING"):
            warnings.simplefilter("error")
            return torch.export.load(self.target)

    def assert_close(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        error = ((found - expected).abs().max() / expected.abs().max()).item()
        self.assertLessEqual(error, 1e-5)

    @torch.no_grad()
    def check(self, cls, config, names=("logits",), head="logits"):
        model = hf.random_model(cls, config, 21)
        run = self.exported(model, "--verify").module()
        # A single token, some, padding on both sides, the full context.
        for batch, length in ((1, 1), (2, 17), (3, 40), (2, 44)):
            ids = torch.randint(9, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(length))
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            if batch == 3:
                inputs["attention_mask"][1, 37:] = 0
                inputs["attention_mask"][2, :3] = 0
                if config.pad_token_id is not None:
                    ids[inputs["attention_mask"] == 0] = config.pad_token_id
            if config.is_encoder_decoder:  # of another length
                inputs["decoder_input_ids"] = ids[:, length // 3:].contiguous()
            found, expected = run(*inputs.values()), model(**inputs)
            found = found if isinstance(found, tuple) else (found,)
            self.assertEqual(len(found), len(names))
            for ours, name in zip(found, names):
                theirs = expected[name]
                if not config.is_encoder_decoder:  # rows that see nothing are undefined in transformers
                    ours, theirs = (hf.without_hidden_rows(model, "logits", x, inputs["attention_mask"]) for x in (ours, theirs))
                self.assert_close(ours, theirs)

    def test_gpt2(self):
        self.check(transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2))

    def test_a_decoder_that_classifies(self):
        self.check(transformers.GPT2ForSequenceClassification, transformers.GPT2Config(**GPT2, num_labels=3, pad_token_id=5))

    def test_llama(self):
        self.check(transformers.LlamaForCausalLM, transformers.LlamaConfig(**DECODER))

    def test_gemma2_whose_scores_have_a_cap_and_some_layers_a_window(self):
        self.check(transformers.Gemma2ForCausalLM, transformers.Gemma2Config(**DECODER, head_dim=8, sliding_window=6))

    def test_mixtral_whose_experts_depend_on_the_tokens(self):
        self.check(transformers.MixtralForCausalLM, transformers.MixtralConfig(**DECODER, num_local_experts=4))

    def test_bert_with_its_heads(self):
        for cls, names in (("Model", ["last_hidden_state"]), ("ForSequenceClassification", ["logits"]),
                           ("ForMaskedLM", ["logits"]), ("ForQuestionAnswering", ["start_logits", "end_logits"])):
            with self.subTest(cls):
                self.check(getattr(transformers, "Bert" + cls), transformers.BertConfig(**ENCODER), names)

    def test_modernbert_whose_window_hides_nothing_from_short_inputs(self):
        self.check(transformers.ModernBertModel,
                   transformers.ModernBertConfig(**ENCODER, local_attention=8, pad_token_id=5), ["last_hidden_state"])

    def test_deberta(self):
        self.check(transformers.DebertaV2ForTokenClassification, transformers.DebertaV2Config(
            **ENCODER, relative_attention=True, share_att_key=True, norm_rel_ebd="layer_norm",
            position_biased_input=False, pos_att_type="p2c|c2p", position_buckets=8))

    def test_t5(self):
        self.check(transformers.T5ForConditionalGeneration, transformers.T5Config(
            vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0))

    def programs(self, model):
        model.save_pretrained(self.source)
        done = export(self.source, self.target, "--decoding")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: program.module() for name, program in load_pt2(self.target).exported_programs.items()}

    @torch.no_grad()
    def test_decoders_decode_with_caches(self):
        alibi = dict(n_layers=2, n_heads=4, d_model=32, vocab_size=VOCABULARY, max_seq_len=44)
        for cls, config, heads in (
                (transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2), 4),
                (transformers.MistralForCausalLM, transformers.MistralConfig(**DECODER, sliding_window=5), 2),
                (transformers.MptForCausalLM, transformers.MptConfig(**alibi), 4)):
            with self.subTest(cls=cls.__name__):
                model = hf.random_model(cls, config, 27)
                model.generation_config.eos_token_id = None
                step = self.programs(model)["step"]
                positioned = cls is not transformers.MptForCausalLM
                ids, mask = torch.arange(9, 23).view(2, 7), torch.ones(2, 7, dtype=torch.long)
                mask[1, :3] = 0  # padded on the left
                expected = model.generate(ids, attention_mask=mask, max_new_tokens=20, do_sample=False, pad_token_id=0)[:, 7:]
                caches = [torch.zeros(2, heads, 0, 8)] * 4
                new, found = ids, []
                for _ in range(20):
                    positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -new.size(1):]
                    logits, *caches = step(new, mask, *([positions] if positioned else []), *caches)
                    new = logits[:, -1].argmax(-1, keepdim=True)
                    mask = torch.cat([mask, torch.ones_like(new)], 1)
                    found.append(new)
                self.assertEqual(torch.cat(found, 1).tolist(), expected.tolist())

    @torch.no_grad()
    def test_an_encoder_decoder_decodes_with_caches(self):
        model = hf.random_model(transformers.T5ForConditionalGeneration, transformers.T5Config(
            vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0, eos_token_id=None), 28)
        programs = self.programs(model)
        ids, mask = torch.arange(9, 23).view(2, 7), torch.ones(2, 7, dtype=torch.long)
        mask[1, 5:] = 0
        expected = model.generate(ids, attention_mask=mask, max_new_tokens=20, do_sample=False)[:, 1:]
        memory = programs["encode"](ids, mask)
        new = torch.zeros(2, 1, dtype=torch.long)
        logits, *caches = programs["start"](new, memory, mask)
        own, read, found = caches[:4], caches[4:], []
        for _ in range(20):
            new = logits[:, -1].argmax(-1, keepdim=True)
            found.append(new)
            logits, *own = programs["step"](new, mask, *own, *read)
        self.assertEqual(torch.cat(found, 1).tolist(), expected.tolist())

    def test_weights_are_shared_and_have_their_type(self):
        model = hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2), 22)
        program = self.exported(model, "--dtype", "bfloat16")
        self.assertEqual({x.dtype for x in program.state_dict.values()}, {torch.bfloat16})
        table = program.state_dict["embeddings.token.weight"]
        self.assertTrue(torch.equal(table, model.transformer.wte.weight.bfloat16()))
        self.assertEqual(sum(x.numel() for x in program.state_dict.values()), model.num_parameters())
        self.assertTrue(all(p.requires_grad for p in program.parameters()))

    @torch.no_grad()
    def test_core_aten_decomposes_and_sizes_are_checked(self):
        model = hf.random_model(transformers.LlamaForCausalLM, transformers.LlamaConfig(**DECODER), 23)
        program = self.exported(model)
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
        run = self.exported(model, "--verify").module()
        ids = torch.arange(14).view(2, 7)
        self.assert_close(run(ids[:1], torch.ones(1, 7, dtype=torch.long)), model(ids[:1]).logits)
        with self.assertRaises(Exception):
            run(ids, torch.ones_like(ids))

    def test_another_file_is_never_replaced(self):
        model = hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2), 24)
        self.exported(model)
        self.exported(model)  # an earlier export is
        done = subprocess.run([os.environ["TZOO"], "export", "--model", self.source, "--output", self.target],
                              capture_output=True, text=True, timeout=300)
        self.assertIn("exists and is no TorchScript file", done.stderr)
        torch.save({}, self.target)  # also a zip
        with open(self.target, "rb") as file:
            before = file.read()
        done = export(self.source, self.target)
        self.assertEqual(done.returncode, 1)
        self.assertIn("exists and is no PT2 file", done.stderr)
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_what_a_graph_cannot_express_is_refused_by_name(self):
        config = transformers.BartConfig(d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
                                         encoder_ffn_dim=40, decoder_ffn_dim=40, vocab_size=VOCABULARY, max_position_embeddings=44)
        hf.random_model(transformers.BartForQuestionAnswering, config, 25).save_pretrained(self.source)
        done = export(self.source, self.target)
        self.assertEqual(done.returncode, 1)
        self.assertIn("an encoder-decoder's question-answering head cannot be exported", done.stderr)
        self.assertFalse(os.path.exists(self.target))


if __name__ == "__main__":
    unittest.main()
