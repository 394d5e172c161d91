"""tokenizer.json files of random parts over small vocabularies: tzoo encodes and decodes as `tokenizers` does."""

import json

from test_tokenizers import CLASSES, CORPUS, LINES, TROUBLE, WORDS, record_of
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from cases.outcome import EQUAL, NO_REFERENCE, refused_by_name, tzoo

SPLIT_POOL = (list("aabbccsskktffil  ..,,'--__0099AZzSKF\t\r!$+<=>^|~`@#&/") + list(
    "\u00e9\u00df\u4e2d\u3042\u30ab\u00b2\u00bc\u017f\u212a\u0301\u200d\u24b6\u0345\u2160\u00a0\u2028\u0085\u3000\u200b\ufeff"
    "\U0001F8B5\U0002EBF0\u1c89\ua7cb\U00010D40\U0001F600\ue000\u0378\u01c5\u02b0\u0903\u20dd\u203f\ufb01\u1e9e\u0130\u0131"))


def drawn_expression(chance, depth=0):
    def brackets(depth):
        members = [lambda: chance.choice(CLASSES[:60]) if chance.random() < 0.7 else "\\s",
                   lambda: chance.choice(["a-f", "0-9", r"\u4e00-\u9fff", r"\x{e0}-\x{ff}", "!-/"]),
                   lambda: brackets(depth + 1) if depth < 2 else "x", lambda: "&&" + brackets(depth + 1) if depth < 2 else "y",
                   lambda: chance.choice("abcsk.,'_09é中")]
        inside = "".join(chance.choice(members)() for _ in range(chance.randint(1, 4)))
        return f"[{'^' if chance.random() < 0.3 else ''}{inside}]"

    def atom():
        kind = chance.random()
        if kind < 0.3:
            return chance.choice(CLASSES)
        if kind < 0.45:
            return brackets(0)
        if kind < 0.6:
            return chance.choice(["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"])
        if kind < 0.8 and depth < 3:
            begin = chance.choice(["(", "(?:", "(", "(?:", "(?-i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"])
            return begin + drawn_expression(chance, depth + 1) + ")"
        return chance.choice([*"absktfil .,'-_09é中{}]/#", r"\t", r"\.", r"\x41", r"\x{4e2d}", r"\u00e9"])

    counts = [""] * 12 + ["*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,3}", "{,2}", "{2,}", "{1,2}?"]
    return "|".join("".join(atom() + chance.choice(counts) for _ in range(chance.randint(1, 3)))
                    for _ in range(chance.randint(1, 2)))


BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
SPECIAL = ["<s>", "</s>", "<unk>", "<pad>", "[CLS]", "[SEP]"]
SHORT_LINES = [line for line in LINES if len(line) < 200]


def flag(chance):
    return chance.random() < 0.5


def pattern(chance):
    return chance.choice([" ", "a", "the", "\u2581", "e\u0301"]) if flag(chance) else Regex(drawn_expression(chance))


def drawn_normalizer(chance):
    kinds = [
        normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD, normalizers.Lowercase, normalizers.StripAccents,
        normalizers.Nmt, normalizers.ByteLevel, lambda: normalizers.Strip(left=flag(chance), right=flag(chance)),
        lambda: normalizers.Replace(pattern(chance), chance.choice(["", "_", "\u2581", "xy"])),
        lambda: normalizers.Prepend(chance.choice(["\u2581", "a", "é "])),
        lambda: normalizers.BertNormalizer(clean_text=flag(chance), handle_chinese_chars=flag(chance),
                                           strip_accents=chance.choice([None, True, False]), lowercase=flag(chance))]
    parts = [chance.choice(kinds)() for _ in range(chance.choice([0, 1, 1, 2, 3]))]
    return normalizers.Sequence(parts) if len(parts) > 1 or (parts and chance.random() < 0.2) else parts[0] if parts else None


def drawn_pre_tokenizer(chance):
    kinds = [
        pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit, pre_tokenizers.BertPreTokenizer, pre_tokenizers.UnicodeScripts,
        lambda: pre_tokenizers.ByteLevel(add_prefix_space=flag(chance), use_regex=flag(chance)),
        lambda: pre_tokenizers.ByteLevel(add_prefix_space=flag(chance), use_regex=flag(chance)),
        lambda: pre_tokenizers.Metaspace(chance.choice(["\u2581", "_"]), chance.choice(["always", "never", "first"]), flag(chance)),
        lambda: pre_tokenizers.Metaspace(chance.choice(["\u2581", "_"]), chance.choice(["always", "never", "first"]), flag(chance)),
        lambda: pre_tokenizers.Punctuation(chance.choice(BEHAVIORS)), lambda: pre_tokenizers.Digits(flag(chance)),
        lambda: pre_tokenizers.Split(pattern(chance), chance.choice(BEHAVIORS), flag(chance)),
        lambda: pre_tokenizers.Split(pattern(chance), chance.choice(BEHAVIORS), flag(chance)),
        lambda: pre_tokenizers.CharDelimiterSplit(chance.choice(" ae.")), lambda: pre_tokenizers.FixedLength(chance.randint(1, 5))]
    parts = [chance.choice(kinds)() for _ in range(chance.choice([0, 1, 1, 2, 3]))]
    return pre_tokenizers.Sequence(parts) if len(parts) > 1 or (parts and chance.random() < 0.2) else parts[0] if parts else None


