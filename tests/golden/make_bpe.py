#!/usr/bin/env python3
"""Makes bpe/: lines that are hard to cut, how the published patterns cut them, and BPE models with the ids they give.

    python tests/golden/make_bpe.py      (needs tokenizers)

lines.json      texts, from a fixed seed
splits.json     pattern -> for each text the bytes of its words
corpus.txt      a text to learn from; trained-*.json what `tokenizers` learns from it
models.json     small BPE models of every option, with words, ids and the byte where each ends
encodings.json  ids of the texts with trained-gpt2.json and trained-cl100k.json
"""

import json
import pathlib
import random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

OUT = pathlib.Path(__file__).resolve().parent / "bpe"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CAPITAL, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERNS = {
    "gpt2": GPT2,
    "cl100k": CL100K,
    "qwen2": CL100K.replace(r"\p{N}{1,3}", r"\p{N}"),
    "o200k": (rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITAL}*{SMALL}+{ENDING}|[^\r\n\p{{L}}\p{{N}}]?{CAPITAL}+{SMALL}*{ENDING}"
              r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
}

# Whatever makes a difference to one of the patterns, or has two ways of being written.
ATOMS = [*"  \n\r\t'''aAsStTdDmMrReEvVlL019!.,/-#", *"\u00a0\u0085\u3000\u2028\v\f\x1c\u200b\u180e\ufeff\0\x7f",
         *"ſKßﬆŉéЖжǅʰªΣςİı中文ไท٣½Ⅷ²", "e\u0301", "\u0301", "น้ำ", "مرحبا", "שָׁלוֹם", "👩‍👩‍👧‍👦", "👍🏽", "🇨🇭",
         "\u200d", "\U0001e900", "\U0001e922", "\U00010d40", "\ua7cb", "\U00010d50", "\U0010ffff", "'S", "'LL", "'ſ",
         "'rE", "don't", "I'VE", "123456789", "McDonald's", "\r\n", "    ", "<|endoftext|>"]


def hard_lines(draw, count):
    def line():
        atoms = (draw.choice(ATOMS) * draw.choice([1, 1, 1, 1, 2, 3]) for _ in range(draw.choice([1, 2, 3, 5, 8, 13])))
        return "".join(atoms)

    fixed = ["", " ", "  ", "\n", "a ", "a  ", " a", "  a", "\n\n a", " \n a\n  ", "a\n", "it's IT'S it'S", "1234567 12",
             "ab " * 20, "a" * 300, "é" * 200, " " * 100, "\n" * 80 + "x", "Hello, world! How're you?\r\n\r\n\tFine."]
    return fixed + [line() for _ in range(count)]


def corpus(draw):
    """Words of several scripts by Zipf's law, with what stands between words."""
    ranges = [(0x61, 0x7A, 7), (0x61, 0x65, 9), (0x430, 0x44F, 5), (0x4E00, 0x4E40, 3), (0x905, 0x939, 4)]
    words = ["".join(chr(draw.randint(low, high)) for _ in range(draw.randint(1, longest)))
             for low, high, longest in ranges for _ in range(60)] + ["don't", "I'LL", "x_1", "42", "1984", "Ünï"]
    draw.shuffle(words)
    weights = [1 / (i + 1) for i in range(len(words))]
    lines = []
    for _ in range(260):
        line = " ".join(draw.choices(words, weights, k=draw.randint(2, 9)))
        lines.append((line.capitalize() if draw.random() < 0.3 else line) + draw.choice([".", "!", "", " ", "?  "]))
    return "\n".join(lines) + "\n"


def pre_tokenizer(name):
    if name == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = pre_tokenizers.Split(Regex(PATTERNS[name]), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(name, vocab_size, min_frequency):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer(name)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train([str(OUT / "corpus.txt")], trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return tokenizer


def small_models():
    """name, settings, vocabulary, merges, words."""
    letters = {c: i for i, c in enumerate("abcdé")}
    merges = [("a", "b"), ("b", "c"), ("ab", "c"), ("c", "d"), ("a", "bc")]
    tokens = letters | {t: 10 + i for i, t in enumerate(["ab", "bc", "abc", "cd", "abcd", "[UNK]"])}
    both = tokens | {f"<0x{b:02X}>": 100 + b for b in (0x78, 0xC3, 0xB1, 0xE4, 0xB8, 0xAD)}
    words = ["abc", "abcd", "aabbcc", "bcab", "é", "xabc", "abxcd", "abxxcd", "xx", "ñ", "añb", "中文", "x中x", "abc" * 40, ""]
    suffix = {"a": 0, "b": 1, "c": 2, "a</w>": 3, "b</w>": 4, "c</w>": 5, "ab": 6, "ab</w>": 7, "abc</w>": 8, "bc</w>": 9}
    prefix = {"a": 0, "b": 1, "##a": 2, "##b": 3, "ab": 4, "##ab": 5, "aba": 6}
    return [
        ("plain", {}, tokens, merges, words),
        ("unknown", {"unk_token": "[UNK]"}, tokens, merges, words),
        ("fused", {"unk_token": "[UNK]", "fuse_unk": True}, tokens, merges, words),
        ("bytes", {"unk_token": "[UNK]", "byte_fallback": True}, both, merges, words),
        ("bytes fused", {"unk_token": "[UNK]", "byte_fallback": True, "fuse_unk": True}, both, merges, words),
        ("whole words", {"ignore_merges": True}, tokens, merges, words),
        ("suffix", {"end_of_word_suffix": "</w>"}, suffix,
         [("a", "b</w>"), ("b", "c</w>"), ("a", "b"), ("ab", "c</w>")], ["a", "ab", "abc", "aabc", "cab", "abab"]),
        ("prefix", {"continuing_subword_prefix": "##"}, prefix,
         [("a", "##b"), ("##a", "##b"), ("ab", "##a")], ["a", "ab", "aba", "abab", "bab", "bbab"]),
    ]


def run_small_models():
    result = []
    for name, settings, vocab, merges, words in small_models():
        model = models.BPE(vocab=vocab, merges=merges, **settings)
        encoded = [model.tokenize(word) for word in words]
        result.append({"name": name, "settings": settings, "vocab": vocab, "merges": merges, "words": [
            {"word": word, "ids": [t.id for t in tokens], "ends": [t.offsets[1] for t in tokens]}
            for word, tokens in zip(words, encoded)]})
    return result


def write(name, value):
    (OUT / name).write_text(json.dumps(value, ensure_ascii=True) + "\n", encoding="utf-8")


def main():
    OUT.mkdir(exist_ok=True)
    lines = hard_lines(random.Random(4), 400)
    write("lines.json", lines)
    splits = {}
    for name, pattern in PATTERNS.items():
        splitter = pre_tokenizers.Split(Regex(pattern), "isolated")
        splits[name] = [[len(word.encode()) for word, _ in splitter.pre_tokenize_str(line)] for line in lines]
    write("splits.json", splits)
    (OUT / "corpus.txt").write_text(corpus(random.Random(5)), encoding="utf-8", newline="")
    encodings = {}
    for name, vocab_size, min_frequency in [("gpt2", 700, 2), ("cl100k", 2000, 0)]:
        tokenizer = train(name, vocab_size, min_frequency)
        model = json.loads(tokenizer.to_str())["model"]
        write(f"trained-{name}.json", {"vocab": model["vocab"], "merges": model["merges"]})
        encodings[name] = [[token.id for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(line)
                            for token in tokenizer.model.tokenize(word)] for line in lines]
    write("encodings.json", encodings)
    write("models.json", run_small_models())


if __name__ == "__main__":
    main()
