"""The tokenizers of mBART, mBART-50, PEGASUS and DeBERTa from their sentencepiece models alone, and tzoo translate with mBART's languages,
beside transformers: freshly trained models, random weights."""

import json
import pathlib
import tempfile
import unittest

import sentencepiece
import torch
import transformers
from forward_parity import hf
from test_encoder_decoders import last_norm
from test_tokenizers import CORPUS
from test_translation import TEXTS, tzoo

MASK = {"content": "<mask>", "lstrip": True, "normalized": True, "rstrip": False, "single_word": False}
# folder: (class, file, tokenizer_config.json, special_tokens_map.json)
CASES = {
    "mbart": ("MBartTokenizer", {}, {}),
    "mbart-german": ("MBartTokenizer", {"src_lang": "de_DE", "tgt_lang": "ro_RO"}, {"mask_token": MASK}),
    "mbart50": ("MBart50Tokenizer", {}, {}),
    "mbart50-polish": ("MBart50Tokenizer", {"src_lang": "pl_PL"}, {"mask_token": MASK, "additional_special_tokens": ["pl_PL"]}),
    "pegasus": ("PegasusTokenizer", {}, {}),
    "pegasus-short": ("PegasusTokenizer", {"offset": 10, "mask_token": "<mask_2>", "mask_token_sent": "<mask_1>"}, {}),
    "deberta": ("DebertaV2Tokenizer", {}, {}),
    "deberta-words": ("DebertaV2Tokenizer", {"do_lower_case": True, "split_by_punct": True}, {}),
}
PIECES = {"MBartTokenizer": {"model_prefix": "sentencepiece.bpe"}, "MBart50Tokenizer": {"model_prefix": "sentencepiece.bpe"},
          "PegasusTokenizer": {"model_prefix": "spiece", "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
          "DebertaV2Tokenizer": {"model_prefix": "spm", "pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]",
                                 "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}}
MORE = ["", " ", "  two  spaces ", "a <mask> b<mask>", "en_XX at first and de_DE within", "pl_PL", "<mask_1> x <mask_2>y<unk_2>",
        "</s> <pad>", "[MASK] [CLS]x [SEP]", "ﬁ ü \t tab", "\N{IDEOGRAPHIC SPACE}x\N{ZERO WIDTH SPACE}y"]


class ShiftedPiecesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        for name, (kind, config, special) in CASES.items():
            folder = pathlib.Path(cls.root.name) / name
            folder.mkdir()
            pieces = dict(PIECES[kind], model_prefix=str(folder / PIECES[kind]["model_prefix"]))
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(CORPUS[:1500]), vocab_size=700, minloglevel=2, character_coverage=0.99, **pieces)
            (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, **config}))
            if special:
                (folder / "special_tokens_map.json").write_text(json.dumps(special))
        cls.tokenizers = {name: getattr(transformers, CASES[name][0]).from_pretrained(cls.path(name)) for name in CASES}

    @classmethod
    def path(cls, name):
        return str(pathlib.Path(cls.root.name) / name)

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    def test_ids(self):
        for name, tokenizer in self.tokenizers.items():
            with self.subTest(name=name):
                texts = [*TEXTS[:600], *MORE]
                code, out, error = tzoo("tokenizer", "encode", "--model", self.path(name), "--special_tokens", "--json",
                                        stdin="\n".join(texts) + "\n")
                self.assertEqual(code, 0, error)
                for text, line in zip(texts, out.split("\n")[:-1], strict=True):
                    self.assertTrue(json.loads(line) == tokenizer(text)["input_ids"], repr(text))  # quick where it fails

    def test_texts(self):
        for name, tokenizer in self.tokenizers.items():
            rows = [tokenizer(text)["input_ids"] for text in TEXTS[:200] + MORE]
            for words, skips in ((["--keep_special_tokens"], False), ([], True)):
                with self.subTest(name=name, skips=skips):
                    code, out, error = tzoo("tokenizer", "decode", "--model", self.path(name), *words,
                                            stdin="".join(json.dumps(row) + "\n" for row in rows))
                    self.assertEqual(code, 0, error)
                    expected = [tokenizer.decode(row, skip_special_tokens=skips) for row in rows]
                    self.assertEqual(out, "".join(text + "\n" for text in expected))

    @torch.no_grad()
    def test_translation_between_languages(self):
        """The source's language beside the text, the target's as the forced first token."""
        for name, source, target in (("mbart", "fr_XX", "ro_RO"), ("mbart50", "pl_PL", "sl_SI")):
            with self.subTest(name=name):
                torch.manual_seed(3)
                size = len(self.tokenizers[name])
                model = hf.random_model(transformers.MBartForConditionalGeneration, transformers.MBartConfig(
                    vocab_size=size, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                    decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=4096), 4)
                model.get_input_embeddings().weight.mul_(4)  # a tied model is apt to repeat its tokens
                torch.nn.init.normal_(last_norm(model.get_decoder()).weight)
                model.generation_config.update(max_length=None, num_beams=1, forced_eos_token_id=None, decoder_start_token_id=2)
                model.config.decoder_start_token_id, model.config.forced_eos_token_id = 2, None
                model.save_pretrained(self.path(name))
                tokenizer = type(self.tokenizers[name]).from_pretrained(self.path(name), src_lang=source)
                texts = [text.strip() for text in TEXTS[20:40]]
                code, out, error = tzoo("translate", "--model", self.path(name), "--input", "-", "--json", "--max_new_tokens",
                                        "9", "--source_lang", source, "--target_lang", target, stdin="\n".join(texts))
                self.assertEqual(code, 0, error)
                first = tokenizer.convert_tokens_to_ids(target)
                for text, line in zip(texts, out.split("\n")[:-1], strict=True):
                    ids = model.generate(**tokenizer(text, return_tensors="pt"), max_new_tokens=9, do_sample=False,
                                         forced_bos_token_id=first)
                    self.assertEqual(json.loads(line)["ids"], ids[0, 1:].tolist(), text)
                    self.assertEqual(json.loads(line)["ids"][0], first)

    def test_faults(self):
        folder = pathlib.Path(self.path("mbart-german"))
        config = folder / "tokenizer_config.json"
        before = config.read_text()
        for changes, said in (({"src_lang": "xx_XX"}, "src_lang"), ({"src_lang": 3}, "src_lang"),
                              ({"tokenizer_class": "XLMRobertaTokenizer"}, "MBart50Tokenizer")):
            config.write_text(json.dumps({**json.loads(before), **changes}))
            code, _, error = tzoo("tokenizer", "encode", "--model", str(folder), stdin="a\n")
            self.assertEqual(code, 1)
            self.assertIn(said, error)
        config.write_text(before)


if __name__ == "__main__":
    unittest.main()
