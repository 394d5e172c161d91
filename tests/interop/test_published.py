"""Each preset of `tzoo models` is a published checkpoint: its files, with small sizes and small vocabularies, open, and give the
ids, numbers and continuations that transformers gives over the same directory."""

import itertools
import json
import os
import pathlib
import re
import tempfile
import unittest

import published
import published_vocabularies
import torch
import transformers
from forward_parity import SHORT, hf, tzoo
from published_vocabularies import LINE, first_and_last
from safetensors.torch import load_file, save_file
from text_models import tzoo as tzoo_of_text
from tier import long

OWN = {"shakespeare-char", "gpt3", "llama-tiny", "mixtral-tiny", "nanochat-d20", "nanochat-d32", "t5-tiny",
       "tutorial-embeddings", "tutorial-ambiguous", "tutorial-disagreement"}  # documented, or nobody has published a checkpoint of them
# Files of a tokenizer that a directory may lack, those of the classes without tokenizer.json together.
SLOW = ("merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "vocab.json", "vocab.txt")
ABSENT = (("tokenizer.json",), SLOW, ("tokenizer_config.json",), ("special_tokens_map.json",))
TOLERANCE = 1e-5  # of the largest value
NEW_TOKENS = 5
# transformers 5 has no class for them and reads a lone tokenizer.model without the space before a text; the zoo reads it as
# sentencepiece and transformers 4 do.
WITHOUT_CLASS = ("mistral", "mixtral", "phi3")
# A preset that says another length than its file, and says so.
SHORTER = {"phi-4-mini"}

# What sizes become; heads keep their groups.
WIDTHS = {"hidden_size": 32, "d_model": 32, "n_embd": 32, "n_embed": 32, "dim": 32, "word_embed_proj_dim": 32, "d_kv": 8, "head_dim": 16,
          "intermediate_size": 24, "d_ff": 24, "ffn_dim": 24, "n_inner": 24, "hidden_dim": 24, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
          "moe_intermediate_size": 12, "shared_expert_intermediate_size": 20, "rotary_dim": 4, "sliding_window": 5, "local_attention": 6,
          "n_positions": 128, "n_ctx": 128, "query_pre_attn_scalar": 24, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2}
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers")
LEARNED = ("opt", "bert", "distilbert", "roberta", "xlm-roberta", "albert", "electra", "mpnet", "bart", "mbart")  # positions, a row each
PERIODS = {"gemma3_text": 7, "smollm3": 5, "modernbert": 4}  # layers that have each kind of layer


def is_token_id(key):
    return key.endswith(("token_id", "token_ids")) or key == "bad_words_ids"


def mapped(value, ids):
    """Ids of the published vocabulary as those of the small one."""
    if isinstance(value, list):
        return [mapped(each, ids) for each in value]
    return ids[value] if isinstance(value, int) else value


def shrunk(key, value, config):
    layers = PERIODS.get(config["model_type"], 2)
    if key in ("layer_types", "no_rope_layers"):
        return value[:layers]
    if key == "rope_scaling" and value and "long_factor" in value:  # half of the rotated numbers of a head
        return value | {name: value[name][:6] for name in ("long_factor", "short_factor")}
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if key in HEADS:
        return 4
    if key in ("num_key_value_heads", "num_kv_heads"):
        return 4 if value == next(config[name] for name in HEADS if name in config) else min(value, 2)
    if key in LAYERS:  # an encoder that is deeper than its decoder stays so
        is_deeper = key in ("encoder_layers", "num_hidden_layers") and config.get("encoder_layers", 0) > config.get("decoder_layers", 0)
        return layers + is_deeper
    if key == "embedding_size":
        return 32 if value == config["hidden_size"] else 20
    if key == "max_position_embeddings" and config["model_type"] in LEARNED:
        return 128 + value % 512
    return WIDTHS.get(key, value)


# Tensors by the names of the hub's files, which are older than what save_pretrained writes.


def renamed(tensors, *pairs):
    for old, new in pairs:
        tensors = {re.sub(old, new, name): tensor for name, tensor in tensors.items()}
    return tensors


def with_buffers(tensors, layer, buffers):
    """Buffers of older versions beside the weights of each layer."""
    found = {match.group(0) for match in (re.match(layer, name) for name in tensors) if match}
    return tensors | {prefix + name: buffer.clone() for prefix in found for name, buffer in buffers.items()}


TRIANGLE = {"bias": torch.ones(128, 128, dtype=torch.bool).tril()[None, None], "masked_bias": torch.tensor(-1e9)}
NAMES = {
    "": lambda tensors: tensors,
    "gpt2": lambda tensors: with_buffers(renamed(tensors, ("^transformer.", "")), r"h\.\d+\.attn\.", {"bias": TRIANGLE["bias"].float()}),
    "gptj": lambda tensors: with_buffers(tensors, r"transformer\.h\.\d+\.attn\.", TRIANGLE),
    "neox": lambda tensors: with_buffers(tensors, r"gpt_neox\.layers\.\d+\.attention\.", TRIANGLE | {"rotary_emb.inv_freq": torch.ones(1)}),
    "rotary": lambda tensors: with_buffers(tensors, r"model\.layers\.\d+\.self_attn\.", {"rotary_emb.inv_freq": torch.ones(4)}),
    "bloom": lambda tensors: renamed(tensors, ("^transformer.", "")),
    "gamma": lambda tensors: renamed(tensors, ("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")) | {
        "cls.seq_relationship.weight": torch.zeros(2, 32), "cls.seq_relationship.bias": torch.zeros(2)},
    "roberta": lambda tensors: tensors | {"roberta.embeddings.position_ids": torch.arange(130)[None]},
    "xlmr": lambda tensors: tensors | {"roberta.embeddings.position_ids": torch.arange(130)[None],
                                       "lm_head.decoder.weight": tensors["roberta.embeddings.word_embeddings.weight"].clone(),
                                       "lm_head.decoder.bias": tensors["lm_head.bias"].clone()},
    "bart": lambda tensors: tensors | {f"{side}.embed_tokens.weight": tensors["shared.weight"].clone() for side in ("encoder", "decoder")},
    "deberta": lambda tensors: {"deberta." + name: tensor for name, tensor in tensors.items()} | {
        "lm_predictions.lm_head.bias": torch.zeros(3), "mask_predictions.dense.weight": torch.zeros(32, 32)},
    "t5": lambda tensors: tensors | {
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.zeros(32, 4),
        **{f"{side}.embed_tokens.weight": tensors["shared.weight"].clone() for side in ("encoder", "decoder")}},
}


class Directory:
    """The files of a checkpoint in a folder: the tokenizer's and the configurations; save_weights() adds random ones."""

    def __init__(self, folder, checkpoint):
        self.folder, self.checkpoint = pathlib.Path(folder), checkpoint
        getattr(published_vocabularies, checkpoint.vocabulary)(self.folder, checkpoint)
        self.write_settings()
        self.write("config.json", {key: checkpoint.config[key] for key in ("model_type", "tokenizer_class") if key in checkpoint.config})
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder)
        self.ids = {id: self.tokenizer.convert_tokens_to_ids(content) for content, id in checkpoint.special.items()}
        self.config = self.small_config()
        self.write("config.json", self.config)
        if checkpoint.generation is not None:
            self.write("generation_config.json", {
                key: mapped(value, self.ids) if is_token_id(key) else value for key, value in checkpoint.generation.items()})

    def write(self, name, value):
        (self.folder / name).write_text(json.dumps(value))

    def write_settings(self):
        settings = dict(self.checkpoint.settings)
        if settings.get("added_tokens_decoder") is ...:
            file = json.loads((self.folder / "tokenizer.json").read_text())
            settings["added_tokens_decoder"] = {
                str(each["id"]): {key: value for key, value in each.items() if key != "id"} for each in file["added_tokens"]}
        self.write("tokenizer_config.json", settings)
        if self.checkpoint.roles:
            self.write("special_tokens_map.json", self.checkpoint.roles)

    def small_config(self):
        full = self.checkpoint.config
        config = {key: mapped(value, self.ids) if is_token_id(key) else shrunk(key, value, full) for key, value in full.items()}
        if "partial_rotary_factor" in config and config["model_type"] == "phi3":
            config["hidden_size"] = 64
        # Rows beyond the tokenizer's ids, or too few of them, stay so.
        rows = len(self.tokenizer) + max(-1, min(7, full["vocab_size"] - self.checkpoint.tokens))
        return config | {key: rows for key in ("vocab_size", "decoder_vocab_size") if key in config}

    def save_weights(self):
        """Random ones. Returns what transformers reads from them by the published config.json."""
        config = transformers.AutoConfig.from_pretrained(self.folder)
        name = config.architectures[0] if config.architectures else type(config).__name__.replace("Config", "Model")
        cls = getattr(transformers, name.replace("MPTFor", "MptFor"))
        model = hf.random_model(cls, config, 1)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            tensors = load_file(os.path.join(folder, "model.safetensors"))
        save_file(NAMES[self.checkpoint.names](tensors), self.folder / "model.safetensors", {"format": "pt"})
        return cls.from_pretrained(self.folder, dtype=torch.float32, attn_implementation="eager").eval()


