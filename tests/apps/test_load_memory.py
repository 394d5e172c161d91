"""The memory of loading: packed weights, a little more, and what the program needs to start."""

import array
import json
import math
import os
import pathlib
import random
import re
import struct
import tempfile
import unittest

from tiny_checkpoint import write_json
from tzoo_runner import CommandTest, run  # also the path to support/
from tier import SHORT

BYTES = {"float32": 4, "bfloat16": 2, "int8": 1, "int4": 4.5 / 8}


def write_bfloat16(directory, config, shapes):
    """A checkpoint of random weights of 16 bits: vectors are 1, numbers of matrices about 0.01."""
    os.makedirs(directory)
    (directory / "config.json").write_text(json.dumps(config))
    chance = random.Random(1)
    pool = array.array("H", (chance.choice((0x3C00, 0xBC00)) | chance.getrandbits(7) for _ in range(1 << 16))).tobytes()
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape in shapes.values():
            size = 2 * math.prod(shape)
            data = struct.pack("<H", 0x3F80) if len(shape) == 1 else pool
            file.write(data * (size // len(data)) + data[: size % len(data)])


def linear(name, rows, columns):
    return {name + ".weight": [rows, columns], name + ".bias": [rows]}


def write_llama(directory, width, layers, vocabulary):
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": width, "num_hidden_layers": layers,
              "num_attention_heads": width // 64, "num_key_value_heads": width // 128, "intermediate_size": 4 * width,
              "vocab_size": vocabulary, "max_position_embeddings": 64, "tie_word_embeddings": True, "hidden_act": "silu"}
    shapes = {"model.embed_tokens.weight": [vocabulary, width], "model.norm.weight": [width]}
    for layer in range(layers):
        for name, shape in {"self_attn.q_proj": [width, width], "self_attn.k_proj": [width // 2, width],
                            "self_attn.v_proj": [width // 2, width], "self_attn.o_proj": [width, width],
                            "mlp.gate_proj": [4 * width, width], "mlp.up_proj": [4 * width, width],
                            "mlp.down_proj": [width, 4 * width], "input_layernorm": [width],
                            "post_attention_layernorm": [width]}.items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    write_bfloat16(directory, config, shapes)


def write_gpt2(directory, width, layers, vocabulary):
    """Its matrices lie transposed in the file."""
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": width, "n_layer": layers,
              "n_head": width // 64, "n_positions": 64, "vocab_size": vocabulary}
    shapes = {"wte.weight": [vocabulary, width], "wpe.weight": [64, width], "ln_f.weight": [width], "ln_f.bias": [width]}
    for layer in range(layers):
        for name, rows, columns in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                    ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)):
            shapes.update({f"h.{layer}.{name}.weight": [rows, columns], f"h.{layer}.{name}.bias": [columns]})
        for name in ("ln_1", "ln_2"):
            shapes.update({f"h.{layer}.{name}.weight": [width], f"h.{layer}.{name}.bias": [width]})
    write_bfloat16(directory, config, {"transformer." + name: shape for name, shape in shapes.items()})


def write_t5(directory, width, layers, vocabulary):
    config = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": width, "d_kv": 64,
              "num_heads": width // 64, "d_ff": 4 * width, "num_layers": layers, "num_decoder_layers": layers,
              "vocab_size": vocabulary, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    shapes = {"shared.weight": [vocabulary, width]}
    for side, parts in (("encoder", ["SelfAttention"]), ("decoder", ["SelfAttention", "EncDecAttention"])):
        shapes[side + ".final_layer_norm.weight"] = [width]
        shapes[side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = [32, width // 64]
        for layer in range(layers):
            block = f"{side}.block.{layer}.layer."
            for i, part in enumerate(parts):
                shapes.update({f"{block}{i}.{part}.{name}.weight": [width, width] for name in "qkvo"})
            shapes[f"{block}{len(parts)}.DenseReluDense.wi.weight"] = [4 * width, width]
            shapes[f"{block}{len(parts)}.DenseReluDense.wo.weight"] = [width, 4 * width]
            shapes.update({f"{block}{i}.layer_norm.weight": [width] for i in range(len(parts) + 1)})
    write_bfloat16(directory, config, shapes)


def write_bert(directory, width, layers, vocabulary):
    config = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": width, "num_hidden_layers": layers,
              "num_attention_heads": width // 64, "intermediate_size": 4 * width, "vocab_size": vocabulary,
              "max_position_embeddings": 64, "type_vocab_size": 2}
    table, norm = "embeddings.{}_embeddings.weight", "{}.LayerNorm"
    shapes = {table.format("word"): [vocabulary, width], table.format("position"): [64, width],
              table.format("token_type"): [2, width], **linear("pooler.dense", width, width)}
    norms = [norm.format("embeddings")]
    for layer in range(layers):
        block = f"encoder.layer.{layer}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes.update(linear(f"{block}attention.{name}", width, width))
        shapes.update(linear(block + "intermediate.dense", 4 * width, width))
        shapes.update(linear(block + "output.dense", width, 4 * width))
        norms += [norm.format(block + "attention.output"), norm.format(block + "output")]
    for name in norms:
        shapes.update({name + ".weight": [width], name + ".bias": [width]})
    write_bfloat16(directory, config, shapes)


class LoadMemory(CommandTest):
    """Above a tiny model's peak: at most the packed weights and 15 %."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tiny_peaks = {}

    def peak(self, work, model, kind):
        lengths = ("--lengths", 8) if work == "encode" else ("--prompt_tokens", 4, "--new_tokens", 2)
        found = json.loads(self.succeed("bench", work, "--model", model, "--weights", kind, "--rounds", 1, "--threads", 2, *lengths))
        return found["peak_memory_mb"], found.get("packed_mb")

    def check(self, work, large, tiny, packed=None, kinds=("int8",) if SHORT else ("float32", "int8")):
        """The size of the last kind's packed weights in MB."""
        for kind in kinds:
            with self.subTest(kind, model=large):
                peak, packed_mb = self.peak(work, large, kind)
                if kind not in self.tiny_peaks:
                    self.tiny_peaks[kind] = self.peak(work, tiny, kind)[0]
                self.assertLess(peak - self.tiny_peaks[kind], 1.15 * (packed(BYTES[kind]) / 1e6 if packed else packed_mb))
        return packed_mb

    def models(self, write, width, layers, vocabulary):
        large, tiny = self.folder / "large", self.folder / "tiny"
        write(large, width, layers, vocabulary)
        write(tiny, 128, 1, 100)
        return large, tiny

    def test_decoder(self):
        large, tiny = self.models(write_llama, 1024, 9, 16000)
        self.check("decode", large, tiny, kinds=("int8",) if SHORT else tuple(BYTES))
        pieces = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}  # GGUF has a name for them
        write_json(large, "tokenizer.json", {"version": "1.0", "added_tokens": [], "pre_tokenizer": pieces, "decoder": pieces,
                                             "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})
        for weights in ("q4_0",) if SHORT else ("q8_0", "q4_0", "f16"):
            file = self.folder / (weights + ".gguf")
            self.succeed("export", "--model", large, "--format", "gguf", "--weights", weights, "--output", file)
            self.check("decode", file, tiny, kinds=("int8",) if SHORT or weights == "q8_0" else ("int4",))
            if weights != "f16":  # the blocks stay as they are
                packed_mb = self.check("decode", file, tiny, kinds=("auto",))
                self.assertLess(packed_mb * 1e6, 1.02 * file.stat().st_size)

    def test_packed_once(self):
        large, tiny = self.models(write_llama, 1024, 9, 16000)
        for kind in ("float32", "int4"):
            packed = self.folder / kind
            self.succeed("export", "--model", large, "--format", "packed", "--weights", kind, "--output", packed)
            self.check("decode", packed, tiny, kinds=(kind,))

    def test_decoder_of_transposed_weights(self):
        self.check("decode", *self.models(write_gpt2, 1024, 10, 16000))

    def test_encoder_decoder(self):
        self.check("t5", *self.models(write_t5, 768, 8, 16000))

    def test_encoder(self):
        width, layers, vocabulary = 1024, 10, 4000
        # The modules around the stack compute in float32: embeddings, and the pooler.
        around = 4 * (vocabulary + 64 + 2 + width) * width
        self.check("encode", *self.models(write_bert, width, layers, vocabulary), lambda size: around + size * layers * 12 * width * width)


class LargeText(CommandTest):
    def test_a_large_text_is_mapped_and_its_ids_are_nowhere_or_on_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            small, large, cache = (pathlib.Path(folder, name) for name in ("small.txt", "large.txt", "cache"))
            line = "In the beginning God created the heaven and the earth.\n"
            small.write_text(1000 * line)
            megabytes = 80
            large.write_text(megabytes * 1_000_000 // len(line) * line)

            def peak(text, held_out):
                words = ("--n_layer", 1, "--n_embd", 16, "--n_head", 2, "--block_size", 16)
                result = run("train", "--dry_run", "--dataset", text, "--val_dataset", held_out, *words, TZOO_DATA_DIR=str(cache))
                self.assertEqual((result.code, "the ids of" in result.err), (0, held_out == large), result)
                return int(re.search(r"whole process, measured +([\d,]+) MiB", result.out)[1].replace(",", ""))

            # Mapped is a byte for each character, and where they are encoded at once two more; as ids in memory they were eight.
            least = peak(small, small)
            self.assertLess(peak(large, small) - least, 1.5 * megabytes)
            self.assertLess(peak(small, large) - least, 3 * megabytes)
            self.assertEqual(os.listdir(cache), [])


if __name__ == "__main__":
    unittest.main()
