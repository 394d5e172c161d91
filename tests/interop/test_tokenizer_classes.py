"""Which class opens a tokenizer.json: by the model type of config.json and the class that a file names, the ids of tzoo are those of
AutoTokenizer. The files' pipelines are nobody's, so each class that rebuilds one gives other ids."""

import itertools
import json
import os
import pathlib
import tempfile
import unittest

import tokenizers
import transformers
from forward_parity import SHORT
from text_models import LETTERS, WORDS, tzoo
from tokenizers import models, normalizers, pre_tokenizers, processors
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

SPECIAL = ["<pad>", "[UNK]", "</s>", "<unk>", "<s>", "[CLS]", "[SEP]", "[MASK]", "<mask>", "<|endoftext|>", "<|padding|>", "<bos>", "<eos>",
           "[PAD]", "<mask_1>", "<mask_2>", "en_XX", "eng_Latn"]
LINES = ["And  the EARTH's 1234 café 中, ``in'' \t\n\n and x</s> a <mask> b", "  e\u0301\u00a0 ｆｕｌｌ don't<s>", "`` and the\r\n12345!?"]
# The classes that run a type of model. None: no file names one. Of an unknown name transformers keeps the file's pipeline.
NOBODY = [None, "PreTrainedTokenizerFast", "TokenizersBackend", "NoSuchTokenizer"]
CLASSES = {
    "BPE": ["GPT2Tokenizer", "RobertaTokenizerFast", "BartTokenizer", "GPTNeoXTokenizerFast", "Qwen2Tokenizer", "LlamaTokenizerFast",
            "GemmaTokenizer", "NllbTokenizer"],
    "Unigram": ["T5TokenizerFast", "MBartTokenizer", "MBart50Tokenizer", "PegasusTokenizer", "AlbertTokenizer", "XLMRobertaTokenizer",
                "DebertaV2Tokenizer"],
    "WordPiece": ["BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizer", "MPNetTokenizer"]}
# Of no class, of one that keeps the file's pipeline, of one that is used whatever is named, and of others.
TYPES = ["", "llama", "mistral", "qwen2", "gpt2", "bert", "t5"]
if not SHORT:
    TYPES += ["falcon", "bloom", "smollm3", "phi3", "olmo2", "granite", "stablelm", "gpt_bigcode", "mixtral", "umt5",
              "modernbert", "starcoder2", "opt", "gptj", "qwen3", "qwen3_moe", "gemma", "gemma3_text", "gpt_neox", "mpt", "distilbert", "electra", "nomic_bert", "roberta",
              "bart", "xlm-roberta", "mpnet", "albert", "deberta-v2", "mt5", "mbart", "pegasus", "marian", "m2m_100"]


def numbered(pieces):
    return {piece: id for id, piece in enumerate(dict.fromkeys([*SPECIAL, *pieces]))}


def merges_of(words, mark):
    return [pair for word in words for pair in [(mark, word[0])] + [(mark + word[:i], word[i]) for i in range(1, len(word))]]


def bpe(alphabet, mark):
    merges = [("1", "2"), ("12", "3"), *merges_of(WORDS, mark)]
    return tokenizers.Tokenizer(models.BPE(numbered([*alphabet, mark, *(a + b for a, b in merges)]), merges, unk_token="<unk>"))


def vocabularies():
    """(type of the model, tokenizer): each with a pipeline of its own."""
    letters = [*LETTERS, *(letter.upper() for letter in LETTERS), *"0123456789'`?\u2581"]
    made = bpe(sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġ")
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=True)])
    yield "BPE", made
    made = bpe([*letters, *(f"<0x{i:02X}>" for i in range(256))], "\u2581")
    made.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    yield "BPE", made
    pieces = [*letters, "12", "123", *WORDS, *("\u2581" + word for word in WORDS)]
    made = tokenizers.Tokenizer(models.Unigram([(piece, 0.0 if piece in SPECIAL else -float(id)) for piece, id in numbered(pieces).items()], 3))
    made.normalizer, made.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Digits(True)
    yield "Unigram", made
    pieces = [*letters, *("##" + letter for letter in letters), "12", *WORDS, "##in", "##and"]
    made = tokenizers.Tokenizer(models.WordPiece(numbered(pieces), unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.Whitespace()])
    yield "WordPiece", made


def runs(name):
    """The type of model of a class, None if the zoo rebuilds nothing for it."""
    cut = (name or "").removesuffix("Fast")
    return next((kind for kind, names in CLASSES.items() if cut in (each.removesuffix("Fast") for each in names)), None)


class TokenizerClassesTest(unittest.TestCase):
    def test_class_by_model_type_and_name(self):
        for kind, tokenizer in vocabularies():
            tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
            tokenizer.add_special_tokens(["<s>", "</s>"])
            for model_type, name in itertools.product(TYPES, NOBODY + CLASSES[kind]):
                registered = TOKENIZER_MAPPING_NAMES.get(model_type)
                # Beside a vocabulary of another type of model, which its class cannot run, a file's pipeline is kept.
                if (name is None or model_type == "qwen2") and registered != "TokenizersBackend" and registered and runs(registered) != kind:
                    continue
                for file in ("tokenizer_config.json", "config.json")[:1 + (name is not None and model_type == "qwen2")]:
                    with self.subTest(kind=kind, model_type=model_type, name=name, file=file), tempfile.TemporaryDirectory() as folder:
                        self.check(folder, tokenizer, model_type, {file: {"tokenizer_class": name} if name else {}})

    def check(self, folder, tokenizer, model_type, said):
        tokenizer.save(os.path.join(folder, "tokenizer.json"))
        for file, settings in {"config.json": {}, "tokenizer_config.json": {}, **said}.items():
            content = settings | ({"model_type": model_type} if file == "config.json" and model_type else {})
            pathlib.Path(folder, file).write_text(json.dumps(content))
        try:
            reference = transformers.AutoTokenizer.from_pretrained(folder)
        except AttributeError:  # a class that it does not know, in config.json alone
            return
        done = tzoo("tokenizer", "encode", "--json", "--model", folder, stdin="".join(json.dumps(line, ensure_ascii=False) + "\n" for line in LINES))
        self.assertEqual(done.returncode, 0, done.stderr)
        for line, ids in zip(LINES, done.stdout.splitlines(), strict=True):
            self.assertEqual(json.loads(ids), reference(json.dumps(line, ensure_ascii=False))["input_ids"], line)


if __name__ == "__main__":
    unittest.main()
