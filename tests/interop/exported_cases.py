"""Models whose export is compared with transformers at four shapes, for each format that gives a forward pass."""

import os
import subprocess
import tempfile

import torch
import transformers
from forward_parity import hf
from tier import SHORT, long

VOCABULARY = 61
ENCODER = dict(num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=40, vocab_size=VOCABULARY,
               max_position_embeddings=44)
DECODER = dict(ENCODER, num_key_value_heads=2)
GPT2 = dict(n_layer=2, n_head=4, n_embd=32, vocab_size=VOCABULARY, n_positions=44, bos_token_id=None, eos_token_id=None)
T5 = dict(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0)
BART = dict(d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=40,
            decoder_ffn_dim=40, vocab_size=VOCABULARY, max_position_embeddings=44, decoder_start_token_id=2, forced_eos_token_id=None)
# Models whose steps differ: learnt positions, a window with grouped heads, biases of distances, encoder-decoders.
STEPS = (
    (transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2)),
    (transformers.MistralForCausalLM, transformers.MistralConfig(**DECODER, sliding_window=5)),
    (transformers.MptForCausalLM, transformers.MptConfig(n_layers=2, n_heads=4, d_model=32, vocab_size=VOCABULARY, max_seq_len=44)),
    (transformers.T5ForConditionalGeneration, transformers.T5Config(**T5)),
    (transformers.BartForConditionalGeneration, transformers.BartConfig(**BART)))


def export(source, target, *words):
    return subprocess.run([os.environ["TZOO"], "export", "--model", source, "--output", target, *words],
                          capture_output=True, text=True, timeout=300)


class ExportedCases:
    """`exported(model)` returns a function of transformers' inputs that gives a list of tensors, `decoding(model)` an ExportedModel."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source, self.target = os.path.join(folder.name, "model"), os.path.join(folder.name, self.TARGET)

    def assert_close(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        error = ((found - expected).abs().max() / expected.abs().max()).item()
        self.assertLessEqual(error, 1e-5)

    @torch.no_grad()
    def check(self, cls, config, names=("logits",), head="logits"):
        model = hf.random_model(cls, config, 21)
        run = self.exported(model)
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
            found, expected = run(**inputs), model(**inputs)
            self.assertEqual(len(found), len(names))
            for ours, name in zip(found, names):
                theirs = expected[name]
                self.assertTrue(ours.isfinite().all())  # also where a row sees nothing
                if not config.is_encoder_decoder:  # rows that see nothing are undefined in transformers
                    ours, theirs = (hf.without_hidden_rows(model, "logits", x, inputs["attention_mask"]) for x in (ours, theirs))
                self.assert_close(ours, theirs)

    def test_gpt2(self):
        self.check(transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2))

    @long
    def test_a_decoder_that_classifies(self):
        self.check(transformers.GPT2ForSequenceClassification, transformers.GPT2Config(**GPT2, num_labels=3, pad_token_id=5))

    @long
    def test_llama(self):
        self.check(transformers.LlamaForCausalLM, transformers.LlamaConfig(**DECODER))

    def test_gemma2_whose_scores_have_a_cap_and_some_layers_a_window(self):
        self.check(transformers.Gemma2ForCausalLM, transformers.Gemma2Config(**DECODER, head_dim=8, sliding_window=6))

    def test_mixtral_whose_experts_depend_on_the_tokens(self):
        self.check(transformers.MixtralForCausalLM, transformers.MixtralConfig(**DECODER, num_local_experts=4))

    def test_bert_with_its_heads(self):
        heads = [("Model", ["last_hidden_state"]), ("ForQuestionAnswering", ["start_logits", "end_logits"]),
                 ("ForSequenceClassification", ["logits"]), ("ForMaskedLM", ["logits"])]
        for cls, names in heads[:2] if SHORT else heads:
            with self.subTest(cls):
                self.check(getattr(transformers, "Bert" + cls), transformers.BertConfig(**ENCODER), names)

    @long
    def test_modernbert_whose_window_hides_nothing_from_short_inputs(self):
        self.check(transformers.ModernBertModel,
                   transformers.ModernBertConfig(**ENCODER, local_attention=8, pad_token_id=5), ["last_hidden_state"])

    def test_deberta(self):
        self.check(transformers.DebertaV2ForTokenClassification, transformers.DebertaV2Config(
            **ENCODER, relative_attention=True, share_att_key=True, norm_rel_ebd="layer_norm",
            position_biased_input=False, pos_att_type="p2c|c2p", position_buckets=8))

    def test_t5(self):
        self.check(transformers.T5ForConditionalGeneration, transformers.T5Config(**T5))

    @torch.no_grad()
    def test_caches_give_the_greedy_ids(self):
        for cls, config in STEPS[1:4:2] if SHORT else STEPS:
            with self.subTest(cls=cls.__name__):
                model = hf.random_model(cls, config, 27)
                model.generation_config.eos_token_id = None
                ids, mask = torch.arange(9, 23).view(2, 7), torch.ones(2, 7, dtype=torch.long)
                mask[1, slice(5, 7) if config.is_encoder_decoder else slice(3)] = 0  # a decoder's prompt is padded on the left
                expected = model.generate(ids, attention_mask=mask, max_new_tokens=20, do_sample=False, pad_token_id=0)
                found = self.decoding(model).greedy(ids, mask, 20, config.decoder_start_token_id if config.is_encoder_decoder else None)
                self.assertEqual(found.tolist(), expected[:, 1 if config.is_encoder_decoder else 7:].tolist())
