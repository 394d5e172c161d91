"""tzoo tokenizer encode and decode beside tokenizers, transformers and sentencepiece: thousands of lines of every trouble
that text can make, for each kind of tokenizer, freshly trained."""

import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import unittest

import sentencepiece
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.tokenization_utils_base import generate_merges

from forward_parity import SHORT

NUM_LINES = 1500 if SHORT else 5000
LETTERS = [(0x61, 0x7A, 8), (0x61, 0x7A, 5), (0x41, 0x5A, 4), (0xE0, 0xFF, 5), (0x430, 0x44F, 7), (0x3B1, 0x3C9, 6),
           (0x627, 0x64A, 5), (0x905, 0x939, 4), (0x4E00, 0x4F00, 3), (0xAC00, 0xAD00, 3), (0x30, 0x39, 4)]
TROUBLE = [
    "👩‍👩‍👧‍👦", "👍🏽", "🇨🇭", "🏴‍☠️", "❤️", "e\u0301", "a\u0323\u0301\u0302", "q\u0307\u0323", "\u0301", "שָׁלוֹם", "مرحبا",
    "\u202eabc\u202c", "ภาษาไทย", "น้ำใจ", "İstanbul", "ısırık", "İI", "ﬁ", "½", "①", "㍿", "ｆｕｌｌ", "\0", "\x01", "\x7f", "\x85",
    "\u200b", "\u00ad", "\ufeff", "\ufffd", "\U0010ffff", "漢字kana", "ひらがな", "カタカナ", "한국어", "\u1112\u1161\u11ab", "ǆ", "ŉ", "ẞ",
    "ß", "𝔘𝔫𝔦", "Ω", "Å", "K", "ſ", "नमस्ते", "क्षत्रिय", "▁", "▁▁a", "\u3000", "\u2003", "\u00a0", "\t", "\r", "   ", "don't", "I'LL",
    "we've", "...", "(a)[b]", "''", "``", "3.14", "1,000", "_x_", "'", "\u2028", "[CLS]", "[MASK]", "[SEP]x", "<s>", "</s>", "<pad>",
    "<unk>", "<extra_id_0>", "<extra_id_42>", "<|endoftext|>", "<mask>", " <left>", "<right> ", "\u0130\u0307", "ﬀi", "x\u2060y",
]


def make_words(chance):
    return ["".join(chr(chance.randint(low, high)) for _ in range(chance.randint(1, size)))
            for low, high, size in LETTERS for _ in range(150)]


def make_corpus(chance, words):
    return [" ".join(chance.choices(words, k=chance.randint(3, 14))) + chance.choice([".", "!", "?", ",", "。", ""])
            for _ in range(4000)]


def make_lines(chance, words):
    lines = ["", " ", "a" * 10_000, "the" * 3500, "é" * 5000, "中" * 4000, ("ab " * 4000)[:10_000], "\t \r"]
    while len(lines) < NUM_LINES:
        parts = []
        for _ in range(chance.randint(1, 10)):
            low, high = chance.choice([(0x20, 0x7E), (0xA0, 0x2FF), (0x300, 0x36F), (0x370, 0x7FF), (0x900, 0xE7F),
                                       (0x1E00, 0x2BFF), (0x3000, 0x30FF), (0xF900, 0xFFEF), (0x1D400, 0x1F6FF)])
            some = "".join(chr(chance.randint(low, high)) for _ in range(chance.randint(1, 4)))
            parts.append(chance.choice([chance.choice(words), chance.choice(words), chance.choice(TROUBLE), some]))
        lines.append(chance.choice([" ", " ", "", "  "]).join(parts).replace("\n", " "))
    return lines