def drawn_decoder(chance):
    kinds = [
        decoders.ByteLevel, decoders.ByteFallback, decoders.Fuse, decoders.CTC, decoders.BPEDecoder,
        lambda: decoders.WordPiece(chance.choice(["##", "@@"]), flag(chance)),
        lambda: decoders.Metaspace(chance.choice(["\u2581", "_"]), chance.choice(["always", "never", "first"])),
        lambda: decoders.Replace(pattern(chance), chance.choice(["", " ", "xy"])),
        lambda: decoders.Strip(chance.choice(" ae"), chance.randint(0, 2), chance.randint(0, 2))]
    parts = [chance.choice(kinds)() for _ in range(chance.choice([0, 1, 1, 2, 3]))]
    return decoders.Sequence(parts) if len(parts) > 1 or (parts and chance.random() < 0.2) else parts[0] if parts else None


def drawn_post_processor(chance):
    pieces = ["$A", "<s>", "</s>:0", "[CLS]:1", "$A:1", "$0"]
    def template():
        single = [chance.choice(pieces) for _ in range(chance.randint(0, 3))] + ["$A"]
        chance.shuffle(single)
        return processors.TemplateProcessing(single=" ".join(single), pair="$A $B:1",
                                             special_tokens=[(token, SPECIAL.index(token)) for token in SPECIAL])
    kinds = [
        template, template, lambda: processors.BertProcessing(("[SEP]", 5), ("[CLS]", 4)),
        lambda: processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim_offsets=flag(chance), add_prefix_space=flag(chance)),
        lambda: processors.ByteLevel(trim_offsets=flag(chance))]
    parts = [chance.choice(kinds)() for _ in range(chance.choice([0, 1, 1, 1, 2]))]
    return processors.Sequence(parts) if len(parts) > 1 or (parts and chance.random() < 0.2) else parts[0] if parts else None


def drawn_words(chance, normalizer, pre_tokenizer):
    """Words of the corpus as they come to the model."""
    words = []
    for line in chance.sample(CORPUS, 20):
        line = normalizer.normalize_str(line) if normalizer else line
        words += [word for word, _ in pre_tokenizer.pre_tokenize_str(line)] if pre_tokenizer else [line]
    return [word[:30] for word in words if word]


def drawn_merges(chance, words, count):
    """Merges of pairs that stand side by side in the words, in the order in which they came to be."""
    merges, rows = [], [list(word) for word in words]
    for _ in range(count):
        row = chance.choice(rows)
        if len(row) < 2:
            continue
        place = chance.randrange(len(row) - 1)
        left, right = pair = row[place], row[place + 1]
        if pair in merges:
            continue
        merges.append(pair)
        for row in rows:
            for i in range(len(row) - 2, -1, -1):
                if row[i:i + 2] == [left, right]:
                    row[i:i + 2] = [left + right]
    return merges


def numbered(pieces):
    return {piece: i for i, piece in enumerate(dict.fromkeys([*SPECIAL, *pieces]))}


