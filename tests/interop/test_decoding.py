"""tzoo generate beside generate() of transformers: beams, penalties and bans, on padded batches."""

import json
import os
import random
import tempfile
import unittest

import torch
import transformers
from forward_parity import hf, tzoo
from generation_parity import new_tokens
from test_experts import MODELS

ENDS = [7, 8, 9]
LENGTHS = (7, 3, 12, 1)

BEAMS = [
    {"num_beams": 4},
    {"num_beams": 3, "length_penalty": 2.0, "num_return_sequences": 3},
    {"num_beams": 4, "length_penalty": -0.5, "early_stopping": True, "num_return_sequences": 2},
    {"num_beams": 2, "length_penalty": 0.0, "no_repeat_ngram_size": 2, "repetition_penalty": 1.4},
    {"num_beams": 3, "min_new_tokens": 6, "bad_words_ids": [[11], [12, 13], [14]], "num_return_sequences": 2},
]
FILTERS = [
    {"repetition_penalty": 1.7},
    {"repetition_penalty": 0.8, "no_repeat_ngram_size": 3},
    {"no_repeat_ngram_size": 1, "min_new_tokens": 5},
    {"bad_words_ids": [[i] for i in range(10, 30)] + [[31, 32], [33, 34]], "repetition_penalty": 1.2},
    {"min_new_tokens": 12, "forced_eos_token_id": 8, "no_repeat_ngram_size": 2},
]
# Keys that only a generation_config.json has, besides all of the above.
FILES = [
    {"suppress_tokens": list(range(10, 40)), "begin_suppress_tokens": list(range(40, 55))},
    {"max_length": 20, "min_length": 15, "repetition_penalty": 1.3},
    {"min_length": 30, "min_new_tokens": 2, "num_beams": 2},
    {"forced_eos_token_id": [8], "num_beams": 3, "early_stopping": "never", "length_penalty": 0.3},
    {"temperature": 0.3, "top_k": 5, "no_repeat_ngram_size": 2},  # without do_sample they do nothing
    {"num_beams": 4, "diversity_penalty": 0.5},  # of groups, which there are none of
    {"num_beams": 4, "renormalize_logits": True, "suppress_tokens": list(range(10, 40)), "repetition_penalty": 1.3},
    {"num_beams": 3, "renormalize_logits": True, "bad_words_ids": [[i] for i in range(10, 30)], "num_return_sequences": 3},
    {"renormalize_logits": True, "repetition_penalty": 1.3, "remove_invalid_values": True},  # nothing to choose otherwise
    {"epsilon_cutoff": 0.1, "eta_cutoff": 0.1, "top_h": 0.4, "forced_decoder_ids": [[1, 5]]},
    {"max_new_tokens": 1, "forced_eos_token_id": 8, "num_beams": 3, "num_return_sequences": 2},  # only one answer exists
]


def flags_of(options):
    return [word for name, value in options.items() for word in ("--" + name, json.dumps(value))]


def write_generation_config(directory, said):
    """Adds to the file that transformers has written."""
    path = os.path.join(directory, "generation_config.json")
    with open(path, encoding="utf-8") as file:
        written = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**written, **said}, file)


