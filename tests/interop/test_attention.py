"""tzoo attention beside transformers: encoder, decoder and cross attention of random models."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import tokenizers
import torch
import transformers

WORDS = ["[PAD]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "a", "mat", "dog"]


def tokenizer(**special):
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[PAD]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if special.pop("pairs", False):
        model.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, pad_token="[PAD]", **special,
                                                model_input_names=["input_ids", "token_type_ids", "attention_mask"])


def randomized(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


class AttentionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)
        torch.manual_seed(0)

    def maps(self, *words):
        """name -> (queries, keys, weights [layers, heads, queries, keys])"""
        out = self.directory / "out"
        # Without gnuplot: the pictures are somebody else's test.
        done = subprocess.run([os.environ["TZOO"], "attention", "--model", self.directory, "--out_dir", out, *words],
                              env={**os.environ, "PATH": ""}, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        maps = json.loads((out / "attention.json").read_text())["maps"]
        return {m["name"]: (m["queries"], m["keys"], torch.tensor(m["weights"])) for m in maps}

    def assert_equal(self, weights, expected):
        self.assertLess((weights - torch.stack(expected)[:, 0]).abs().max().item(), 2e-5)

    @torch.no_grad()
    def test_an_encoder_with_two_texts(self):
        tokens = tokenizer(pairs=True, cls_token="[CLS]", sep_token="[SEP]")
        tokens.save_pretrained(self.directory)
        config = transformers.BertConfig(vocab_size=10, hidden_size=12, num_hidden_layers=3, num_attention_heads=2,
                                         intermediate_size=16, max_position_embeddings=20)
        model = randomized(transformers.BertModel._from_config(config, attn_implementation="eager"))
        model.save_pretrained(self.directory)
        maps = self.maps("--text", "the cat sat", "--text_pair", "a dog")
        self.assertEqual(list(maps), ["encoder"])
        queries, keys, weights = maps["encoder"]
        self.assertEqual(queries, ["[CLS]", "the", "cat", "sat", "[SEP]", "a", "dog", "[SEP]"])
        self.assertEqual(keys, queries)
        inputs = {"input_ids": torch.tensor([[1, 3, 4, 5, 2, 7, 9, 2]]),
                  "token_type_ids": torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1]])}
        self.assert_equal(weights, model(**inputs, output_attentions=True).attentions)

    @torch.no_grad()
    def test_an_encoder_decoder_with_a_target_and_with_what_it_writes(self):
        tokenizer(eos_token="[SEP]").save_pretrained(self.directory)
        config = transformers.T5Config(vocab_size=10, d_model=12, d_kv=6, d_ff=16, num_layers=3, num_decoder_layers=2,
                                       num_heads=2, eos_token_id=2, pad_token_id=0, decoder_start_token_id=0)
        model = transformers.T5ForConditionalGeneration._from_config(config, attn_implementation="eager")
        randomized(model).save_pretrained(self.directory)
        source = torch.tensor([[3, 4, 5, 6]])

        def check(maps, target):
            output = model(input_ids=source, decoder_input_ids=target, output_attentions=True)
            self.assertEqual(list(maps), ["encoder", "decoder", "cross"])
            written = [WORDS[i] for i in target[0]]
            self.assertEqual(maps["encoder"][0], ["the", "cat", "sat", "on"])
            self.assertEqual(maps["decoder"][:2], (written, written))
            self.assertEqual(maps["cross"][:2], (written, ["the", "cat", "sat", "on"]))
            self.assert_equal(maps["encoder"][2], output.encoder_attentions)
            self.assert_equal(maps["decoder"][2], output.decoder_attentions)
            self.assert_equal(maps["cross"][2], output.cross_attentions)

        check(self.maps("--text", "the cat sat on", "--target", "a dog"), torch.tensor([[0, 7, 9]]))
        written = model.generate(source, max_new_tokens=6, do_sample=False)
        check(self.maps("--text", "the cat sat on", "--max_new_tokens", "6"), written[:, :-1])
        check(self.maps("--text", "the cat sat on", "--target", "a dog", "--layer", "2"), torch.tensor([[0, 7, 9]]))  # only the encoder's
        # Greedy, by the other rules of generation_config.json.
        model.generation_config.update(forced_bos_token_id=7, no_repeat_ngram_size=1, num_beams=3)
        model.save_pretrained(self.directory)
        written = model.generate(source, max_new_tokens=6, num_beams=1)
        self.assertEqual(written[0, 1], 7)
        check(self.maps("--text", "the cat sat on", "--max_new_tokens", "6"), written[:, :-1])

    @torch.no_grad()
    def test_heads_that_look_at_repeats(self):
        """Duplicate-token and induction heads by matrices of the pairs that they look at, in float64."""
        tokenizer().save_pretrained(self.directory)
        config = transformers.GPT2Config(vocab_size=10, n_embd=12, n_layer=3, n_head=2, n_positions=20)
        model = randomized(transformers.GPT2LMHeadModel._from_config(config, attn_implementation="eager"))
        model.save_pretrained(self.directory)
        ids = torch.tensor([3, 4, 5, 6, 3, 8, 3, 4, 5, 9, 9])
        self.maps("--text", " ".join(WORDS[i] for i in ids))
        patterns = json.loads((self.directory / "out/attention.json").read_text())["maps"][0]["patterns"]
        duplicate = (ids[:, None] == ids[None]).tril(-1)
        induction = duplicate.roll(1, dims=1)  # no token repeats one that comes later: the last column is empty
        attentions = model.double()(ids[None], output_attentions=True).attentions
        for pattern in patterns:
            weights = attentions[pattern["layer"]][0, pattern["head"]]
            for name, pairs in (("duplicate", duplicate), ("induction", induction)):
                share = (weights * pairs).sum() / duplicate.any(1).sum()
                self.assertAlmostEqual(pattern[name], share.item(), delta=1e-5)


if __name__ == "__main__":
    unittest.main()