def by_family(checkpoint):
    return checkpoint.config["model_type"], checkpoint.vocabulary


def by_tokenizer(checkpoint):
    return checkpoint.settings.get("tokenizer_class"), checkpoint.vocabulary


def chosen(checkpoints, kind_of=by_family, is_short=SHORT):
    """In the short tier, the first of each kind: of each family and vocabulary, or of each class and vocabulary."""
    seen = set()
    for name, checkpoint in checkpoints.items():
        kind = kind_of(checkpoint)
        if not is_short or kind not in seen:
            yield name, checkpoint
        seen.add(kind)


def sizes_of(path):
    done = tzoo("models", str(path))
    return done, done.stdout.split("\n\n")[1] if done.returncode == 0 else ""


class PublishedTest(unittest.TestCase):
    def test_each_preset_is_in_the_table(self):
        presets = {preset["name"] for preset in json.loads(tzoo("models", "--json").stdout)}
        self.assertEqual(presets - OWN, set(published.ALL))

    def test_sizes_of_presets(self):
        """A preset has the sizes of its file, of which every key says something to the zoo."""
        for name, checkpoint in chosen(published.ALL):
            with self.subTest(preset=name), tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "config.json").write_text(json.dumps(checkpoint.config))
                done, sizes = sizes_of(folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                with self.subTest("notes"):
                    self.assertEqual(done.stderr.replace(folder, "DIR"), "")
                if name not in SHORTER:
                    self.assertEqual(sizes, sizes_of(name)[1])

    def test_directories(self):
        seen = set()
        for name, checkpoint in chosen(published.ALL, by_tokenizer):
            with self.subTest(preset=name), tempfile.TemporaryDirectory() as folder:
                directory = Directory(folder, checkpoint)
                files = json.dumps([directory.config, checkpoint.generation, checkpoint.settings, checkpoint.roles], default=str)
                if files not in seen:
                    seen.add(files)
                    self.check(directory)

    def check(self, directory):
        folder, model = str(directory.folder), directory.save_weights()
        self.check_ids(folder, directory.tokenizer, list(directory.checkpoint.special))
        ids = directory.tokenizer(LINE)["input_ids"]
        self.check_numbers(folder, model, torch.tensor([ids]))
        if model.config.model_type in (*hf.CAUSAL, *hf.ENCODER_DECODERS):
            self.check_continuation(folder, model, directory.tokenizer)

    @long
    def test_directories_without_a_file(self):
        """Ids are those of transformers, where it reads such a directory, or a file is refused by name."""
        for (name, checkpoint), absent in itertools.product(chosen(published.ALL, is_short=True), ABSENT):
            with tempfile.TemporaryDirectory() as folder:
                directory = Directory(folder, checkpoint)
                if absent == ("tokenizer.json",) and checkpoint.config["model_type"] in WITHOUT_CLASS:
                    continue
                gone = [directory.folder / file for file in absent if (directory.folder / file).exists()]
                for path in gone:
                    path.unlink()
                try:
                    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
                except (OSError, TypeError, ValueError):  # it reads no such directory
                    continue
                if gone:
                    with self.subTest(preset=name, absent=[path.name for path in gone]):
                        self.check_ids(folder, tokenizer, list(checkpoint.special), may_refuse=True)

    def check_ids(self, folder, tokenizer, special, may_refuse=False):
        texts = [LINE, f"{LINE} {special[-1]} a{special[0]}b {special[-1]}."]
        done = tzoo_of_text("tokenizer", "encode", "--json", "--model", folder, stdin="".join(text + "\n" for text in texts))
        if may_refuse and done.returncode == 1:
            self.assertRegex(done.stderr, "tokenizer.json|" + "|".join(SLOW))
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        for text, ids in zip(texts, done.stdout.splitlines(), strict=True):
            with self.subTest(text=text):
                self.assertEqual(json.loads(ids), tokenizer(text)["input_ids"])

    @torch.no_grad()
    def check_numbers(self, folder, model, ids):
        path = os.path.join(folder, "out.safetensors")
        inputs = {"input_ids": ids, "decoder_input_ids": ids[:, :4]} if model.config.is_encoder_decoder else {"input_ids": ids}
        words = [word for name, value in inputs.items() for word in ("--" + name, json.dumps(value.tolist()))]
        done = tzoo("forward", "--model", folder, *words, "--output", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected, actual = model(**inputs)[0], load_file(path)
        actual = actual["logits" if "logits" in actual else "last_hidden_state"]
        self.assertLess(((actual - expected).abs().max() / expected.abs().max()).item(), TOLERANCE)

    @torch.no_grad()
    def check_continuation(self, folder, model, tokenizer):
        if not model.can_generate():  # the file names the bare model
            model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        inputs = tokenizer(LINE, return_tensors="pt", return_token_type_ids=False)
        expected = model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False)[0].tolist()
        expected = expected[1:] if model.config.is_encoder_decoder else expected[inputs["input_ids"].size(1):]
        done = tzoo("generate", "--model", folder, "--prompt", LINE, "--max_new_tokens", str(NEW_TOKENS), "--temperature", "0", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["ids"][0], expected)


if __name__ == "__main__":
    unittest.main()