class DecodingParity:
    """Mixed into a TestCase that has generator(seed) -> a model of transformers. GPT-2 has all options, each other family some:
    those whose code depends on it, since they share the rest."""

    FILES = FILES[2:3]  # of the options of a generation_config.json

    @torch.no_grad()
    def answers(self, model, rows, ends, **options):
        """Row by row: transformers counts padding as text in repetitions and shortest lengths."""
        found = []
        for row in rows:
            out = model.generate(torch.tensor([row]), attention_mask=torch.ones(1, len(row), dtype=torch.long), pad_token_id=0, **options)
            begin = 1 if model.config.is_encoder_decoder else len(row)
            found += [new_tokens(ids, ends) for ids in out[:, begin:].tolist()]
        return found

    def expected(self, model, rows, count, options):
        return self.answers(model, rows, ENDS, max_new_tokens=count, do_sample=False, eos_token_id=ENDS, **options)

    def ids_by_file(self, model, directory, rows, ends):
        """As the directory's generation_config.json says; of a decoder max_length counts the longest prompt."""
        opened = type(model).from_pretrained(directory, attn_implementation="eager").eval()
        longest = opened.generation_config.max_length
        if opened.config.is_encoder_decoder or opened.generation_config.max_new_tokens or not longest:
            return self.answers(opened, rows, ends)
        return self.answers(opened, rows, ends, max_new_tokens=longest - max(map(len, rows)))

    def compare(self, variants):
        different = set()
        for seed, options in enumerate(variants):
            model, draw = self.generator(seed), random.Random(seed)
            rows = [[draw.randrange(10, model.config.vocab_size) for _ in range(length)] for length in LENGTHS]
            with self.subTest(seed=seed, options=options), tempfile.TemporaryDirectory() as directory:
                model.config.eos_token_id = model.generation_config.eos_token_id = ENDS
                model.save_pretrained(directory)
                expected = self.expected(model, rows, 14, options)
                done = tzoo("generate", "--model", directory, "--input_ids", json.dumps(rows), "--max_new_tokens", "14",
                            "--temperature", "0", "--json", *flags_of(options))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(json.loads(done.stdout)["ids"], expected)
                different.update(map(tuple, expected))
        self.assertGreater(len(different), 6)
        self.assertTrue(any(row[-1] in ENDS and len(row) < 14 for row in different))  # some end, some go on
        self.assertTrue(any(len(row) == 14 for row in different))

    def test_generation_config_file(self):
        for seed, options in enumerate(self.FILES):
            model, draw = self.generator(seed), random.Random(seed)
            rows = [[draw.randrange(10, model.config.vocab_size) for _ in range(length)] for length in LENGTHS]
            count = {} if {"max_length", "max_new_tokens"} & set(options) else {"max_new_tokens": 14}
            said = {**options, **count, "do_sample": False, "eos_token_id": ENDS}
            with self.subTest(seed=seed, options=options), tempfile.TemporaryDirectory() as directory:
                model.save_pretrained(directory)
                write_generation_config(directory, said)
                words = ["generate", "--model", directory, "--input_ids", json.dumps(rows), "--json"]
                done = tzoo(*words)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(json.loads(done.stdout)["ids"], self.ids_by_file(model, directory, rows, ENDS))
                if seed > 0:
                    continue
                # Flags override the file, and --generation_defaults ours leaves it out.
                plain = self.expected(model, rows, 6, {})
                done = tzoo(*words, "--max_new_tokens", "6", "--temperature", "0", "--generation_defaults", "ours")
                self.assertEqual(json.loads(done.stdout)["ids"], plain, done.stderr)

    def test_beams(self):
        self.compare(self.BEAMS)

    def test_filters(self):
        self.compare(self.FILTERS)


class Refusals(unittest.TestCase):
    def test_keys_that_the_zoo_lacks_are_named(self):
        model = Gpt2().generator(0)
        with tempfile.TemporaryDirectory() as directory:
            model.save_pretrained(directory)
            path = os.path.join(directory, "generation_config.json")
            words = ["generate", "--model", directory, "--input_ids", "[[1]]", "--max_new_tokens", "2"]
            for key, value in {"guidance_scale": 1.5, "penalty_alpha": 0.4, "sequence_bias": [[[3], -1.0]], "encoder_no_repeat_ngram_size": 2,
                               "num_beams": "four", "top_p": 7, "epsilon_cutoff": 0.1, "stop_strings": 3}.items():
                with open(path, "w", encoding="utf-8") as file:
                    json.dump({key: value, "do_sample": True}, file)
                with self.subTest(key=key):
                    done = tzoo(*words)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn(key, done.stderr)
                    self.assertEqual(tzoo(*words, "--generation_defaults", "ours").returncode, 0)
            for key, value in {"num_beam_groups": 3}.items():  # transformers 5 lacks it, too
                with open(path, "w", encoding="utf-8") as file:
                    json.dump({"num_beams": 3, key: value}, file)
                with self.subTest(key=key):
                    done = tzoo(*words)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn(key, done.stderr)
                    for others in (["--temperature", "0.7"], ["--generation_defaults", "ours", "--num_beams", "3"]):
                        self.assertEqual(tzoo(*words, *others).returncode, 0)

    def test_a_file_asks_for_beams_that_sample(self):
        model = Gpt2().generator(0)
        with tempfile.TemporaryDirectory() as directory:
            model.save_pretrained(directory)
            words = ["generate", "--model", directory, "--input_ids", "[[1]]", "--max_new_tokens", "8", "--json"]
            said = {"do_sample": True, "num_beams": 3, "temperature": 1.7, "top_k": 9}
            with open(os.path.join(directory, "generation_config.json"), "w", encoding="utf-8") as file:
                json.dump(said, file)
            by_file = json.loads(tzoo(*words).stdout)["ids"]
            flags = ["--num_beams", "3", "--temperature", "1.7", "--top_k", "9"]
            self.assertEqual(by_file, json.loads(tzoo(*words, *flags).stdout)["ids"])
            beams = json.loads(tzoo(*words, "--temperature", "0").stdout)["ids"]
            self.assertNotEqual(by_file, beams)
            self.assertEqual(json.loads(tzoo(*words, "--num_beams", "3").stdout)["ids"], beams)  # the flag asks for a search alone


