"""train, export in each format, and load again: of a chat model, a translator, a CrossEncoder and a Sentence-Transformers
directory, file by file and key by key what stays, and what a message names as lost."""

import json
import pathlib
import tempfile
import unittest

import torch
import transformers
from cases.tokenizer_directories import FAIRSEQ, metaspace_bpe
from safetensors.torch import load_file, save_file
from text_models import byte_level, lines, shaken, sizes, tzoo, wordpiece

CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
SAMPLING = {"do_sample": True, "max_new_tokens": 12, "repetition_penalty": 1.1, "temperature": 0.6, "top_k": 20, "top_p": 0.9}
BEAMS = {"forced_bos_token_id": 4, "length_penalty": 1.1, "max_length": 30, "num_beams": 2}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))


def chat_model(folder):
    tokenizer = byte_level(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
    tokenizer.add_tokens([transformers.AddedToken("<|im_start|>", special=True), transformers.AddedToken("<|im_end|>", special=True),
                          transformers.AddedToken("covid")])
    ends = [2, tokenizer.convert_tokens_to_ids("<|im_end|>")]
    shaken(transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **sizes(tokenizer), max_position_embeddings=64, bos_token_id=0, eos_token_id=ends, pad_token_id=1)), 0.1).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    write(folder / "tokenizer_config.json", settings | {"padding_side": "left", "model_max_length": 60})
    write(folder / "chat_template.jinja", CHATML)
    write(folder / "additional_chat_templates/tool_use.jinja", "{{ tools }}")
    write(folder / "README.md", "---\nlicense: mit\n---\n# A model card\n")
    write(folder / "LICENSE", "MIT\n")
    write(folder / "generation_config.json", {"bos_token_id": 0, "eos_token_id": ends, "pad_token_id": 1, **SAMPLING})


def translator(folder):
    tokenizer = metaspace_bpe(FAIRSEQ)
    model = shaken(transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(
        vocab_size=tokenizer.get_vocab_size(), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=64)), 0.1)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    languages = {"additional_special_tokens": ["eng_Latn", "fra_Latn"]}
    write(folder / "tokenizer_config.json", {"tokenizer_class": "NllbTokenizer", "src_lang": "eng_Latn", "tgt_lang": "fra_Latn", **languages})
    write(folder / "special_tokens_map.json", {"bos_token": "<s>", "eos_token": "</s>", **languages})
    write(folder / "added_tokens.json", {"<new>": tokenizer.get_vocab_size() - 1})
    write(folder / "generation_config.json",
          {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2, **BEAMS})


