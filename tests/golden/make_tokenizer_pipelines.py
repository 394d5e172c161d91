#!/usr/bin/env python3
"""Makes tokenizer_pipelines/: small tokenizers of Hugging Face's kinds, each a folder as one finds them, with what
`tokenizers` and `transformers` make of some 200 lines: ids, byte offsets, words, decoded texts; and of pairs.

    python tests/golden/make_tokenizer_pipelines.py      (needs sentencepiece, tokenizers and transformers)
"""

import io
import json
import pathlib
import random
import shutil

import sentencepiece
import transformers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)
from transformers.tokenization_utils_base import generate_merges

OUT = pathlib.Path(__file__).resolve().parent / "tokenizer_pipelines"

CORPUS = [
    "In the beginning the cat sat on the mat, and the mat was flat; don't you think we've seen 1984 of them?",
    "The dog said to the cat: who let the other dogs out on the mat? I'll say it wasn't me. It's 12:30.",
    "Eins, zwei, drei: das Café öffnet früh; naïve Gäste kämen für 3,50 € und äßen Brötchen.",
    "The quick brown fox jumps over the lazy dog, again and again and again, over and over.",
    "She sells sea shells on the sea shore; the shells she sells are sea shells, for sure, she sells them.",
    "съешь ещё этих мягких французских булок, да выпей чаю",
    "世界 你好 世界 こんにちは 세계 안녕",
    "for (int i = 0; i < n; ++i) { sum += x[i] * y[i]; }  // a\tloop\n",
] * 3

FIXED = [
    "", " ", "\n", "  \n \t  ", "the cat", " leading and trailing  ", "tabs\tand\nnew lines\r\nhere\r\n",
    "👩‍👩‍👧‍👦 👍🏽 🇨🇭 🏴‍☠️ ❤️ 😀😀", "e\u0301 é E\u0301 \ufeff \ufffd \U0010FFFF", "שָׁלוֹם مرحبا \u202eabc\u202c",
    "ภาษาไทย น้ำใจ", "İstanbul ısırık Iğdır İI", "ﬁne oﬀer ½ ① ㍿ ｆｕｌｌ ㏂", "a\0b\x01c\x7fd\x85e\u200bf\u00adg",
    "中文字符 mixed 漢字kana ひらがな カタカナ 한국어", "[CLS] the [SEP] [MASK] [UNK]x[PAD]",
    "<s>the</s> <unk><pad> <extra_id_0> <|endoftext|> <mask>", "x" * 120, "the" * 60, "naïve café Ångström ÀÉÎÕÜ",
    "don't can't we've I'll he'd 'tis I'M THEY'RE", "1234567890 3.14 1,000,000 ٣٤ ५", "a  b   c    d     e",
    "\u00a0nbsp\u2003em\u3000ideo", "ǆ ŉ ẞ ß ﬆ ỗ ộ", "a\u0323\u0301\u0302b q\u0307\u0323 \u0301start",
    "\u1112\u1161\u11ab 각 각", "...!!??;;--__ (a)[b]{c}<d>", "''quote'' ``back`` \"dq\"",
    "<left>a  <left>b <right>  c<right>", "whole word wholewordy whole words whole word", "The Dog the dog THE DOG",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝕏 🅰", "Ω Å K ſ", "नमस्ते क्षत्रिय", "▁a ▁ ▁▁b", "\u1734\u1885x\u2060y", "\r\r\na",
    "for (i=0;i<n;++i)", "a\u0300\u0315 \u05d0\u05b8\u05c1 \u0f71\u0f72\u0f74", "the\u200bcat\u200dthe",
]