CHANCE = random.Random(20)
WORDS = make_words(CHANCE)
CORPUS = make_corpus(CHANCE, WORDS)
LINES = make_lines(CHANCE, WORDS)
BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tzoo(action, directory, lines, *words):
    """What it prints, a line for each."""
    done = subprocess.run([os.environ["TZOO"], "tokenizer", action, "--model", str(directory), *words],
                          input="".join(line + "\n" for line in lines).encode(), capture_output=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return done.stdout.decode().split("\n")[:-1]


def record_of(tokenizer, line):
    """As tzoo tokenizer encode --json --offsets prints it: offsets in characters, the mask of added special tokens."""
    encoding = tokenizer.encode(line)
    # encoding.tokens has the text itself for unknown pieces and spaces that an added token takes.
    return {"ids": encoding.ids, "tokens": [tokenizer.id_to_token(id) for id in encoding.ids],
            "offsets": [list(pair) for pair in encoding.offsets], "word_ids": encoding.word_ids,
            "special_tokens_mask": encoding.special_tokens_mask}


class TokenizerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, encode, decode, *, decodes_all=True):
        """encode(line, with special tokens) gives ids; decode(ids, skipping special tokens) gives text."""
        expected = [encode(line, True) for line in LINES]
        arrays = tzoo("encode", self.folder, LINES, "--json")
        self.assertEqual(len(arrays), len(LINES))
        for line, array, ids in zip(LINES, arrays, expected):
            self.assertEqual(json.loads(array), ids, ascii(line))
        plain = tzoo("encode", self.folder, LINES, "--json", "--no_special_tokens")
        for line, array in zip(LINES, plain):
            self.assertEqual(json.loads(array), encode(line, False), ascii(line))
        # A text may hold an end of line of its own: each is printed with one more.
        texts = "\n".join(tzoo("decode", self.folder, arrays))
        self.assertEqual(texts, "\n".join(decode(ids, True) for ids in expected))
        if decodes_all:
            texts = "\n".join(tzoo("decode", self.folder, arrays, "--keep_special_tokens"))
            self.assertEqual(texts, "\n".join(decode(ids, False) for ids in expected))

    def compare_encodings(self, tokenizer, lines=LINES):
        records = tzoo("encode", self.folder, lines, "--json", "--offsets")
        self.assertEqual(len(records), len(lines))
        for line, record in zip(lines, records):
            self.assertEqual(json.loads(record), record_of(tokenizer, line), ascii(line))

    def compare_tokenizers(self, tokenizer):
        tokenizer.save(str(self.folder / "tokenizer.json"))
        self.compare_encodings(tokenizer)
        self.compare(lambda line, special: tokenizer.encode(line, add_special_tokens=special).ids,
                     lambda ids, skip: tokenizer.decode(ids, skip_special_tokens=skip))

    def compare_transformers(self, tokenizer):
        self.compare_encodings(tokenizer.backend_tokenizer)
        self.compare(lambda line, special: tokenizer(line, add_special_tokens=special).input_ids,
                     lambda ids, skip: tokenizer.decode(ids, skip_special_tokens=skip))


def word_piece(**cleaning):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**cleaning)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=3000, special_tokens=BERT_TOKENS,
                                                                    show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


class WordPieceTest(TokenizerTest):
    def test_uncased(self):
        self.compare_tokenizers(word_piece(lowercase=True))

    def test_cased_with_added_tokens(self):
        tokenizer = word_piece(lowercase=False)
        tokenizer.add_tokens([AddedToken(" <left>", lstrip=True), AddedToken("<right>", rstrip=True, normalized=False),
                              AddedToken(WORDS[3], single_word=True)])
        self.compare_tokenizers(tokenizer)

    def test_vocab_txt(self):
        vocabulary = sorted(word_piece(lowercase=True).get_vocab().items(), key=lambda item: item[1])
        (self.folder / "vocab.txt").write_text("".join(token + "\n" for token, _ in vocabulary), encoding="utf-8")
        (self.folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
        self.compare_transformers(transformers.AutoTokenizer.from_pretrained(self.folder))

    def test_added_tokens_of_older_files(self):
        (self.folder / "vocab.txt").write_text("\n".join([*BERT_TOKENS, "a", "b"]) + "\n")
        (self.folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
        (self.folder / "added_tokens.json").write_text('{"covid": 7}')
        for text in "a covid b", "a COVID b":  # which is found in the text in lower case, as no special token is
            self.assertEqual(tzoo("encode", self.folder, [text], "--json"), ["[2,5,7,6,3]"])
            self.assertEqual(transformers.AutoTokenizer.from_pretrained(self.folder)(text).input_ids, [2, 5, 7, 6, 3])
        (self.folder / "added_tokens.json").write_text('{"covid": "7"}')
        with self.assertRaisesRegex(AssertionError, "added_tokens.json.*covid.*expected an id"):
            tzoo("encode", self.folder, ["a"])


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_bpe(pre_tokenizer, special):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=special,
        show_progress=False))
    return tokenizer


