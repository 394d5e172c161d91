#!/usr/bin/env python3
"""Makes tokenizer/: one small tokenizer of each kind, by the libraries that define the format, with the ids they give.

    python tests/golden/make_tokenizers.py      (needs sentencepiece and tokenizers)
"""

import io
import json
import os
import pathlib

import sentencepiece
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent / "tokenizer"

CORPUS = [
    "In the beginning the cat sat on the mat, and the mat was flat.",
    "The dog said to the cat: who let the other dogs out on the mat?",
    "Eins, zwei, drei: das Café öffnet früh; 1984 und 2001 auch.",
    "The quick brown fox jumps over the lazy dog, again and again and again.",
    "She sells sea shells on the sea shore; the shells she sells are sea shells.",
]

TEXTS = [
    "",
    "the cat",
    "  two  spaces  and the end  ",
    "The dogs\nand the cats\r\n\tsat.",
    "Café cafe\u0301 früh \ufb01ne",
    "世界 שלום ภาษาไทย",
    "👩‍👩‍👧 😀",
    "zero \0 byte",
    "<s> </s> <unk> ▁ the",
]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def make_char():
    characters = sorted(set("".join(TEXTS)))
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(characters)}, merges=[]))
    tokenizer.decoder = decoders.Fuse()
    write(OUT / "char/tokenizer.json", tokenizer.to_str(pretty=True))
    return lambda text: tokenizer.encode(text).ids, lambda ids: tokenizer.decode(ids, skip_special_tokens=False)


def bytes_to_unicode():
    """The table of GPT-2's encoder.py."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + n) for n, b in enumerate(others)}}


def make_byte():
    table = bytes_to_unicode()
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={table[b]: b for b in range(256)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, use_regex=False)
    write(OUT / "byte/tokenizer.json", tokenizer.to_str(pretty=True))
    return lambda text: tokenizer.encode(text).ids, lambda ids: tokenizer.decode(ids, skip_special_tokens=False)


def make_sentencepiece(name, file, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, minloglevel=2, num_threads=1, **options)
    path = OUT / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return processor.encode, processor.decode


def main():
    rules = OUT / "rules.tsv"
    OUT.mkdir(exist_ok=True)
    os.chdir(OUT)  # the model keeps the name of its rules
    write(rules, "FB01\t66 69\n65 301\tE9\n9\t20\nA\t20\nD\t20\n")  # the ligature fi, e + acute, white space
    kinds = {
        "char": make_char(),
        "byte": make_byte(),
        # T5's special ids, and a small normalization table of its own.
        "unigram": make_sentencepiece("unigram", "spiece.model", vocab_size=75, normalization_rule_tsv=rules.name,
                                      pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
        # Llama's manner: the sentencepiece defaults, spaces kept, unknown characters as bytes.
        "bpe": make_sentencepiece("bpe", "tokenizer.model", model_type="bpe", vocab_size=380, byte_fallback=True,
                                  normalization_rule_name="identity", remove_extra_whitespaces=False,
                                  user_defined_symbols=["\n"]),
    }
    rules.unlink()
    expected = {
        name: [{"text": text, "ids": encode(text), "decoded": decode(encode(text))} for text in TEXTS]
        for name, (encode, decode) in kinds.items()
    }
    write(OUT / "expected.json", json.dumps(expected, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
