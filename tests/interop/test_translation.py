"""tzoo translate and the tokenizers of Marian and M2M-100 beside transformers: freshly trained sentencepiece models,
random weights."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import sentencepiece
import torch
import transformers
from cases.tokenizer_directories import metaspace_bpe
from forward_parity import hf
from test_encoder_decoders import last_norm
from test_tokenizers import CORPUS, LINES

# The classes cut special tokens out of what the library never sees; "\0" ends a line of the library's own files.
TEXTS = [line for line in LINES[:1500] if "\0" not in line and line.strip()]
CODES = [">>fra<<", ">>deu<<"]


def tzoo(*words, stdin=""):
    done = subprocess.run([os.environ["TZOO"], *words], input=stdin.encode(), capture_output=True, timeout=600)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def train(path, model_type, lines):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(path), vocab_size=700, model_type=model_type, minloglevel=2,
        character_coverage=0.99, pad_id=-1)
    return sentencepiece.SentencePieceProcessor(model_file=str(path) + ".model")


class TranslationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        cls.marian, cls.m2m = root / "marian", root / "m2m"
        cls.marian.mkdir()
        cls.m2m.mkdir()
        source = train(root / "source", "unigram", CORPUS[:1500])
        target = train(root / "target", "unigram", CORPUS[1500:3000])
        bpe = train(root / "bpe", "bpe", CORPUS[:1500])
        pieces = sorted({processor.id_to_piece(i) for processor in (source, target) for i in range(3, 700)})
        vocabulary = ["</s>", "<unk>", *pieces, *CODES, "<pad>"]
        (cls.marian / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(vocabulary)}))
        (root / "source.model").rename(cls.marian / "source.spm")
        (root / "target.model").rename(cls.marian / "target.spm")
        names = ["<s>", "<pad>", "</s>", "<unk>", *(bpe.id_to_piece(i) for i in range(3, 700))]
        (cls.m2m / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(names)}))
        (root / "bpe.model").rename(cls.m2m / "sentencepiece.bpe.model")
        for folder, name, tokens in ((cls.marian, "Marian", len(vocabulary)), (cls.m2m, "M2M100", len(names) + 108)):
            torch.manual_seed(3)
            cls.save_model(folder, name, tokens)
        cls.named = root / "named"  # whose files name the languages, as the published do
        shutil.copytree(cls.m2m, cls.named)
        plain = transformers.M2M100Tokenizer.from_pretrained(cls.m2m, src_lang="en")
        languages = list(plain.lang_code_to_token.values())
        (cls.named / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": languages}))
        cls.nllb = root / "nllb"  # no file names its languages: the class adds them after the vocabulary
        cls.nllb.mkdir()
        metaspace_bpe(names[:4]).save(str(cls.nllb / "tokenizer.json"))
        (cls.nllb / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "NllbTokenizer"}))
        nllb = transformers.AutoTokenizer.from_pretrained(cls.nllb)
        cls.save_model(cls.nllb, "M2M100", len(nllb), 8)
        cls.tokenizers = {cls.marian: transformers.MarianTokenizer.from_pretrained(cls.marian),
                          cls.m2m: plain, cls.nllb: nllb,
                          cls.named: transformers.M2M100Tokenizer.from_pretrained(cls.named, src_lang="en")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def save_model(folder, name, tokens, seed=4):
        sizes = dict(vocab_size=tokens, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                     decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=4096)
        if name == "Marian":
            ids = dict(pad_token_id=tokens - 1, decoder_start_token_id=tokens - 1, eos_token_id=0, forced_eos_token_id=None)
            model = hf.random_model(transformers.MarianMTModel, transformers.MarianConfig(**sizes, **ids), seed)
        else:
            model = hf.random_model(transformers.M2M100ForConditionalGeneration, transformers.M2M100Config(**sizes), seed)
        with torch.no_grad():
            model.get_input_embeddings().weight.mul_(4)  # a tied model is apt to repeat its tokens
            torch.nn.init.normal_(last_norm(model.get_decoder()).weight)
        model.generation_config.max_length = None
        model.generation_config.num_beams = 1
        model.save_pretrained(folder)

    def test_ids(self):
        for folder, tokenizer in self.tokenizers.items():
            texts = [*TEXTS, *(f"{code} {text}" for code in (*CODES, ">>xyz<<", "__fr__", "zho_Hans", "ace_Latn") for text in TEXTS[30:60])]
            with self.subTest(folder=folder.name):
                code, out, error = tzoo("tokenizer", "encode", "--model", str(folder), "--special_tokens", "--json",
                                        stdin="\n".join(texts) + "\n")
                self.assertEqual(code, 0, error)
                for text, line in zip(texts, out.split("\n")[:-1], strict=True):
                    self.assertEqual(json.loads(line), tokenizer(text)["input_ids"], repr(text))

    def test_targets_of_a_training(self):
        """By Marian's model of the language that is written; where the tokens around a text name the source's, there is none."""
        words = ["--task", "seq2seq", "--dataset", str(self.marian / "pairs.tsv"), "--out_dir", str(self.marian / "run"), "--overwrite",
                 "--learning_rate", "1e-9", "--min_lr", "1e-9", "--max_iters", "1", "--eval_interval", "1", "--log_interval", "1", "--batch_size", "2",
                 "--block_size", "512", "--dtype", "float32", "--device", "cpu"]
        pairs = list(zip(CORPUS[100:102], CORPUS[2000:2002]))
        (self.marian / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
        words += ["--val_dataset", str(self.marian / "pairs.tsv")]
        code, _, error = tzoo("train", "--init_from", str(self.marian), *words)
        self.assertEqual(code, 0, error)
        ours = json.loads((self.marian / "run/metrics.jsonl").read_text().splitlines()[0])["val_loss"]

        def theirs(folder, tokenizer, **cut):
            model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
            total = count = 0
            for source, target in pairs:
                batch = tokenizer(source, text_target=target, return_tensors="pt")
                if cut:
                    batch["labels"] = tokenizer(text_target=target, return_tensors="pt", **cut)["input_ids"]
                self.assertNotEqual(batch["labels"].tolist(), tokenizer(target, return_tensors="pt")["input_ids"].tolist())
                with torch.no_grad():
                    total += model(**batch).loss.item() * batch["labels"].numel()
                count += batch["labels"].numel()
            return total / count

        self.assertAlmostEqual(ours / theirs(self.marian, self.tokenizers[self.marian]), 1, delta=1e-5)
        # A target that is cut keeps its end token.
        code, out, error = tzoo("evaluate", "--model", str(self.marian), "--dataset", str(self.marian / "pairs.tsv"), "--target_size", "4", "--json")
        self.assertEqual(code, 0, error)
        cut = theirs(self.marian, self.tokenizers[self.marian], truncation=True, max_length=4)
        self.assertAlmostEqual(json.loads(out)["loss"] / cut, 1, delta=1e-5)
        for folder, own, source, target in ((self.m2m, "__en__", "de", "en"), (self.nllb, "eng_Latn", "fra_Latn", "deu_Latn")):
            code, _, error = tzoo("train", "--init_from", str(folder), *words)
            self.assertEqual(code, 1)
            self.assertIn(f"puts {own} beside texts, which is the language of sources", error)
            code, _, error = tzoo("train", "--init_from", str(folder), *words, "--source_lang", source, "--target_lang", target)
            self.assertEqual(code, 0, error)
            ours = json.loads((self.marian / "run/metrics.jsonl").read_text().splitlines()[0])["val_loss"]
            kind = transformers.M2M100Tokenizer if folder == self.m2m else transformers.AutoTokenizer
            tokenizer = kind.from_pretrained(folder, src_lang=source, tgt_lang=target)
            self.assertAlmostEqual(ours / theirs(folder, tokenizer), 1, delta=1e-5)

    def test_texts(self):
        for folder, tokenizer in self.tokenizers.items():
            rows = [tokenizer(text)["input_ids"] for text in TEXTS[:300]]
            for words, skips in ((["--keep_special_tokens"], False), ([], True)):
                with self.subTest(folder=folder.name, skips=skips):
                    code, out, error = tzoo("tokenizer", "decode", "--model", str(folder), *words,
                                            stdin="".join(json.dumps(row) + "\n" for row in rows))
                    self.assertEqual(code, 0, error)
                    expected = [tokenizer.decode(row, skip_special_tokens=skips) for row in rows]
                    self.assertEqual(out, "".join(text + "\n" for text in expected))

    def translate(self, folder, tokenizer, texts, words, **options):
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        code, out, error = tzoo("translate", "--model", str(folder), "--input", "-", "--json", "--max_new_tokens", "9",
                                *words, stdin="\n".join(texts))
        self.assertEqual(code, 0, error)
        seen = set()
        for text, line in zip(texts, out.split("\n")[:-1], strict=True):
            ids = model.generate(**tokenizer(text, return_tensors="pt"), max_new_tokens=9, do_sample=False, **options)
            self.assertEqual(json.loads(line)["ids"], ids[0, 1:].tolist(), text)
            seen.update(json.loads(line)["ids"])
        self.assertGreater(len(seen), 3)

    def test_languages(self):
        tokenizer = transformers.M2M100Tokenizer.from_pretrained(self.m2m, src_lang="de")
        self.translate(self.m2m, tokenizer, TEXTS[20:50], ["--source_lang", "de", "--target_lang", "fr"],
                       forced_bos_token_id=tokenizer.get_lang_id("fr"))

    def test_bleu_is_of_translations(self):
        """Of targets that the model writes in that language; in another it writes others."""
        words = ["--source_lang", "de", "--target_lang", "fr"]
        texts = [text.strip() for text in TEXTS[20:26]]
        code, out, error = tzoo("translate", "--model", str(self.m2m), "--input", "-", *words, "--max_new_tokens", "24", stdin="\n".join(texts))
        self.assertEqual(code, 0, error)
        rows = self.m2m / "rows.tsv"
        rows.write_text("".join(f"{a}\t{b.removeprefix('__fr__')}\n" for a, b in zip(texts, out.split("\n"))))
        code, out, error = tzoo("evaluate", "--model", str(self.m2m), "--dataset", str(rows), *words, "--target_size", "24", "--json")
        self.assertEqual(code, 0, error)
        self.assertGreater(json.loads(out)["bleu"], 0.5)  # words at the cut differ

    def test_languages_that_a_class_adds(self):
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.nllb, src_lang="deu_Latn")
        self.translate(self.nllb, tokenizer, TEXTS[20:50], ["--source_lang", "deu_Latn", "--target_lang", "fra_Latn"],
                       forced_bos_token_id=tokenizer.convert_tokens_to_ids("fra_Latn"))
        # A piece of words is no language, whatever its letters.
        piece = next(piece for piece, id in tokenizer.get_vocab().items() if piece.isalpha() and len(piece) == 1)
        code, _, error = tzoo("translate", "--model", str(self.nllb), "--text", "a", "--target_lang", piece)
        self.assertEqual((code, f"no token of a language '{piece}'" in error), (2, True), error)

    def test_codes(self):
        texts = [text.strip() for text in TEXTS[20:50]]
        tokenizer = self.tokenizers[self.marian]
        self.translate(self.marian, lambda text, **more: tokenizer(CODES[0] + text, **more), texts, ["--target_lang", "fra"])

    def test_faults(self):
        for folder, words, needed in ((self.m2m, ["--source_lang", "xx"], "--source_lang"),
                                      (self.m2m, ["--target_lang", "xx"], "--target_lang"),
                                      (self.marian, ["--source_lang", ">>fra<<"], "--source_lang")):
            code, _, error = tzoo("translate", "--model", str(folder), "--text", "a", *words)
            self.assertEqual(code, 2)
            self.assertIn(needed, error)


if __name__ == "__main__":
    unittest.main()