class ByteBpeTest(TokenizerTest):
    def test_gpt2(self):
        self.compare_tokenizers(byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"]))

    def test_llama3(self):
        tokenizer = byte_bpe(pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), ["<|begin_of_text|>"])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 0)])
        self.compare_tokenizers(tokenizer)

    def test_roberta_files(self):
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        model = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), special).model
        model.save(str(self.folder))
        (self.folder / "tokenizer_config.json").write_text('{"tokenizer_class": "RobertaTokenizer"}')
        self.compare_transformers(transformers.AutoTokenizer.from_pretrained(self.folder))

    def test_gpt2_files(self):
        byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"]).model.save(str(self.folder))
        (self.folder / "config.json").write_text('{"model_type": "gpt2"}')
        self.compare_transformers(transformers.AutoTokenizer.from_pretrained(self.folder))


def train_pieces(path, **options):
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=file, minloglevel=2,
                                                 num_threads=2, **options)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def pieces_of(processor):
    return [(processor.id_to_piece(id), processor.get_score(id)) for id in range(processor.get_piece_size())]


T5 = dict(vocab_size=2000, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
LLAMA = dict(vocab_size=2000, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
             remove_extra_whitespaces=False, character_coverage=0.99)


class SentencePieceTest(TokenizerTest):
    def test_t5_files(self):
        processor = train_pieces(self.folder / "spiece.model", normalization_rule_name="identity", **T5)
        (self.folder / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
        sentinels = [f"<extra_id_{i}>" for i in range(100)]
        pieces = pieces_of(processor) + [(sentinel, 0.0) for sentinel in reversed(sentinels)]
        self.compare_transformers(transformers.T5Tokenizer(vocab=pieces, additional_special_tokens=sentinels))

    def test_llama_files(self):
        processor = train_pieces(self.folder / "tokenizer.model", **LLAMA)
        (self.folder / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer", "add_bos_token": true}')
        vocabulary = {piece: id for id, (piece, _) in enumerate(pieces_of(processor))}
        self.compare_transformers(transformers.LlamaTokenizer(vocab=vocabulary, merges=generate_merges(vocabulary),
                                                              add_bos_token=True))

    def test_llama_class_beside_a_tokenizer_json(self):
        """transformers replaces the normalizer, pre-tokenizer and decoder of the file by those of the class."""
        processor = train_pieces(self.folder / "tokenizer.model", **LLAMA)
        (self.folder / "tokenizer.model").unlink()
        vocabulary = {piece: id for id, (piece, _) in enumerate(pieces_of(processor))}
        tokenizer = Tokenizer(models.BPE(vocabulary, generate_merges(vocabulary), unk_token="<unk>", fuse_unk=True,
                                         byte_fallback=True))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", vocabulary["<s>"])])
        tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
        tokenizer.save(str(self.folder / "tokenizer.json"))
        for settings in ({"tokenizer_class": "LlamaTokenizer"}, {"tokenizer_class": "LlamaTokenizerFast", "legacy": True},
                         {"tokenizer_class": "LlamaTokenizer", "add_prefix_space": False},
                         {"tokenizer_class": "PreTrainedTokenizerFast"}):
            with self.subTest(settings):
                (self.folder / "tokenizer_config.json").write_text(json.dumps(settings))
                self.compare_transformers(transformers.AutoTokenizer.from_pretrained(self.folder))

    def test_models_by_themselves(self):
        for name, options in (("spiece.model", T5), ("tokenizer.model", LLAMA)):
            with self.subTest(name):
                processor = train_pieces(self.folder / name, **options)
                self.compare(lambda line, _: processor.encode(line), lambda ids, _: processor.decode(ids),
                             decodes_all=False)
                (self.folder / name).unlink()


class UnigramTest(TokenizerTest):
    def test_normalized(self):
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        tokenizer.train_from_iterator(CORPUS, trainers.UnigramTrainer(
            vocab_size=1500, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
        self.compare_tokenizers(tokenizer)


# Every class of an expression, by itself and inside of brackets, where the engine differs for \\w.
PROPERTIES = ["L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe", "Pi",
              "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "C", "Cc", "Cf", "Cn", "Co", "Alphabetic",
              "Uppercase", "Lowercase", "Word", "Punct", "Space", "Han", "Hiragana", "Katakana", "Hangul", "Latin", "Greek",
              "Cyrillic", "Arabic", "Hebrew", "Devanagari", "Thai", "Any", "ASCII"]
POSIX = ["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit", "word",
         "ascii"]
ESCAPES = list("wWdDsShH")
CLASSES = ([f"\\p{{{name}}}" for name in PROPERTIES] + [f"[[:{name}:]]" for name in POSIX] + [f"\\{e}" for e in ESCAPES]
           + [f"[\\{e}]" for e in ESCAPES] + [r"\P{L}", r"\p{^L}", r"[^\p{L}\s]", r"[\p{L}&&[^\p{Han}]]", r"[[:^alpha:]]", ".",
              r"\N", r"\O", r"(?i:[sdmtk])", r"[^\w]"])
# Without the end of a line, surrogates and the inside of large blocks of one class, whose ends are there.
BLOCKS = [(0x0, 0x3500), (0x4DB0, 0x4E10), (0x9FF0, 0xAC10), (0xD790, 0xD800), (0xE000, 0xE010), (0xF8F0, 0x17010),
          (0x187F0, 0x20010), (0x2A6D0, 0x2A7A0), (0x2B730, 0x2B830), (0x2CE90, 0x2CEC0), (0x2EBD0, 0x2FA30), (0x2FFF0, 0x30010),
          (0x31340, 0x31360), (0x323A0, 0x323C0), (0xE0000, 0xE0200), (0xEFFF0, 0xF0010), (0xFFFF0, 0x100010), (0x10FFF0, 0x110000)]
ALL_CHARACTERS = [chr(c) for first, end in BLOCKS for c in range(first, end) if c != 10 and (c < 0x800 or c % 5 == 0 or not SHORT)]


class ExpressionTest(TokenizerTest):
    """Split patterns outside of the published ones, as the engine of `tokenizers` (Oniguruma) matches them."""

    def split_by(self, expression, behavior):
        tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(expression), behavior)
        tokenizer.save(str(self.folder / "tokenizer.json"))
        return tokenizer

    def test_every_class_over_all_characters(self):
        lines = ["".join(ALL_CHARACTERS[i:i + 65536]) for i in range(0, len(ALL_CHARACTERS), 65536)]
        for expression in CLASSES:
            with self.subTest(expression):
                self.compare_encodings(self.split_by(expression, "contiguous"), lines)

    def test_what_has_no_equal_is_named(self):
        for expression, word in ((r"(a)\1", r"\1"), (r"(?<n>a)\k<n>", "group"), (r"\R", r"\R"), (r"\X", r"\X"), (r"\p{Emoji}", "Emoji"),
                                 (r"(?i:ss)", "'ss'"), (r"(?i:\p{Lu})", "without regard to case"), (r"a{2}?", "count"),
                                 (r"(?i:é)", "ASCII"), (r"a(?i)b|c", "group")):
            with self.subTest(expression):
                self.split_by(expression, "isolated")
                with self.assertRaisesRegex(AssertionError, "^error: .*pre_tokenizer.pattern.Regex is not a regular "
                                            "expression that is supported: .*" + re.escape(word)):
                    tzoo("encode", self.folder, ["a"])


class PartsTest(TokenizerTest):
    """Parts beside one another as no published tokenizer has them."""

    def save(self, model, **parts):
        tokenizer = Tokenizer(model)
        for name, part in parts.items():
            setattr(tokenizer, name, part)
        tokenizer.save(str(self.folder / "tokenizer.json"))
        return tokenizer

    def test_every_character_through_each_normalizer(self):
        bytes_ = models.BPE({letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, [])
        for normalizer in (normalizers.Lowercase(), normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(),
                           normalizers.StripAccents(), normalizers.Nmt(), normalizers.BertNormalizer()):
            with self.subTest(type(normalizer).__name__):
                tokenizer = self.save(bytes_, normalizer=normalizer, pre_tokenizer=pre_tokenizers.ByteLevel(False, use_regex=False))
                found = map(json.loads, tzoo("encode", self.folder, ALL_CHARACTERS, "--json"))
                self.assertEqual([f"U+{ord(c):04X}" for c, ids in zip(ALL_CHARACTERS, found, strict=True)
                                  if ids != tokenizer.encode(c).ids], [])

    def test_offsets_of_spaces_beside_what_the_normalizer_removes(self):
        lines = ["a \u0347\u034d b", "\u062b\u064a \u0347\u034d \u063d", "\u0301 a", "a\u0323 \u0301", "\u0958 \u0301\u0301 a"]
        letters = {letter: i for i, letter in enumerate([" ", "a", "b", "\u062b", "\u064a", "\u063d"])}
        for normalizer in normalizers.StripAccents(), normalizers.NFD(), normalizers.NFKD():
            for processor in processors.ByteLevel(), processors.ByteLevel(add_prefix_space=False):
                for model in (models.BPE(letters, []), models.WordLevel({"?": 0}, unk_token="?"),
                              models.Unigram([(letter, -1.0) for letter in letters], 0)):
                    self.compare_encodings(self.save(model, normalizer=normalizer, post_processor=processor), lines)

    def test_offsets_after_dropped_bytes(self):
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        model = models.BPE({letter: i for i, letter in enumerate(alphabet[::2])}, [])
        for prefix in False, True:
            self.compare_encodings(self.save(model, pre_tokenizer=pre_tokenizers.ByteLevel(prefix)), LINES[10:1000])

    def test_empty_matches(self):
        for expression in r"\p{Nd}*", r"[a-c]?+\b|\S", "x*", r"\b|e":
            with self.subTest(expression):
                replace = normalizers.Replace(Regex(expression), "_")
                model = models.WordPiece({letter: i for i, letter in enumerate(["?", *"_abcxe 1", *("##" + c for c in "_abcxe 1")])},
                                         unk_token="?")
                tokenizer = self.save(model, normalizer=replace, decoder=decoders.Replace(Regex(expression), "_"))
                lines = ["", "abc1 x", "1", "a", "[a]x", "xx  e1e", " ", "\t a1"]
                self.compare_encodings(tokenizer, lines)
                stripped = normalizers.Sequence([normalizers.Strip(left=True, right=False), replace])
                self.compare_encodings(self.save(model, normalizer=stripped), lines)
                self.save(model, decoder=tokenizer.decoder)
                rows = [[2, 3, 4], [9, 9, 8], [6], [0, 12, 7]]
                self.assertEqual(tzoo("decode", self.folder, map(str, rows)), [tokenizer.decode(row) for row in rows])

    def test_the_token_of_a_normalized_added_token(self):
        tokenizer = self.save(models.WordLevel({"?": 0, "b": 1}, unk_token="?"), normalizer=normalizers.NFKC())
        tokenizer.add_tokens([AddedToken("\u2460", normalized=True)])
        tokenizer.save(str(self.folder / "tokenizer.json"))
        self.compare_encodings(Tokenizer.from_file(str(self.folder / "tokenizer.json")), ["b1b", "\u2460", "b"])

    def test_two_trimmings_are_refused(self):
        both = processors.Sequence([processors.ByteLevel(), processors.ByteLevel()])
        self.save(models.WordLevel({"?": 0}, unk_token="?"), post_processor=both)
        with self.assertRaisesRegex(AssertionError, "processors.1..trim_offsets"):
            tzoo("encode", self.folder, ["a"])


if __name__ == "__main__":
    unittest.main()