class Gpt2(DecodingParity, unittest.TestCase):
    BEAMS, FILTERS, FILES = BEAMS, FILTERS, BEAMS + FILTERS + FILES

    def generator(self, seed):
        config = transformers.GPT2Config(n_layer=2, n_head=4, n_embd=32, vocab_size=61, n_positions=40,
                                         bos_token_id=None, eos_token_id=None)
        return hf.random_model(transformers.GPT2LMHeadModel, config, seed)


class Llama(DecodingParity, unittest.TestCase):
    BEAMS, FILTERS, FILES = BEAMS[1:3], FILTERS[3:], FILES[5:7]

    def generator(self, seed):
        config = transformers.LlamaConfig(
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=[1, 2, 4][seed % 3], hidden_size=32,
            intermediate_size=40, vocab_size=61, max_position_embeddings=64, tie_word_embeddings=seed % 2 == 1,
            bos_token_id=None, eos_token_id=None)
        return hf.random_model(transformers.LlamaForCausalLM, config, seed)


class T5(DecodingParity, unittest.TestCase):
    BEAMS, FILTERS, FILES = BEAMS[2:4], FILTERS[1:3], FILES[:4]  # the counts of a decoder's own tokens

    def generator(self, seed):
        config = transformers.T5Config(
            num_layers=2, num_decoder_layers=2, num_heads=4, d_model=32, d_kv=8, d_ff=40, vocab_size=61,
            relative_attention_num_buckets=8, relative_attention_max_distance=12, decoder_start_token_id=0,
            tie_word_embeddings=False, pad_token_id=0, eos_token_id=None)
        return hf.random_model(transformers.T5ForConditionalGeneration, config, seed)


class Mixture(DecodingParity):
    """Of experts; TYPE is its model_type."""

    BEAMS, FILTERS = BEAMS[3:], FILTERS[3:]

    def generator(self, seed):
        cls, config = MODELS[self.TYPE]()
        config.hidden_size, config.intermediate_size = 32, 40
        return hf.random_model(cls, config, seed)

    def test_a_text_that_may_outgrow_the_rotary_positions_is_noted(self):
        model = self.generator(0)
        model.config.max_position_embeddings = 20
        with tempfile.TemporaryDirectory() as directory:
            model.save_pretrained(directory)
            for count, words, noted in ((17, (), False), (18, (), True), (18, ("--context", "20"), False)):
                done = tzoo("generate", "--model", directory, "--input_ids", "[[5, 6, 7]]", "--max_new_tokens", str(count), *words)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual("may grow to 21 tokens, and the model knows the positions of 20" in done.stderr, noted, done.stderr)

    def generate(self, directory, rows, count, *words):
        done = tzoo("generate", "--model", directory, "--input_ids", json.dumps(rows), "--max_new_tokens", str(count), "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["ids"]

    @torch.no_grad()
    def test_sampled_tokens_have_the_probabilities_of_transformers(self):
        prompt, draws, temperature, top_k, top_p = [5, 17, 40], 2000, 2.0, 12, 0.9
        with tempfile.TemporaryDirectory() as directory:
            model = self.generator(1)
            model.save_pretrained(directory)
            scores = model(torch.tensor([prompt])).logits[:, -1]
            for warper in (transformers.TemperatureLogitsWarper(temperature), transformers.TopKLogitsWarper(top_k),
                           transformers.TopPLogitsWarper(top_p)):
                scores = warper(None, scores)
            expected = scores.softmax(-1)[0]
            self.assertGreater((expected > 0.01).sum(), 3)
            found = torch.tensor(self.generate(directory, [prompt] * draws, 1, "--temperature", str(temperature), "--top_k", str(top_k),
                                               "--top_p", str(top_p), "--seed", "3"))[:, 0].bincount(minlength=len(expected)) / draws
            self.assertEqual(found[expected == 0].sum(), 0)
            spread = (expected * (1 - expected) / draws).sqrt()
            self.assertLess(((found - expected).abs() / spread.clamp_min(1e-3)).max(), 4.5)


class Mixtral(Mixture, unittest.TestCase):
    TYPE = "mixtral"


class Qwen2Moe(Mixture, unittest.TestCase):
    TYPE = "qwen2_moe"


class Qwen3Moe(Mixture, unittest.TestCase):
    TYPE = "qwen3_moe"


if __name__ == "__main__":
    unittest.main()