def make_lines():
    """The fixed lines, and random ones of the same troubles: seeded, so that they stay."""
    rng = random.Random(2024)
    ranges = [(0x20, 0x7E)] * 6 + [(0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0x97F),
                                   (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F),
                                   (0x3000, 0x30FF), (0x4E00, 0x5000), (0xAC00, 0xAD00), (0xFB00, 0xFDFF),
                                   (0xFF00, 0xFFEF), (0x1F300, 0x1F6FF), (0x1D400, 0x1D7FF), (0x0, 0x1F)]
    words = " ".join(CORPUS[:8]).split()
    special = ["[CLS]", "[MASK]", "<s>", "</s>", "<extra_id_1>", "<|endoftext|>", "<left>", "<right>", "Café", "Dog"]
    lines = list(FIXED)
    while len(lines) < 200:
        parts = []
        for _ in range(rng.randint(1, 6)):
            low, high = rng.choice(ranges)
            parts.append(rng.choice([rng.choice(words), rng.choice(special), rng.choice(words),
                                     "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 4)))]))
        lines.append(rng.choice([" ", " ", "", "  "]).join(parts))
    return lines


LINES = make_lines()


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def byte_offsets(text, offsets):
    ends = [0]
    for character in text:
        ends.append(ends[-1] + len(character.encode()))
    return [[ends[begin], ends[end]] for begin, end in offsets]


def expect(name, encode, decode, offsets=True):
    """expected.jsonl of a folder: one example a line."""
    examples = []
    for line in LINES:
        encoding = encode(line)
        example = {"text": line, "ids": encoding.ids, "decoded": decode(encoding.ids, True),
                   "decoded_all": decode(encoding.ids, False),
                   "words": [-1 if word is None else word for word in encoding.word_ids]}
        if offsets:
            example["offsets"] = byte_offsets(line, encoding.offsets)
        examples.append(example)
    rng = random.Random(3)
    for max_length in [None, None, 4, 5, 9, 12, 16, 20]:
        first, second = rng.choice(LINES), rng.choice(LINES)
        encoding = encode(first, second, max_length)
        examples.append({"text": first, "second": second, "max_length": max_length, "ids": encoding.ids,
                         "type_ids": encoding.type_ids})
    lines = [json.dumps(example, ensure_ascii=False, separators=(",", ":")) for example in examples]
    (OUT / name / "expected.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def folder(name):
    path = OUT / name
    path.mkdir(parents=True)
    return path


def of_tokenizers(tokenizer):
    def encode(first, second=None, max_length=None):
        if max_length is None:
            tokenizer.no_truncation()
        else:
            tokenizer.enable_truncation(max_length)
        encoding = tokenizer.encode(first, second)
        tokenizer.no_truncation()
        return encoding
    return encode, lambda ids, skip: tokenizer.decode(ids, skip_special_tokens=skip)


def save(name, tokenizer, offsets=True):
    tokenizer.save(str(folder(name) / "tokenizer.json"))
    expect(name, *of_tokenizers(tokenizer), offsets=offsets)


def save_classic(name, tokenizer, files, config):
    """A folder of the older files, and the tokenizer that transformers makes of them."""
    path = folder(name)
    for file, content in files.items():
        (path / file).write_bytes(content)
    write_json(path / "tokenizer_config.json", config)
    encode, _ = of_tokenizers(tokenizer.backend_tokenizer)
    expect(name, encode, lambda ids, skip: tokenizer.decode(ids, skip_special_tokens=skip))


# --- tokenizer.json --------------------------------------------------------------------------------------------------

BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def word_piece(**cleaning):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(**cleaning)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=BERT_TOKENS,
                                                                    show_progress=False))
    return tokenizer


def make_word_pieces():
    tokenizer = word_piece(lowercase=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    save("wordpiece_uncased", tokenizer)

    tokenizer = word_piece(lowercase=False, strip_accents=True, handle_chinese_chars=False, clean_text=False)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_tokens([AddedToken("Dog", normalized=True), AddedToken("whole word", single_word=True),
                          AddedToken("<left>", lstrip=True, normalized=False), AddedToken("Café", normalized=True),
                          AddedToken("<right>", rstrip=True, normalized=False)])
    save("wordpiece_added_tokens", tokenizer)


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_bpe(pre_tokenizer, special, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=special,
        show_progress=False))
    return tokenizer


def make_byte_bpes():
    tokenizer = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    save("byte_bpe_gpt2", tokenizer)

    tokenizer = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True,
                                                            add_prefix_space=True)
    # Without offsets: after an added token the library counts the prefix space as one of the text's.
    save("byte_bpe_roberta", tokenizer, offsets=False)

    tokenizer = byte_bpe(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                         ["<|begin_of_text|>"], ignore_merges=True)
    begin = ("<|begin_of_text|>", 0)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                      special_tokens=[begin])])
    save("byte_bpe_llama3", tokenizer)

    tokenizer = byte_bpe(pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Split(Regex("[aeiou]+"), "merged_with_previous"),
        pre_tokenizers.Split("th", "merged_with_next"), pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.Split(Regex("s."), "removed", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False)]), [])
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex("[xy]+"), "ux")])
    save("byte_bpe_splits", tokenizer)


def charsmap_of(model):
    """The normalization table of a sentencepiece model: field 2 of its field 3."""
    def fields(message):
        at = 0

        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = message[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    return value
        while at < len(message):
            tag = varint()
            size = {0: 0, 1: 8, 5: 4}.get(tag & 7)
            size = varint() if size is None else size
            value = varint() if tag & 7 == 0 else message[at:at + size]
            at += size
            yield tag >> 3, value
    normalizer = dict(fields(model))[3]
    return dict(fields(normalizer)).get(2, b"")


def sentencepiece_model(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, minloglevel=2,
                                             num_threads=1, **options)
    return model.getvalue()


# A small table: the one of nmt_nfkc would be 300 KB. The ligature fi, e + acute, two white spaces, and one that goes.
RULES = "FB01\t66 69\n65 301\tE9\n9\t20\nA\t20\nD\t20\n200B\t\n2460\t31 2E\n"
T5_OPTIONS = dict(vocab_size=145, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98)


def t5_model():
    rules = OUT / "rules.tsv"
    rules.write_text(RULES)
    model = sentencepiece_model(normalization_rule_tsv=str(rules), **T5_OPTIONS)
    rules.unlink()
    return model.replace(str(rules).encode(), b"x" * len(str(rules)))


def unigram(normalizer, pre_tokenizer, decoder, special, byte_fallback=False):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=150 + len(special), special_tokens=special,
                                                                  unk_token="<unk>", show_progress=False))
    state = json.loads(tokenizer.to_str())
    state["model"]["byte_fallback"] = byte_fallback
    state["added_tokens"] = [token for token in state["added_tokens"] if not token["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.decoder = decoder
    return tokenizer


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def make_unigrams():
    special = ["<pad>", "</s>", "<unk>"]
    tokenizer = unigram(normalizers.Precompiled(charsmap_of(t5_model())),
                        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
                        decoders.Metaspace(), special)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                             special_tokens=[("</s>", 1)])
    save("unigram_t5", tokenizer)

    tokenizer = unigram(
        normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "),
                              normalizers.Strip(left=True, right=True), normalizers.Replace("``", '"')]),
        pre_tokenizers.Metaspace(prepend_scheme="first"), decoders.Metaspace(prepend_scheme="first"), special)
    save("unigram_normalized", tokenizer)

    tokenizer = unigram(normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]),
                        pre_tokenizers.Metaspace(split=False),
                        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)]), special + BYTES, byte_fallback=True)
    save("unigram_bytes", tokenizer)