def drawn_bpe(chance, words):
    letters = sorted(set("".join(words)))
    letters = chance.sample(letters, chance.choice([len(letters), len(letters) * 3 // 4]))
    alphabet = chance.choice([[], [], sorted(pre_tokenizers.ByteLevel.alphabet()), [f"<0x{i:02X}>" for i in range(256)]])
    merges = [(left, right) for left, right in drawn_merges(chance, words, 150) if set(left + right) <= set(letters)]
    options = {"unk_token": chance.choice([None, "<unk>"]), "fuse_unk": flag(chance), "byte_fallback": flag(chance),
               "ignore_merges": flag(chance), "dropout": chance.choice([None, None, 0.0])}
    if chance.random() < 0.2:
        merges = []
        options |= chance.choice([{"continuing_subword_prefix": "##"}, {"end_of_word_suffix": "</w>"}])
        letters += ["##" + letter for letter in letters] + [letter + "</w>" for letter in letters]
    return models.BPE(numbered([*letters, *alphabet, *(left + right for left, right in merges)]), merges, **options)


def drawn_pieces(chance, words, count):
    places = [(word, chance.randrange(len(word))) for word in chance.choices(words, k=count)]
    return [word[first:first + chance.randint(1, 5)] for word, first in places]


def drawn_model(chance, words):
    kind = chance.choice(["bpe", "bpe", "wordpiece", "unigram", "words"])
    if kind == "bpe":
        return drawn_bpe(chance, words)
    if kind == "words":
        return models.WordLevel(numbered(chance.sample(words, len(words) // 2)), unk_token="<unk>")
    pieces = drawn_pieces(chance, words, 300)
    if kind == "wordpiece":
        mark = chance.choice(["##", "##", "@@"])
        return models.WordPiece(numbered([*pieces, *(mark + piece for piece in pieces)]), unk_token="<unk>",
                                max_input_chars_per_word=chance.choice([100, 6]), continuing_subword_prefix=mark)
    falls_back = flag(chance)
    bytes_ = [f"<0x{i:02X}>" for i in range(256)] if falls_back and flag(chance) else []
    scored = [(piece, -round(chance.uniform(1, 12), 3)) for piece in numbered(bytes_ + pieces)]
    return models.Unigram(scored, chance.choice([2, 2, None]), falls_back)


def drawn_tokenizer(chance):
    normalizer, pre_tokenizer = drawn_normalizer(chance), drawn_pre_tokenizer(chance)
    tokenizer = Tokenizer(drawn_model(chance, drawn_words(chance, normalizer, pre_tokenizer)))
    for name, part in (("normalizer", normalizer), ("pre_tokenizer", pre_tokenizer), ("decoder", drawn_decoder(chance)),
                       ("post_processor", drawn_post_processor(chance))):
        if part:
            setattr(tokenizer, name, part)
    tokenizer.add_special_tokens(SPECIAL[:chance.randint(0, len(SPECIAL))])
    for _ in range(chance.choice([0, 0, 1, 3])):
        content = chance.choice([*WORDS[:20], *TROUBLE, " <left>", "<right> ", "a", "  "])
        token = AddedToken(content, single_word=flag(chance), lstrip=flag(chance), rstrip=flag(chance), normalized=flag(chance))
        (tokenizer.add_special_tokens if flag(chance) else tokenizer.add_tokens)([token])
    return tokenizer


def drawn_lines(chance):
    return chance.sample(SHORT_LINES, 20) + ["".join(chance.choices(SPLIT_POOL, k=chance.randint(0, 14))) for _ in range(10)]


def has_equal_added_tokens(tokenizer):
    """Two added tokens that are one text after normalization: `tokenizers` takes one or the other by a random hash."""
    if tokenizer.normalizer is None:
        return False
    texts = [tokenizer.normalizer.normalize_str(token.content)
             for token in tokenizer.get_added_tokens_decoder().values() if token.normalized]
    return len(set(texts)) < len(texts)


def loses_count(tokenizer, records):
    """The offsets of `tokenizers` are wrong where bytes stand for a character and the mark of its place in a word."""
    model = tokenizer.model
    return (isinstance(model, models.BPE) and model.byte_fallback and (model.end_of_word_suffix or model.continuing_subword_prefix)
            and any(token.startswith("<0x") for record in records for token in record["tokens"]))


def check(chance, folder):
    lines = drawn_lines(chance)
    try:
        path = str(folder / "tokenizer.json")
        drawn_tokenizer(chance).save(path)
        tokenizer = Tokenizer.from_file(path)
        expected = [record_of(tokenizer, line) for line in lines]
        ids = [record["ids"] for record in expected]
        texts = [tokenizer.decode(row) for row in ids]
    except BaseException as fault:  # parts that do not fit together; the engine of `tokenizers` may panic
        if isinstance(fault, KeyboardInterrupt):
            raise
        return NO_REFERENCE
    if has_equal_added_tokens(tokenizer):
        return NO_REFERENCE
    if loses_count(tokenizer, expected):
        return NO_REFERENCE
    decodes = chance.random() < 0.3
    if decodes:
        done = tzoo("tokenizer", "decode", "--model", folder, stdin="".join(f"{row}\n" for row in ids))
        wanted, found = "".join(text + "\n" for text in texts), done.stdout
    else:
        done = tzoo("tokenizer", "encode", "--json", "--offsets", "--model", folder, stdin="".join(line + "\n" for line in lines))
        wanted, found = expected, [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    if done.returncode:
        return refused_by_name(done, "normalizer", "pre_tokenizer", "post_processor", "decoder", "model", "added_tokens",
                               "cannot be matched: the text takes too many steps")
    parts = json.loads((folder / "tokenizer.json").read_text())
    parts["model"] = {key: value for key, value in parts["model"].items() if key not in ("vocab", "merges")}
    if decodes:
        assert found == wanted, f"by {json.dumps(parts)} {ids} give {found!a} instead of {wanted!a}"
        return EQUAL
    assert len(found) == len(lines)
    for line, ours, theirs in zip(lines, found, wanted):
        different = {key: (ours[key], theirs[key]) for key in theirs if ours[key] != theirs[key]}
        assert not different, f"by {json.dumps(parts)} {line!a} gives {different}"
    return EQUAL