def encoder(kind, folder, modules, **config):
    tokenizer = wordpiece()
    shaken(kind(transformers.BertConfig(**sizes(tokenizer), max_position_embeddings=64, **config))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write(folder / "modules.json", [{"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
                                    for i, name in enumerate(modules)])


def cross_encoder(folder):
    encoder(transformers.BertForSequenceClassification, folder, ["Transformer"], id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1})
    write(folder / "config_sentence_transformers.json", {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.activation.Sigmoid"})


def sentence_model(folder):
    encoder(transformers.BertModel, folder, ["Transformer", "Pooling", "Dense"])
    write(folder / "1_Pooling/config.json", {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True})
    write(folder / "2_Dense/config.json", {"in_features": 16, "out_features": 8, "bias": True,
                                           "activation_function": "torch.nn.modules.activation.Tanh"})
    save_file({"linear.weight": torch.randn(8, 16), "linear.bias": torch.randn(8)}, folder / "2_Dense/model.safetensors")
    write(folder / "sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": False})
    write(folder / "config_sentence_transformers.json", {"prompts": {"query": "god "}, "default_prompt_name": None, "similarity_fn_name": "cosine"})


class RoundTripTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        torch.manual_seed(5)

    def run_tzoo(self, *words, stdin=None):
        done = tzoo(*map(str, words), stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def made(self, make, task, table, *words):
        """The model before and after two updates."""
        before = self.root / "before"
        before.mkdir()
        make(before)
        write(self.root / "data.jsonl" if task != "lm" else self.root / "data.txt", table)
        self.run_tzoo("train", "--init_from", before, "--out_dir", self.root / "run", "--task", task, "--dataset", *self.root.glob("data.*"),
                      *"--max_iters 2 --eval_interval 2 --eval_iters 1 --batch_size 2 --block_size 16 --threads 1".split(), *words)
        return before, self.root / "run/final"

    def export(self, model, kind, *words):
        """Where it is, and what the message calls lost."""
        output = self.root / kind
        return output, json.loads(self.run_tzoo("export", "--model", model, "--format", kind, "--output", output, "--json", *words))["not_carried"]

    def compare(self, before, after, changed, weights="model.safetensors"):
        """Each file of `before` is in `after`, byte for byte except for the keys of config.json in `changed` and the weights."""
        files = {str(path.relative_to(before)) for path in before.rglob("*") if path.is_file()} - {"model.safetensors"}
        found = {str(path.relative_to(after)) for path in after.rglob("*") if path.is_file()} - {weights}
        self.assertEqual(files, found)
        for name in files - {"config.json"}:
            self.assertEqual((before / name).read_bytes(), (after / name).read_bytes(), name)
        old, new = (json.loads((folder / "config.json").read_text()) for folder in (before, after))
        self.assertEqual({key: new.get(key) for key in old | new if old.get(key) != new.get(key)}, changed)

    def check(self, final, lost):
        """Directories hold all; `lost` is what the message of a file of TorchScript names."""
        again, names = self.export(final, "huggingface")
        self.assertEqual(names, [])
        self.compare(final, again, {})
        before, after = (load_file(folder / "model.safetensors") for folder in (final, again))
        self.assertEqual(sorted(before), sorted(after))
        for name in before:
            self.assertTrue(torch.equal(before[name], after[name]), name)
        packed, names = self.export(final, "packed", "--weights", "float32")
        self.assertEqual(names, [])
        self.compare(final, packed, {}, "packed.safetensors")
        script, names = self.export(final, "torchscript")
        self.assertEqual(names, lost)
        torch.jit.load(script)
        return again, packed

    def test_chat_model(self):
        before, final = self.made(chat_model, "lm", "In the beginning God created the heaven and the earth.\n" * 40)
        self.compare(before, final, {"rope_theta": 10000.0})  # transformers 4's name beside rope_parameters
        sampling = ", ".join(SAMPLING)
        again, packed = self.check(final, ["LICENSE", "README.md", "additional_chat_templates", "chat_template.jinja", f"generation_config.json ({sampling})",
                                           "tokenizer.json", "tokenizer_config.json"])
        # Somebody's own text is not replaced.
        write(again / "README.md", "mine")
        refused = tzoo("export", "--model", str(final), "--format", "huggingface", "--output", str(again))
        self.assertIn("holds README.md, which would be lost", refused.stderr)
        gguf, names = self.export(final, "gguf", "--weights", "f32")
        self.assertEqual(names, ["LICENSE", "README.md", f"generation_config.json ({sampling})", "tokenizer_config.json (padding_side, model_max_length)"])
        back = self.root / "back"
        self.run_tzoo("export", "--model", gguf, "--format", "huggingface", "--output", back)
        config = json.loads((final / "config.json").read_text())
        self.assertEqual(json.loads((back / "config.json").read_text())["eos_token_id"], config["eos_token_id"])
        messages = json.dumps([{"role": "user", "content": "covid in the<|im_end|> and"}])
        answers = [self.run_tzoo("chat", "--model", model, "--messages", "-", "--json", "--temperature", 0, "--max_new_tokens", 12,
                                 "--repetition_penalty", 1, stdin=messages) for model in (final, again, packed, gguf, back)]
        ids = [json.loads(answer)["ids"] for answer in answers]
        self.assertEqual(ids, ids[:1] * 5)
        prompts = [json.loads(self.run_tzoo("chat", "--model", model, "--messages", "-", "--print_prompt", "--json", stdin=messages))
                   for model in (final, again, packed, gguf, back)]
        self.assertEqual(prompts, prompts[:1] * 5)
        theirs = transformers.AutoTokenizer.from_pretrained(again)
        self.assertEqual(prompts[0]["ids"], theirs.apply_chat_template(json.loads(messages), add_generation_prompt=True, return_dict=False))

    def test_translator(self):
        before, final = self.made(translator, "seq2seq", '{"source": "the earth", "target": "God"}\n' * 40, "--target_lang", "fra_Latn")
        self.compare(before, final, {})
        again, packed = self.check(final, ["added_tokens.json", f"generation_config.json ({', '.join(BEAMS)})", "special_tokens_map.json",
                                           "tokenizer.json", "tokenizer_config.json"])
        texts = [self.run_tzoo("translate", "--model", model, "--text", "the earth and God", "--json") for model in (final, again, packed)]
        self.assertEqual(texts, texts[:1] * 3)
        done = tzoo("export", "--model", str(final), "--format", "gguf", "--output", str(self.root / "gguf"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "GGUF has no name for this tokenizer: .*; expected byte-level BPE, or sentencepiece's BPE")

    def test_encoder_decoders_made_from_nothing_answer_in_transformers(self):
        write(self.root / "pairs.jsonl", '{"source": "the earth", "target": "God"}\n' * 40)
        for family in "t5", "bart", "marian":
            self.run_tzoo("train", "--model_type", family, "--task", "seq2seq", "--dataset", self.root / "pairs.jsonl", "--out_dir", self.root / family,
                          *"--n_layer 1 --n_head 2 --n_embd 16 --max_iters 60 --eval_interval 60 --eval_iters 1 --batch_size 8 --block_size 16".split(),
                          *"--learning_rate 1e-2 --dropout 0 --threads 1".split())
            final = self.root / family / "final"
            model, tokenizer = transformers.AutoModelForSeq2SeqLM.from_pretrained(final), transformers.AutoTokenizer.from_pretrained(final)
            ids = model.generate(**tokenizer("the earth", return_tensors="pt"), max_new_tokens=12, do_sample=False)
            self.assertEqual(tokenizer.decode(ids[0], skip_special_tokens=True), "God")

    def test_classifiers_made_from_nothing_cut_long_texts_in_transformers(self):
        write(self.root / "films.tsv", "text\tlabel\nthe film was fine\tgood\nthe film was dull\tbad\n" * 20)
        self.run_tzoo("train", "--model_type", "bert", "--task", "classification", "--dataset", self.root / "films.tsv", "--out_dir", self.root / "run",
                      *"--n_layer 1 --n_head 2 --n_embd 16 --max_iters 2 --eval_interval 2 --eval_iters 1 --batch_size 8 --block_size 16".split(),
                      *"--threads 1".split())
        final, long = self.root / "run" / "final", "the film was dull " * 30
        self.assertEqual(transformers.AutoTokenizer.from_pretrained(final).model_max_length, 16)
        theirs = transformers.pipeline("text-classification", model=str(final), truncation=True, device="cpu")(long)[0]
        ours = json.loads(self.run_tzoo("classify", "--model", final, "--text", long, "--json"))
        self.assertIn(theirs["label"], str(ours))
        self.assertIn(f"{theirs['score']:.4f}"[:5], str(ours))

    def test_cross_encoder(self):
        before, final = self.made(cross_encoder, "classification",
                                  '{"text": "the earth", "text_pair": "god", "label": "no"}\n{"text": "and", "text_pair": "god", "label": "yes"}\n' * 20)
        self.compare(before, final, {})
        again, packed = self.check(final, ["config.json (id2label)", "config_sentence_transformers.json", "modules.json", "tokenizer.json",
                                           "tokenizer_config.json"])
        found = [lines("classify", "--model", str(model), "--text", "the earth", "--text_pair", "god", "--json") for model in (final, again, packed)]
        for one in found:
            self.assertEqual(sorted(one[0]["scores"]), ["no", "yes"])
            self.assertAlmostEqual(one[0]["scores"]["yes"], found[0][0]["scores"]["yes"], places=5)

    def test_sentence_transformers(self):
        before, final = self.made(sentence_model, "classification",
                                  '{"text": "the earth", "label": "a"}\n{"text": "god", "label": "b"}\n' * 20)
        # Another head than the directory had, whose embeddings are the trained ones.
        self.compare(before, final, {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "a", "1": "b"},
                                     "label2id": {"a": 0, "b": 1}})
        again, packed = self.check(final, ["1_Pooling", "2_Dense", "config.json (id2label)", "config_sentence_transformers.json", "modules.json", "sentence_bert_config.json",
                                           "tokenizer.json", "tokenizer_config.json"])
        vectors = [lines("embed", "--model", str(model), "--text", "the earth", "--prompt_name", "query")[0]["embedding"]
                   for model in (final, again, packed)]
        for vector in vectors:
            self.assertEqual(len(vector), 8)
            torch.testing.assert_close(torch.tensor(vector), torch.tensor(vectors[0]), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
