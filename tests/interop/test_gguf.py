"""GGUF files: what the package `gguf` writes runs in tzoo as in transformers, what tzoo writes that package reads.
compare_llama_cpp.py, run by hand, compares with llama.cpp itself."""

import copy
import functools
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import gguf
import numpy as np
import sentencepiece
import tokenizers
import torch
import transformers
from forward_parity import hf, tzoo
from gguf_files import TYPES, set_numbers, write
from safetensors.torch import load_file, save_file
from sentencepiece import sentencepiece_model_pb2
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (BertConfig, Gemma2Config, GemmaConfig, GPT2Config, LlamaConfig, Phi3Config, Qwen2Config, Qwen3Config,
                          T5Config)

WIDE = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256,
        "max_position_embeddings": 64, "vocab_size": 96, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
ROPE = {"rope_type": "default", "rope_theta": 5000.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
T5_SIZES = {"vocab_size": 96, "d_model": 256, "d_kv": 64, "d_ff": 256, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 4,
            "decoder_start_token_id": 0}
MODELS = {
    "llama": (transformers.LlamaForCausalLM, lambda: LlamaConfig(**WIDE, num_key_value_heads=2, head_dim=128, rope_parameters=ROPE)),
    "llama, scaled": (transformers.LlamaForCausalLM, lambda: LlamaConfig(
        **WIDE, num_key_value_heads=4, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3)),
    "qwen2": (transformers.Qwen2ForCausalLM, lambda: Qwen2Config(**WIDE, num_key_value_heads=2, rope_parameters=ROPE)),
    "qwen3": (transformers.Qwen3ForCausalLM, lambda: Qwen3Config(**WIDE, num_key_value_heads=1, head_dim=32, rope_parameters=ROPE)),
    "gemma": (transformers.GemmaForCausalLM, lambda: GemmaConfig(**WIDE, num_key_value_heads=1, head_dim=32, rope_parameters=ROPE)),
    "gemma2": (transformers.Gemma2ForCausalLM, lambda: Gemma2Config(
        **WIDE, num_key_value_heads=2, head_dim=32, query_pre_attn_scalar=32, sliding_window=5, rope_parameters=ROPE)),
    "gemma3": (transformers.Gemma3ForCausalLM, lambda: transformers.Gemma3TextConfig(
        **{**WIDE, "num_hidden_layers": 7}, num_key_value_heads=1, head_dim=32, query_pre_attn_scalar=32, sliding_window=5,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})),
    "smollm3": (transformers.SmolLM3ForCausalLM, lambda: transformers.SmolLM3Config(
        **{**WIDE, "num_hidden_layers": 5}, num_key_value_heads=2, rope_parameters=ROPE)),
    "granite": (transformers.GraniteForCausalLM, lambda: transformers.GraniteConfig(
        **WIDE, num_key_value_heads=2, attention_multiplier=0.1, embedding_multiplier=12.0, residual_multiplier=0.22,
        logits_scaling=8.0, tie_word_embeddings=True, rope_parameters=ROPE)),
    "olmo2": (transformers.Olmo2ForCausalLM, lambda: transformers.Olmo2Config(**WIDE, num_key_value_heads=2, rope_parameters=ROPE)),
    "gpt2": (transformers.GPT2LMHeadModel, lambda: GPT2Config(
        n_embd=256, n_layer=2, n_head=4, n_positions=64, vocab_size=96, bos_token_id=None, eos_token_id=None)),
    "phi3": (transformers.Phi3ForCausalLM, lambda: Phi3Config(
        **WIDE, num_key_value_heads=2, rope_parameters={**ROPE, "partial_rotary_factor": 0.5})),
    "mixtral": (transformers.MixtralForCausalLM, lambda: transformers.MixtralConfig(
        **WIDE, num_key_value_heads=2, num_local_experts=3, rope_parameters=ROPE)),
    "qwen2_moe": (transformers.Qwen2MoeForCausalLM, lambda: transformers.Qwen2MoeConfig(
        **WIDE, num_key_value_heads=2, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256,
        shared_expert_intermediate_size=512, rope_parameters=ROPE)),
    "qwen3_moe": (transformers.Qwen3MoeForCausalLM, lambda: transformers.Qwen3MoeConfig(
        **WIDE, num_key_value_heads=2, head_dim=32, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256,
        norm_topk_prob=True, rope_parameters=ROPE)),
    "nomic_bert": (transformers.NomicBertModel, lambda: transformers.NomicBertConfig(**{**WIDE, "pad_token_id": 0}, rope_parameters=ROPE)),
    "bert": (transformers.BertModel, lambda: BertConfig(**{**WIDE, "pad_token_id": 0})),
    "t5": (transformers.T5ForConditionalGeneration, lambda: T5Config(**T5_SIZES, tie_word_embeddings=True)),
    "t5, gated": (transformers.T5ForConditionalGeneration, lambda: T5Config(
        **T5_SIZES, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
}
QUANTIZED = (TYPES.Q8_0, TYPES.Q4_0, TYPES.Q4_1, TYPES.Q5_0, TYPES.Q5_1, TYPES.Q4_K, TYPES.Q5_K, TYPES.Q6_K)
TEXTS = ["And God said, Let there be light", "it's 12345 tests,  two  spaces", "naïve cafés ✓ 日本語", "don't I'LL 3.14!", "TheSpirit /and",
         " a", ""]
LINES = ["And God said, Let there be light: and there was light.", "It's the 12345th test of two words and 678 numbers, isn't it?",
         "A naïve café is not there, and the light is.", "In the beginning God created the heaven and the earth.",
         "And the earth was without form, and void; and darkness was upon the face of the deep.",
         "And the Spirit of God moved upon the face of the waters, which he had divided from the dry land.",
         "Don't let them say that I'LL test 3.14 spaces; let the others tell whether lighter texts exist."] * 20


def llama3_factors(config):
    """As llama.cpp's converter computes them."""
    rope, half = config.rope_parameters, config.hidden_size // config.num_attention_heads // 2
    factors = []
    for i in range(half):
        length = 2 * np.pi * rope["rope_theta"] ** (i / half)
        low, high, original = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
        if length < original / high:
            factors.append(1.0)
        elif length > original / low:
            factors.append(rope["factor"])
        else:
            smooth = (original / length - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def extras(config):
    rope = getattr(config, "rope_parameters", None) or {}
    return [("rope_freqs.weight", llama3_factors(config))] if rope.get("rope_type") == "llama3" else []


class ReadTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "model.gguf")

    def outputs(self, model, *flags):
        ids = torch.randint(1, 96, (1, 12), generator=torch.Generator().manual_seed(5))
        words = ["--input_ids", json.dumps(ids.tolist())]
        more = {}
        if model.config.is_encoder_decoder:
            more = {"decoder_input_ids": ids[:, :7]}
            words += ["--decoder_input_ids", json.dumps(ids[:, :7].tolist())]
        with torch.no_grad():
            expected = model(input_ids=ids, **more)[0]
            exact = copy.deepcopy(model).double()(input_ids=ids, **more)[0]
        target = os.path.join(self.folder, "out.safetensors")
        done = tzoo("forward", "--model", self.path, *words, "--output", target, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = load_file(target)
        return found.get("logits", found.get("last_hidden_state")), expected, exact

    def check(self, name, kind):
        cls, config = MODELS[name]
        model = hf.random_model(cls, config(), 3)
        set_numbers(model, write(self.path, model, kind, np.random.default_rng(3), extra=extras(model.config)))
        found, expected, exact = self.outputs(model)
        error, rounding = (((each - exact).abs().max() / exact.abs().max()).item() for each in (found, expected))
        self.assertLess(error, 1e-6 + 6 * rounding)
        if isinstance(model, (transformers.BertModel, transformers.NomicBertModel)):
            return
        prompt = [[5, 17, 60, 33]]
        with torch.no_grad():
            ids = model.generate(torch.tensor(prompt), max_new_tokens=12, do_sample=False, pad_token_id=0)[0].tolist()
        ids = ids[1 if model.config.is_encoder_decoder else 4:]
        done = tzoo("generate", "--model", self.path, "--input_ids", json.dumps(prompt), "--max_new_tokens", "12", "--temperature",
                    "0", "--json", "--weights", "float32")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["ids"], [ids])

    # A type is read alike for each architecture, except that some lay their numbers out in another way.

    def test_every_architecture(self):
        kinds = (TYPES.F32, TYPES.F16, TYPES.BF16)
        for i, name in enumerate(MODELS):
            for kind in kinds if name == "llama" else kinds[i % 3:][:1]:
                with self.subTest(model=name, type=kind.name):
                    self.check(name, kind)

    def test_every_quantized_type(self):
        for i, name in enumerate(("llama", "gpt2", "t5, gated", "mixtral", "qwen2_moe")):
            for kind in QUANTIZED if name == "llama" else QUANTIZED[i - 1::4]:
                with self.subTest(model=name, type=kind.name):
                    self.check(name, kind)

    def test_blocks_are_multiplied_as_they_are(self):
        """Activations alone are rounded, to 8 bits, which such models make worse; a wrong weight would leave nothing in common.
        A file of several types has panels of several formats."""
        for name in ("llama", "qwen2", "gpt2", "phi3", "mixtral", "qwen2_moe", "bert"):
            for kind in (*QUANTIZED, None) if name == "llama" else (None,):
                with self.subTest(model=name, type=kind.name if kind else "all"):
                    cls, config = MODELS[name]
                    model = hf.random_model(cls, config(), 3)
                    with torch.no_grad():
                        for weight in model.parameters():
                            weight.mul_(0.5 if weight.ndim > 1 else 1)
                    kinds = itertools.cycle(QUANTIZED)
                    numbers = write(self.path, model, kind or (lambda name: next(kinds)), np.random.default_rng(3))
                    set_numbers(model, numbers)
                    found, _, exact = self.outputs(model, "--weights", "gguf")
                    self.assertLess(((found - exact).pow(2).mean() / exact.pow(2).mean()).sqrt().item(), 0.25)

    def test_a_file_without_blocks_is_refused(self):
        cls, config = MODELS["llama"]
        write(self.path, hf.random_model(cls, config(), 3), TYPES.F16, np.random.default_rng(3))
        done = tzoo("generate", "--model", self.path, "--input_ids", "[[5]]", "--weights", "gguf")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--weights gguf: the model is no GGUF file with quantized weights", done.stderr)

    def test_blocks_are_decoded_bit_for_bit(self):
        """Every block of random bytes, but with scales that are numbers."""
        cls, config = MODELS["qwen2"]
        for kind in QUANTIZED:
            model = hf.random_model(cls, config(), 1)
            numbers = write(self.path, model, kind, np.random.default_rng(7))
            target = os.path.join(self.folder, kind.name)
            done = tzoo("export", "--model", self.path, "--format", "huggingface", "--output", target, "--verify")
            self.assertEqual(done.returncode, 0, done.stderr)
            stored = load_file(os.path.join(target, "model.safetensors"))
            found = stored["model.layers.1.mlp.down_proj.weight"].numpy()
            self.assertEqual(found.view(np.uint32).tolist(), numbers["blk.1.ffn_down.weight"].view(np.uint32).tolist(), kind)

    def test_a_file_says_how_its_model_pools(self):
        letters = [chr(ord("a") + i) for i in range(26)]
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *("\u2581" + c for c in letters), *letters]
        tokens += [f"\u2581{i}" for i in range(96 - len(tokens))]

        def add(kind):
            def keys(writer):
                writer.add_pooling_type(kind)
                writer.add_tokenizer_model("bert")
                writer.add_token_list(tokens)
                writer.add_token_types([3] * 5 + [1] * 91)
                for name, number in (("bos", 2), ("sep", 3), ("unk", 1), ("pad", 0), ("mask", 4)):
                    getattr(writer, f"add_{name}_token_id")(number)
            return keys

        cls, config = MODELS["bert"]
        model = hf.random_model(cls, config(), 4)
        ids = [2, *(5 + ord(c) - ord("a") if i == 0 else 31 + ord(c) - ord("a") for i, c in enumerate("hello")), 3]
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([ids]))[0][0]
        for kind, row in ((gguf.PoolingType.MEAN, hidden.mean(0)), (gguf.PoolingType.CLS, hidden[0]), (gguf.PoolingType.LAST, hidden[-1])):
            write(self.path, model, add=add(kind))
            done = tzoo("embed", "--model", self.path, "--text", "hello")
            with self.subTest(kind=kind):
                self.assertEqual(done.returncode, 0, done.stderr)
                found = torch.tensor(json.loads(done.stdout)["embedding"])
                self.assertLess((found - row / row.norm()).abs().max().item(), 2e-6)
        write(self.path, model, add=add(gguf.PoolingType.RANK))
        done = tzoo("embed", "--model", self.path, "--text", "hello")
        self.assertEqual(done.returncode, 1)
        self.assertIn("bert.pooling_type", done.stderr)

    def refused(self, *said, **changes):
        cls, config = MODELS[changes.pop("model", "llama")]
        write(self.path, hf.random_model(cls, config(), 1), **changes)
        done = tzoo("inspect", self.path)
        self.assertEqual(done.returncode, 1, done.stdout)
        for text in (self.path, *said):
            self.assertIn(text, done.stderr)

    def test_unknown_keys_and_types_are_refused_by_name(self):
        number = lambda key, value: lambda writer: writer.add_float32(key, value)  # noqa: E731
        self.refused("llama.logit_scale", add=number("llama.logit_scale", 0.5))
        self.refused("llama.attention.scale", add=number("llama.attention.scale", 0.5))
        self.refused("llama.expert_count", "mixture", add=lambda writer: writer.add_expert_count(8))
        self.refused("llama.attention.sliding_window", add=lambda writer: writer.add_sliding_window(16))
        self.refused("llama.rope.scaling.type", "yarn", add=lambda writer: writer.add_rope_scaling_type(gguf.RopeScalingType.YARN))
        self.refused("'llama.attention.head_count_kv' must be an integer, got [4,2]", add=lambda writer: writer.add_head_count_kv([4, 2]))
        self.refused("llama.vocab_size", add=lambda writer: writer.add_vocab_size(97))
        self.refused("split.count", "llama-gguf-split", add=lambda writer: writer.add_uint16("split.count", 3))
        self.refused("general.type", "adapter", add=lambda writer: writer.add_type("adapter"))
        self.refused("blk.0.attn_sinks.weight", extra=[("blk.0.attn_sinks.weight", np.zeros(4, np.float32))])
        self.refused("rope_freqs.weight", "Llama 3", extra=[("rope_freqs.weight", np.linspace(1, 3, 16, dtype=np.float32))])

    def test_two_scalings_of_rotary_positions_are_refused(self):
        scaled = {"model": "llama, scaled", "extra": extras(MODELS["llama, scaled"][1]())}
        for key in ("llama.rope.scaling.factor", "llama.rope.scale_linear"):
            with self.subTest(key=key):
                self.refused(f"'{key}' is 2.0", "'rope_freqs.weight'", add=lambda writer: writer.add_float32(key, 2.0), **scaled)

        def linear(factor):
            def keys(writer):
                writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
                writer.add_rope_scaling_factor(factor)
            return keys

        self.refused("'llama.rope.scaling.factor'", "'rope_freqs.weight'", add=linear(2.0), **scaled)
        cls, config = MODELS["llama, scaled"]
        write(self.path, hf.random_model(cls, config(), 1), add=linear(1.0), extra=scaled["extra"])  # which scales nothing
        done = tzoo("inspect", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_types_that_the_zoo_does_not_read(self):
        writer = gguf.GGUFWriter(self.path, "llama")
        writer.add_tensor("token_embd.weight", np.zeros((4, 84), np.uint8), raw_dtype=TYPES.Q2_K)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        done = tzoo("inspect", self.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tensor 'token_embd.weight' is Q2_K", done.stderr)


def train(model, trainer, pre_tokenizer=None, normalizer=None):
    tokenizer = tokenizers.Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(LINES, trainer)
    return tokenizer


def byte_level(*patterns):
    return tokenizers.Tokenizer.from_str(trained_byte_level(*patterns))


@functools.cache
def trained_byte_level(*patterns):
    """A byte-level BPE that cuts words by each pattern, or pre-tokenizer, in turn; none: by GPT-2's alone."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not patterns)
    splits = [pre_tokenizers.Split(tokenizers.Regex(part), "isolated") if isinstance(part, str) else part for part in patterns]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<|end|>"], initial_alphabet=level.alphabet(), show_progress=False)
    tokenizer = train(models.BPE(), trainer, pre_tokenizers.Sequence([*splits, level]))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer.to_str()


def sentencepiece_model(kind, **options):
    with tempfile.TemporaryDirectory() as folder:
        corpus, prefix = os.path.join(folder, "text"), os.path.join(folder, "model")
        pathlib.Path(corpus).write_text("\n".join(LINES), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=prefix, model_type=kind, minloglevel=2, **options)
        return sentencepiece.SentencePieceProcessor(model_file=prefix + ".model"), pathlib.Path(prefix + ".model").read_bytes()


TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK_CODER = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", pre_tokenizers.Digits(individual_digits=True)]
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class TokenizerTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "tokens.gguf")

    def write(self, model, tokens, types, **keys):
        """A file with a tokenizer alone."""
        writer = gguf.GGUFWriter(self.path, "llama")
        writer.add_tokenizer_model(model)
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        for key, value in keys.items():
            getattr(writer, "add_" + key)(*value if isinstance(value, tuple) else (value,))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()

    def encoded(self, *words):
        done = tzoo_with_input("\n".join(TEXTS) + "\n", "tokenizer", "encode", "--model", self.path, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def decoded(self, rows):
        lines = "\n".join(json.dumps(row) for row in rows)
        done = tzoo_with_input(lines + "\n", "tokenizer", "decode", "--model", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split("\n")[:len(rows)]

    def write_bpe(self, tokenizer, pre, **keys):
        state = json.loads(tokenizer.to_str())["model"]
        tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
        merges = [" ".join(merge) if isinstance(merge, list) else merge for merge in state["merges"]]
        self.write("gpt2", tokens, [3] + [1] * (len(tokens) - 1), tokenizer_pre=pre, token_merges=merges, bos_token_id=0,
                   eos_token_id=0, **keys)

    def test_byte_level_bpe(self):
        digits = pre_tokenizers.Digits(individual_digits=True)
        ways = [("gpt-2", []), ("qwen2", [QWEN2]), ("llama-bpe", [QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")]), ("tekken", [TEKKEN]),
                ("deepseek-coder", DEEPSEEK_CODER)]
        ways += [(pre, []) for pre in ("a.x-4.0", "mellum", "trillion", "granite-docling")]
        ways += [(pre, [digits, GPT2]) for pre in ("smollm", "refact", "starcoder", "exaone", "minerva-7b", "mellum2")]  # refact: Granite 3's
        for pre, patterns in ways:
            tokenizer = byte_level(*patterns)
            self.write_bpe(tokenizer, pre, add_bos_token=False)
            with self.subTest(pre=pre):
                rows = [tokenizer.encode(text).ids for text in TEXTS]
                self.assertEqual(self.encoded(), rows)
                self.assertEqual(self.decoded(rows), TEXTS)
        self.write_bpe(byte_level(), "gpt-2", add_bos_token=True)
        self.assertEqual(self.encoded()[-1], [0])

    def test_an_unknown_way_to_cut_words_is_refused(self):
        for pre, said in (("deepseek-llm", "'deepseek-llm'"), ("", "tokenizer.ggml.pre")):
            self.write_bpe(byte_level(), pre)
            done = tzoo_with_input("a\n", "tokenizer", "encode", "--model", self.path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)

    def write_pieces(self, model, processor, **keys):
        count = processor.vocab_size()
        kinds = [(processor.is_unknown, 2), (processor.is_control, 3), (processor.is_unused, 5), (processor.is_byte, 6)]
        types = [next((number for test, number in kinds if test(i)), 1) for i in range(count)]
        self.write(model, [processor.id_to_piece(i) for i in range(count)], types, token_scores=[processor.get_score(i) for i in range(count)], **keys)

    def test_sentencepiece_bpe(self):
        """With and without a space before the text; characters that it does not know are bytes."""
        for prefix in (True, False):
            processor, _ = sentencepiece_model("bpe", vocab_size=420, byte_fallback=True, normalization_rule_name="identity",
                                               remove_extra_whitespaces=False, add_dummy_prefix=prefix)
            self.write_pieces("llama", processor, add_space_prefix=prefix)
            with self.subTest(prefix=prefix):
                rows = [processor.encode(text, add_bos=True) for text in TEXTS]
                self.assertEqual(self.encoded(), rows)
                self.assertEqual(self.encoded("--no_special_tokens"), [row[1:] for row in rows])
                self.assertEqual(self.decoded(rows), TEXTS)

    def test_unigram_with_its_normalization(self):
        processor, model = sentencepiece_model("unigram", vocab_size=90, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, hard_vocab_limit=False)
        state = sentencepiece_model_pb2.ModelProto.FromString(model)
        charsmap = state.normalizer_spec.precompiled_charsmap
        self.write_pieces("t5", processor, add_space_prefix=True, remove_extra_whitespaces=True, precompiled_charsmap=charsmap)
        self.assertEqual(self.encoded(), [processor.encode(text, add_eos=True) for text in TEXTS])

    def test_unigram_with_bytes(self):
        """As mT5's: characters that are no piece are bytes."""
        processor, _ = sentencepiece_model("unigram", vocab_size=340, byte_fallback=True, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
                                           hard_vocab_limit=False, normalization_rule_name="identity")
        self.write_pieces("t5", processor, add_space_prefix=True, remove_extra_whitespaces=True)
        rows = [processor.encode(text, add_eos=True) for text in TEXTS]
        self.assertTrue(any(processor.is_byte(id) for row in rows for id in row))
        self.assertEqual(self.encoded(), rows)
        self.assertEqual(self.decoded(rows), [processor.decode(row) for row in rows])

    def test_wordpiece(self):
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer = train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(
            vocab_size=150, special_tokens=special, show_progress=False), pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer())
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
        marked = [t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t in tokens]
        self.write("bert", marked, [3] * 5 + [1] * (len(tokens) - 5), tokenizer_pre="bert", bos_token_id=2, sep_token_id=3,
                   unk_token_id=1, pad_token_id=0, mask_token_id=4)
        self.assertEqual(self.encoded(), [tokenizer.encode(text).ids for text in TEXTS])

    def test_wordpiece_without_bos_token_id(self):
        """llama.cpp's default is 101, [CLS] of the published vocabularies; older files say cls_token_id."""
        tokens = ["[PAD]", *(f"\u2581unused{i}" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581cat", "[OTHER]"]
        types = [1 if token.startswith("\u2581") else 3 for token in tokens]
        for keys, cls in (({}, 101), ({"uint32": ("tokenizer.ggml.cls_token_id", 105)}, 105),
                          ({"uint32": ("tokenizer.ggml.cls_token_id", 105), "bos_token_id": 101}, 101)):
            self.write("bert", tokens, types, **keys)
            done = tzoo_with_input("cat\n", "tokenizer", "encode", "--model", self.path, "--json")
            with self.subTest(keys=keys):
                self.assertEqual(json.loads(done.stdout), [cls, 104, 102], done.stderr)

    def test_faults_are_refused_by_name(self):
        cases = [
            (dict(tokens=["a", "a"], types=[1, 1]), '"a" twice'),
            (dict(tokens=["a", "b"], types=[1]), "token_type"),
            (dict(tokens=["a", "b"], types=[1, 1], eos_token_id=7), "eos_token_id"),
            (dict(tokens=["a", "b"], types=[1, 1], string_key=None), "tokenizer.ggml.suppress_tokens"),
        ]
        for keys, said in cases:
            keys = dict(keys)
            writer = gguf.GGUFWriter(self.path, "llama")
            writer.add_tokenizer_model("llama")
            writer.add_token_list(keys["tokens"])
            writer.add_token_types(keys["types"])
            writer.add_token_scores([0.0] * len(keys["tokens"]))
            if "eos_token_id" in keys:
                writer.add_eos_token_id(keys["eos_token_id"])
            if "string_key" in keys:
                writer.add_array("tokenizer.ggml.suppress_tokens", [1])
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.close()
            done = tzoo_with_input("a\n", "tokenizer", "encode", "--model", self.path)
            with self.subTest(said=said):
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(said, done.stderr)


def tzoo_with_input(text, *words):
    return subprocess.run([os.environ["TZOO"], *words], input=text, capture_output=True, text=True, timeout=300)


class WriteTest(unittest.TestCase):
    """tzoo export --format gguf, read by the package."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.source, self.path = os.path.join(self.folder, "model"), os.path.join(self.folder, "model.gguf")

    def save(self, name, **changes):
        cls, config = MODELS[name]
        config = config()
        config.vocab_size, config.eos_token_id = 400, 0  # the end of the tokenizer below
        for key, value in changes.items():
            setattr(config, key, value)
        model = hf.random_model(cls, config, 2)
        model.save_pretrained(self.source)
        transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level(), eos_token="<|end|>").save_pretrained(self.source)
        return model

    def export(self, weights="f32"):
        return tzoo("export", "--model", self.source, "--format", "gguf", "--weights", weights, "--output", self.path)

    def test_tensors_equal_those_of_llama_cpps_converter(self):
        for name in ("llama", "llama, scaled", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "smollm3", "granite", "olmo2",
                     "gpt2", "phi3", "mixtral", "qwen2_moe", "qwen3_moe"):
            model = self.save(name)
            kinds = (TYPES.F16, TYPES.Q4_0, TYPES.Q8_0, TYPES.F32, TYPES.BF16)
            for kind in kinds if name in ("llama", "gpt2") else kinds[:2]:
                done = self.export(kind.name.lower())
                self.assertEqual(done.returncode, 0, done.stderr)
                theirs = os.path.join(self.folder, "theirs.gguf")
                write(theirs, model, kind, extra=extras(model.config))
                found, expected = ({t.name: t for t in gguf.GGUFReader(path).tensors} for path in (self.path, theirs))
                with self.subTest(model=name, type=kind.name):
                    self.assertEqual(sorted(found), sorted(expected))
                    for tensor in expected.values():
                        ours = found[tensor.name]
                        self.assertEqual((ours.tensor_type, ours.shape.tolist()), (tensor.tensor_type, tensor.shape.tolist()))
                        self.assertTrue(np.array_equal(ours.data.view(np.uint8), tensor.data.view(np.uint8)), tensor.name)

    def test_adapters_as_llama_cpp_reads_them(self):
        """A model's tensor plus alpha / rank B A, rank that of B, is the tensor of the merged model: the layout of
        convert_lora_to_gguf.py, alpha and rank as in src/llama-adapter.cpp."""
        adapter = pathlib.Path(self.folder, "adapter")
        adapter.mkdir()
        kinds = {"llama": ("q_proj", "k_proj", "o_proj", "up_proj"), "qwen2": ("k_proj", "down_proj", "lm_head"), "gpt2": ("c_attn", "c_fc"),
                 "phi3": ("qkv_proj", "gate_up_proj")}
        settings = {}, {"use_rslora": True}, {"rank_pattern": {"k_proj": 2}, "alpha_pattern": {"up_proj|c_fc": 1}}
        for (name, targets), more in itertools.product(kinds.items(), settings):
            with self.subTest(name, **more), torch.no_grad():
                model = self.save(name)
                plain = os.path.join(self.folder, "plain.gguf")
                write(plain, model, TYPES.F32, extra=extras(model.config))
                tensors = {}
                for key, module in model.named_modules():
                    if not key.endswith(targets):
                        continue
                    conv = isinstance(module, transformers.pytorch_utils.Conv1D)
                    rows, columns = module.weight.T.shape if conv else module.weight.shape
                    rank = 2 if "rank_pattern" in more and key.endswith("k_proj") else 4
                    alpha = 1 if "alpha_pattern" in more and key.endswith((".up_proj", ".c_fc")) else 6
                    a, b = torch.randn(rank, columns), torch.randn(rows, rank)
                    tensors |= {f"base_model.model.{key}.lora_A.weight": a, f"base_model.model.{key}.lora_B.weight": b}
                    delta = b @ a * (alpha / (rank ** 0.5 if more.get("use_rslora") else rank))
                    module.weight += delta.T if conv else delta
                merged = os.path.join(self.folder, "merged.gguf")
                write(merged, model, TYPES.F32, extra=extras(model.config))
                save_file(tensors, adapter / "adapter_model.safetensors")
                adapter.joinpath("adapter_config.json").write_text(json.dumps(
                    {"peft_type": "LORA", "r": 4, "lora_alpha": 6, "target_modules": list(targets), "base_model_name_or_path": self.source, **more}))
                adapter.joinpath("README.md").write_text("a card")
                done = tzoo("export", "--adapter", str(adapter), "--format", "gguf-lora", "--output", self.path)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("not exported: README.md\n", done.stdout)
                file, base, expected = (gguf.GGUFReader(path) for path in (self.path, plain, merged))
                said = {key: file.fields[key].contents() for key in file.fields if not key.startswith("GGUF.")}
                alpha = said.pop("adapter.lora.alpha")
                self.assertEqual(said, {"general.architecture": base.fields["general.architecture"].contents(), "general.type": "adapter",
                                        "adapter.type": "lora"})
                if not more:
                    self.assertEqual(alpha, 6)
                found = {tensor.name: tensor.data for tensor in file.tensors}
                for before, after in zip(base.tensors, expected.tensors):
                    a, b = (found.pop(f"{before.name}.lora_{part}", None) for part in "ab")
                    numbers = before.data if a is None else before.data + alpha / b.shape[1] * b @ a
                    np.testing.assert_allclose(numbers, after.data, rtol=1e-5, atol=1e-4, err_msg=before.name)
                self.assertFalse(found)
        config = json.loads(adapter.joinpath("adapter_config.json").read_text())
        module = "base_model.model.model.layers.0.self_attn.qkv_proj"
        few = {key: tensor for key, tensor in tensors.items() if key.startswith(module)}
        cases = (("magnitudes of DoRA", few | {module + ".lora_magnitude_vector": torch.ones(few[module + ".lora_B.weight"].shape[0])}, {"use_dora": True}),
                 ("whole tensors", few | {"base_model.model.model.norm.weight": torch.ones(256)}, {"modules_to_save": ["norm"]}))
        for said, tensors, more in cases:
            save_file(tensors, adapter / "adapter_model.safetensors")
            adapter.joinpath("adapter_config.json").write_text(json.dumps(config | more))
            done = tzoo("export", "--adapter", str(adapter), "--format", "gguf-lora", "--output", self.path)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(f"a GGUF adapter has no {said}", done.stderr)
        done = tzoo("export", "--model", self.source, "--format", "gguf-lora", "--output", self.path)
        self.assertIn("--format gguf-lora needs --adapter", done.stderr)
        done = tzoo("export", "--adapter", str(adapter), "--format", "huggingface", "--output", os.path.join(self.folder, "merged"))
        self.assertIn("not exported: adapter/README.md\n", done.stdout, done.stderr)
        pathlib.Path(self.source, "generation_config.json").write_text(json.dumps({"eos_token_id": [0, 99999]}))
        done = tzoo("export", "--model", self.source, "--format", "gguf", "--output", self.path)
        self.assertIn("generation_config.json': 'eos_token_id' has 99999", done.stderr)

    def test_tokens_without_a_row_in_the_model_are_named(self):
        self.save("llama", vocab_size=260)
        self.assertIn("the model has 260 rows, and none for its token", self.export().stderr)

    def test_classic_files_say_what_their_tokenizer_json_says(self):
        self.save("gpt2")
        root = pathlib.Path(self.source, "tokenizer.json")
        model = json.loads(root.read_text())["model"]

        def said():
            self.assertEqual(self.export().returncode, 0)
            fields = gguf.GGUFReader(self.path).fields
            return {name: field.contents() for name, field in fields.items() if name.startswith("tokenizer.")}

        expected = said()
        for name in ("tokenizer.json", "special_tokens_map.json"):
            pathlib.Path(self.source, name).unlink(missing_ok=True)
        pathlib.Path(self.source, "vocab.json").write_text(json.dumps(model["vocab"]))
        merges = (" ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"])
        pathlib.Path(self.source, "merges.txt").write_text("#version: 0.2\n" + "".join(line + "\n" for line in merges))
        settings = {"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|end|>", "bos_token": "<|end|>", "unk_token": "<|end|>"}
        pathlib.Path(self.source, "tokenizer_config.json").write_text(json.dumps(settings))
        found = said()
        for name in ("tokenizer.ggml.bos_token_id", "tokenizer.ggml.unknown_token_id"):  # roles that its tokenizer_config.json lacks
            self.assertEqual(found.pop(name), 0)
        self.assertEqual(found, expected)

    def ids(self, path, texts):
        done = tzoo_with_input("".join(json.dumps(text) + "\n" for text in texts), "tokenizer", "encode", "--model", path, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_added_tokens(self):
        """Tokens keep their ids; rules that GGUF has no keys for, and tokens beyond the model's rows, are named."""
        self.save("llama", vocab_size=405)
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.source)
        rules = {"<plain>": {}, "<left>": {"lstrip": True}, "<right>": {"rstrip": True}, "<word>": {"single_word": True}, "<turn>": {"special": True}, "<more>": {}}
        for content, rule in rules.items():
            tokenizer.add_tokens(tokenizers.AddedToken(content, normalized=False, **rule), special_tokens="special" in rule)
        tokenizer.save_pretrained(self.source)
        done = self.export()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not exported: " + ", ".join(f'rules of the token "{name}"' for name in ("<left>", "<right>", "<word>"))
                      + ', the token "<more>"\n', done.stdout)
        self.assertNotIn('"<plain>"', done.stdout)
        fields = gguf.GGUFReader(self.path).fields
        self.assertEqual(fields["tokenizer.ggml.tokens"].contents()[400:], list(rules)[:5])
        self.assertEqual(fields["tokenizer.ggml.token_type"].contents()[400:], [4, 4, 4, 4, 3])
        texts = ["a <plain> b<turn>c", "<turn><plain>", "God<plain>And <|end|> x"]
        self.assertEqual(self.ids(self.path, texts), tokenizer([json.dumps(text) for text in texts])["input_ids"])

    def test_sentencepiece_files_with_added_tokens(self):
        _, pieces = sentencepiece_model("bpe", vocab_size=420, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False)
        self.save("llama", vocab_size=422)
        for path in pathlib.Path(self.source).glob("tokenizer*"):
            path.unlink()
        pathlib.Path(self.source, "tokenizer.model").write_bytes(pieces)
        pathlib.Path(self.source, "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer", "legacy": True}))
        pathlib.Path(self.source, "added_tokens.json").write_text(json.dumps({"<turn>": 420, "<user>": 421}))
        done = self.export()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ids of texts that begin with a space", done.stdout)
        self.assertIn('rules of the token "<turn>"', done.stdout)  # no mark before a space that follows it
        self.assertEqual(gguf.GGUFReader(self.path).fields["tokenizer.ggml.tokens"].contents()[420:], ["<turn>", "<user>"])
        texts = ["a<turn>b", "<turn><user>God", "And God<user>"]
        reference = transformers.AutoTokenizer.from_pretrained(self.source)
        self.assertEqual(self.ids(self.path, texts), reference([json.dumps(text) for text in texts])["input_ids"])

    def test_how_words_are_cut_comes_from_the_class(self):
        digits = pre_tokenizers.Digits(individual_digits=True)
        for name, tokenizer, pre in (("Qwen2Tokenizer", byte_level(QWEN2), "qwen2"), ("PreTrainedTokenizerFast", byte_level(digits, GPT2), "smollm"),
                                     ("PreTrainedTokenizerFast", byte_level(*DEEPSEEK_CODER), "deepseek-coder")):
            self.save("llama")
            fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")
            fast.save_pretrained(self.source)
            if name == "Qwen2Tokenizer":  # its vocabulary alone
                tokenizer.model.save(self.source)
                pathlib.Path(self.source, "tokenizer.json").unlink()
                settings = {"tokenizer_class": name, "eos_token": "<|end|>", "unk_token": None, "pad_token": "<|end|>"}
                pathlib.Path(self.source, "tokenizer_config.json").write_text(json.dumps(settings))
            done = self.export()
            with self.subTest(pre=pre):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(gguf.GGUFReader(self.path).fields["tokenizer.ggml.pre"].contents(), pre)
                self.assertEqual(self.ids(self.path, TEXTS), fast([json.dumps(text) for text in TEXTS])["input_ids"])

    def test_a_vocabulary_without_letters(self):
        self.save("llama")
        digits = tokenizers.Tokenizer(models.BPE({piece: i for i, piece in enumerate(["<|end|>", *"0123456789", "Ġ"])}, []))
        digits.pre_tokenizer, digits.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        transformers.PreTrainedTokenizerFast(tokenizer_object=digits, eos_token="<|end|>").save_pretrained(self.source)
        done = self.export()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.ids(self.path, ["42 1"]), [[5, 3, 11, 2]])

    def test_other_ids_are_refused(self):
        processor, _ = sentencepiece_model("bpe", vocab_size=420, byte_fallback=True, normalization_rule_name="identity")
        self.save("llama", vocab_size=420)
        vocabulary = {processor.id_to_piece(i): i for i in range(420)}
        model = models.BPE(vocabulary, transformers.tokenization_utils_base.generate_merges(vocabulary), unk_token="<unk>", byte_fallback=True)
        for normalizer in ([], [normalizers.NFKC()]):
            tokenizer = tokenizers.Tokenizer(model)
            tokenizer.normalizer = normalizers.Sequence([*normalizer, normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
            transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>").save_pretrained(self.source)
            done = self.export()
            with self.subTest(normalizer=normalizer):
                self.assertEqual(done.returncode, int(bool(normalizer)), done.stderr)
                if normalizer:
                    self.assertIn("it would give other ids to", done.stderr)

    def test_chat_templates_are_in_the_file_as_the_package_names_them(self):
        model = self.save("llama")
        texts = {"default": "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}", "tool_use": "with tools", "my rag": "other"}
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.source)
        model.generation_config.update(temperature=0.3, do_sample=True)
        model.save_pretrained(self.source)
        for legacy in (False, True):
            tokenizer.chat_template = texts
            tokenizer.save_pretrained(self.source, save_jinja_files=not legacy)
            done = self.export()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("not exported: generation_config.json (do_sample, temperature)\n", done.stdout)
            reference = gguf.GGUFWriter(os.path.join(self.folder, "reference.gguf"), "llama")
            reference.add_chat_template([{"name": name, "template": text} for name, text in texts.items()])
            reference.write_header_to_file()
            reference.write_kv_data_to_file()
            reference.close()
            found, expected = ({name: sorted(field.contents()) if name.endswith("templates") else field.contents()
                                for name, field in gguf.GGUFReader(path).fields.items() if "chat_template" in name}
                               for path in (self.path, os.path.join(self.folder, "reference.gguf")))
            self.assertEqual(found, expected)
            pathlib.Path(self.source, "chat_template.jinja").unlink(missing_ok=True)
            shutil.rmtree(os.path.join(self.source, "additional_chat_templates"), ignore_errors=True)
        # And back: a directory made of the file has the templates again.
        back = os.path.join(self.folder, "back")
        done = tzoo("export", "--model", self.path, "--format", "huggingface", "--output", back)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(transformers.AutoTokenizer.from_pretrained(back).chat_template, {name.replace(" ", "_"): text for name, text in texts.items()})

    def test_there_and_back(self):
        """The file gives the model that it was written from: ids, and the tokens of texts."""
        for name in ("llama", "gemma2", "gemma3", "smollm3", "granite", "olmo2", "gpt2", "phi3", "mixtral", "qwen2_moe", "qwen3_moe"):
            self.save(name)
            self.assertEqual(self.export().returncode, 0)
            words = ["generate", "--prompt", "And God", "--max_new_tokens", "12", "--temperature", "0", "--json", "--weights", "float32"]
            before, after = (tzoo(*words, "--model", path) for path in (self.source, self.path))
            with self.subTest(model=name):
                self.assertEqual(after.returncode, 0, after.stderr)
                self.assertEqual(json.loads(after.stdout)["ids"], json.loads(before.stdout)["ids"])

    def test_blocks_are_evaluated_beside_the_exact_numbers(self):
        self.save("llama")
        self.assertEqual(self.export("q8_0").returncode, 0)
        text = pathlib.Path(self.folder, "lines.txt")
        text.write_text("\n".join(LINES), encoding="utf-8")
        found = {}
        for weights in ("modules", "gguf"):
            done = tzoo("evaluate", "--model", self.path, "--dataset", text, "--block_size", "16", "--batch_size", "4", "--eval_iters",
                        "2", "--json", "--weights", weights)
            self.assertEqual(done.returncode, 0, done.stderr)
            found[weights] = json.loads(done.stdout)
        self.assertAlmostEqual(found["gguf"]["loss"] / found["modules"]["loss"], 1, delta=0.02)
        self.assertGreater(found["gguf"]["largest_logit_error"], 0)

    def test_what_gguf_cannot_say_is_refused_by_name(self):
        for name, changes, said in (("llama", {"hidden_act": "gelu"}, "activation"), ("gemma2", {"query_pre_attn_scalar": 99}, "attention_scale"),
                                    ("gemma3", {"layer_types": ["full_attention"] * 7}, "window_layers"),
                                    ("smollm3", {"no_rope_layers": [1] * 5}, "rotary_layers"),
                                    ("qwen2_moe", {"norm_topk_prob": True}, "expert_weights"),
                                    ("qwen3_moe", {"norm_topk_prob": False}, "expert_weights"),
                                    ("qwen3_moe", {"mlp_only_layers": [0]}, "expert_layers"),
                                    ("mixtral", {"sliding_window": 7}, "sliding_window")):
            self.save(name, **changes)
            done = self.export()
            with self.subTest(said=said):
                self.assertEqual(done.returncode, 1)
                self.assertIn(said, done.stderr)
                self.assertFalse(os.path.exists(self.path))
        self.save("llama")
        config = os.path.join(self.source, "config.json")
        with open(config) as file:
            values = json.load(file)
        values["rope_parameters"] = {**LLAMA3, "original_max_position_embeddings": 512}
        with open(config, "w") as file:
            json.dump(values, file)
        done = self.export()
        self.assertEqual(done.returncode, 1)
        self.assertIn("config.json: 'rope_scaling' has original_max_position_embeddings 512, low_freq_factor 1 and high_freq_factor 4", done.stderr)
        # Numbers that a type does not hold.
        self.save("llama")
        file = os.path.join(self.source, "model.safetensors")
        tensors = {name: tensor.clone() for name, tensor in load_file(file).items()}  # the file is written again
        tensors["model.layers.0.mlp.down_proj.weight"][0, 0] = 1e5
        save_file(tensors, file, {"format": "pt"})
        done = self.export("f16")
        self.assertEqual(done.returncode, 1)
        self.assertIn("beyond the range of f16", done.stderr)
        self.assertEqual(self.export("bf16").returncode, 0)
        name = "model.layers.0.mlp.down_proj.weight"
        for weights, fits, number in (("q8_0", 8e6, -9e6), ("q4_0", 5e5, 6e5)):  # scales are the largest / 127 and / -8
            tensors[name][0, 0] = fits
            save_file(tensors, file, {"format": "pt"})
            done = self.export(weights)
            self.assertEqual(done.returncode, 0, done.stderr)
            os.remove(self.path)
            tensors[name][0, 0] = number
            save_file(tensors, file, {"format": "pt"})
            done = self.export(weights)
            with self.subTest(weights=weights):
                self.assertEqual(done.returncode, 1)
                self.assertIn("down_proj.weight' has numbers beyond the range of its blocks' scales; bf16 or f32 holds them", done.stderr)
                self.assertFalse(os.path.exists(self.path))
        tensors[name][0, 0] = 1e5
        save_file(tensors, file, {"format": "pt"})
        done = tzoo("export", "--model", self.source, "--format", "huggingface", "--dtype", "float16", "--output", os.path.join(self.folder, "half"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("'model.layers.0.mlp.down_proj.weight' has numbers that float16 does not hold", done.stderr)

    def test_numbers_that_a_file_leaves_to_their_defaults(self):
        model = self.save("gemma3")
        write(self.path, model, extra=extras(model.config))
        back = os.path.join(self.folder, "back")
        done = tzoo("export", "--model", self.path, "--format", "huggingface", "--output", back)
        self.assertEqual(done.returncode, 0, done.stderr)
        ids = torch.tensor([[5, 6, 7, 8]])
        with torch.no_grad():
            opened = transformers.AutoModelForCausalLM.from_pretrained(back).eval()
            torch.testing.assert_close(opened(ids).logits, model(ids).logits, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