def make_other_bpes():
    special = ["<unk>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.train_from_iterator(" ".join(CORPUS).split(), trainers.BpeTrainer(
        vocab_size=450, special_tokens=special + BYTES, show_progress=False))
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if not token["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                                             special_tokens=[("<s>", 1)])
    save("bpe_llama2", tokenizer)

    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=200, special_tokens=["[UNK]"],
                                                              end_of_word_suffix="</w>", show_progress=False))
    save("bpe_suffix", tokenizer)

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFKD()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("e"),
                                                       pre_tokenizers.Whitespace(), pre_tokenizers.Digits()])
    tokenizer.train_from_iterator(CORPUS, trainers.WordLevelTrainer(special_tokens=["[UNK]"], show_progress=False))
    save("word_level", tokenizer)


# --- the older files -------------------------------------------------------------------------------------------------


def vocabulary_of(tokenizer):
    return sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])


def make_classic():
    vocabulary = vocabulary_of(word_piece(lowercase=True))
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": True,
              "clean_up_tokenization_spaces": True, "additional_special_tokens": ["<new>"]}
    arguments = {key: value for key, value in config.items() if key != "tokenizer_class"}
    save_classic("classic_bert", transformers.BertTokenizer(vocab=dict(vocabulary), **arguments),
                 {"vocab.txt": "".join(token + "\n" for token, _ in vocabulary).encode()}, config)

    state = json.loads(byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"]).to_str())["model"]
    merges = [tuple(merge) for merge in state["merges"]]
    files = {"vocab.json": json.dumps(state["vocab"], ensure_ascii=False).encode(),
             "merges.txt": ("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)).encode()}
    config = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "add_bos_token": True}
    save_classic("classic_gpt2", transformers.GPT2Tokenizer(vocab=state["vocab"], merges=merges, add_prefix_space=True,
                                                            add_bos_token=True), files, config)

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    state = json.loads(byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), special).to_str())["model"]
    merges = [tuple(merge) for merge in state["merges"]]
    files = {"vocab.json": json.dumps(state["vocab"], ensure_ascii=False).encode(),
             "merges.txt": ("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)).encode()}
    save_classic("classic_roberta", transformers.RobertaTokenizer(vocab=state["vocab"], merges=merges), files,
                 {"tokenizer_class": "RobertaTokenizer"})


def pieces_of(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [(processor.id_to_piece(id), processor.get_score(id)) for id in range(processor.get_piece_size())]


def make_sentencepieces():
    model = t5_model()
    sentinels = [f"<extra_id_{i}>" for i in range(100)]
    pieces = pieces_of(model) + [(sentinel, 0.0) for sentinel in reversed(sentinels)]
    save_classic("classic_t5", transformers.T5Tokenizer(
        vocab=pieces, _spm_precompiled_charsmap=charsmap_of(model),
        additional_special_tokens=["<pad>", "</s>"] + sentinels), {"spiece.model": model},
        {"tokenizer_class": "T5Tokenizer"})

    model = sentencepiece_model(vocab_size=420, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                                remove_extra_whitespaces=False, character_coverage=0.98)
    vocabulary = {piece: id for id, (piece, _) in enumerate(pieces_of(model))}
    config = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": True}
    save_classic("classic_llama", transformers.LlamaTokenizer(vocab=vocabulary, merges=generate_merges(vocabulary),
                                                              add_bos_token=True, add_eos_token=True),
                 {"tokenizer.model": model}, config)

    model = sentencepiece_model(vocab_size=145, pad_id=0, unk_id=1, bos_id=2, eos_id=3, bos_piece="[CLS]",
                                eos_piece="[SEP]", control_symbols=["[MASK]"], normalization_rule_name="identity",
                                character_coverage=0.98)
    save_classic("classic_albert", transformers.AlbertTokenizer(vocab=pieces_of(model)), {"spiece.model": model},
                 {"tokenizer_class": "AlbertTokenizer"})


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    make_word_pieces()
    make_byte_bpes()
    make_unigrams()
    make_other_bpes()
    make_classic()
    make_sentencepieces()


if __name__ == "__main__":
    main()
