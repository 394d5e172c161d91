"""Small vocabularies in the files and with the pipelines of the published ones: each function writes a directory's tokenizer.

A vocabulary begins with the special tokens whose ids are low, has the pieces of TEXTS, and ends with the others.
"""

import json
import pathlib
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers.tokenization_utils_base import generate_merges

LINE = "Hello world, IT'S the café in 2023!   We've 12345 words: naïve ÅÉ 北京"
TEXTS = [LINE, "the quick brown fox jumps over the lazy dog", "In the beginning God created the heaven and the earth.",
         "And God said, Let there be light: and there was light.", "He called the light Day, and the darkness he called Night.",
         "words of the world and the earth, in the evening and the morning were the first day"] * 3
LOW = 200  # ids below are the first of the vocabulary
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# Added tokens with other flags than a special token has.
ORDINARY = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<|file_sep|>", "|||IP_ADDRESS|||", "<|extra_id_0|>")
STRIPS_RIGHT = tuple(f"<|{name}|>" for name in ("assistant", "system", "end", "user", "placeholder1", "placeholder2", "placeholder3",
                                                "placeholder4", "placeholder5", "placeholder6"))


def first_and_last(checkpoint):
    """Contents of special tokens before and after the pieces."""
    ordered = sorted(checkpoint.special, key=checkpoint.special.get)
    return [t for t in ordered if checkpoint.special[t] < LOW], [t for t in ordered if checkpoint.special[t] >= LOW]


def added(checkpoint, content):
    if not content.strip() or content in ORDINARY:
        return AddedToken(content, normalized=not content.strip(), special=False)
    strips = checkpoint.vocabulary == "phi3" and content in (*STRIPS_RIGHT, "</s>") or checkpoint.vocabulary == "tiktoken" and \
        content in STRIPS_RIGHT and "<|tool|>" in checkpoint.special
    return AddedToken(content, lstrip=content in ("<mask>", "[MASK]") and checkpoint.vocabulary != "deberta", rstrip=strips,
                      normalized=False, special=True)


def save(folder, checkpoint, tokenizer, **parts):
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.add_tokens([added(checkpoint, content) for content in sorted(checkpoint.special, key=checkpoint.special.get)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


# --- BPE of bytes -------------------------------------------------------------------------------------------------------------


def byte_bpe(checkpoint, in_vocabulary, **options):
    first, last = first_and_last(checkpoint)
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("Ġ", "in"), ("l", "l"), ("Ġ", "w"), ("o", "r"), ("1", "2"), ("3", "4"),
              ("Ã", "©"), ("Ġ", "Ġ"), ("'", "S")]
    pieces = [*first, *sorted(pre_tokenizers.ByteLevel.alphabet()), *(a + b for a, b in merges), *(last if in_vocabulary else [])]
    return models.BPE({piece: i for i, piece in enumerate(pieces)}, merges, **options)


def byte_level(**options):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, **options)


def split(expression):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), byte_level(use_regex=False)])


CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")


def gpt2(folder, checkpoint):
    model = byte_bpe(checkpoint, True)
    model.save(str(folder))
    save(folder, checkpoint, Tokenizer(model), pre_tokenizer=byte_level(), decoder=decoders.ByteLevel(), post_processor=processors.ByteLevel())


def opt(folder, checkpoint):
    byte_bpe(checkpoint, True).save(str(folder))


def roberta(folder, checkpoint):
    model = byte_bpe(checkpoint, True)
    model.save(str(folder))
    save(folder, checkpoint, Tokenizer(model), pre_tokenizer=byte_level(), decoder=decoders.ByteLevel(),
         post_processor=processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False))


def llama3(folder, checkpoint):
    tokenizer = Tokenizer(byte_bpe(checkpoint, False, ignore_merges=True))
    begin = len(tokenizer.get_vocab())
    template = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                             special_tokens=[("<|begin_of_text|>", begin)])
    steps = [processors.ByteLevel(trim_offsets=False)] + ([template] if checkpoint.settings["bos_token"] else [])
    save(folder, checkpoint, tokenizer, pre_tokenizer=split(CL100K), decoder=decoders.ByteLevel(), post_processor=processors.Sequence(steps))


def tiktoken(folder, checkpoint):
    model = byte_bpe(checkpoint, False)
    model.save(str(folder))
    save(folder, checkpoint, Tokenizer(model), pre_tokenizer=split(CL100K), decoder=decoders.ByteLevel(),
         post_processor=processors.ByteLevel(trim_offsets=False))


def qwen(folder, checkpoint):
    model = byte_bpe(checkpoint, False)
    model.save(str(folder))
    save(folder, checkpoint, Tokenizer(model), normalizer=normalizers.NFC(), pre_tokenizer=split(QWEN), decoder=decoders.ByteLevel(),
         post_processor=processors.ByteLevel(trim_offsets=False))


def code(folder, checkpoint):
    model = byte_bpe(checkpoint, False)
    model.save(str(folder))
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()])
    save(folder, checkpoint, Tokenizer(model), pre_tokenizer=digits, decoder=decoders.ByteLevel(), post_processor=None)


def code_last(folder, checkpoint):
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()])
    save(folder, checkpoint, Tokenizer(byte_bpe(checkpoint, False)), pre_tokenizer=digits, decoder=decoders.ByteLevel())


def neox(folder, checkpoint):
    save(folder, checkpoint, Tokenizer(byte_bpe(checkpoint, False)), normalizer=normalizers.NFC(), pre_tokenizer=byte_level(),
         decoder=decoders.ByteLevel(), post_processor=processors.ByteLevel(trim_offsets=True))


def modernbert(folder, checkpoint):
    tokenizer = Tokenizer(byte_bpe(checkpoint, False))
    size, last = len(tokenizer.get_vocab()), first_and_last(checkpoint)[1]
    around = [(content, size + last.index(content)) for content in ("[CLS]", "[SEP]")]
    save(folder, checkpoint, tokenizer, normalizer=normalizers.NFC(), pre_tokenizer=byte_level(), decoder=decoders.ByteLevel(),
         post_processor=processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around))


def bloom(folder, checkpoint):
    expression = " ?[^(\\s|[.,!?…。，、।۔،])]+"
    save(folder, checkpoint, Tokenizer(byte_bpe(checkpoint, True)), pre_tokenizer=split(expression), decoder=decoders.ByteLevel(),
         post_processor=processors.ByteLevel(trim_offsets=False))


def falcon(folder, checkpoint):
    steps = [pre_tokenizers.Punctuation("contiguous"), byte_level(), pre_tokenizers.Digits(individual_digits=False),
             pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]
    save(folder, checkpoint, Tokenizer(byte_bpe(checkpoint, True)), pre_tokenizer=pre_tokenizers.Sequence(steps), decoder=decoders.ByteLevel(),
         post_processor=processors.ByteLevel(trim_offsets=True))


# --- WordPiece ------------------------------------------------------------------------------------------------------------------


def word_piece(folder, checkpoint, lowercase, around):
    first, last = first_and_last(checkpoint)
    letters = sorted(set("".join(TEXTS)) - {" "})
    words = ["the", "world", "hello", "Hello", "and", "light", "##ing", "##s"]
    inside = ["##" + letter for letter in "abcdefghijklmnopqrstuvwxyz0123456789é"]
    pieces = list(dict.fromkeys([*first, *words, *letters, *(letter.lower() for letter in letters), *"eai", *inside, *last]))
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces), encoding="utf-8")
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    begin, end = around
    save(folder, checkpoint, tokenizer, normalizer=normalizers.BertNormalizer(lowercase=lowercase), pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
         decoder=decoders.WordPiece(), post_processor=processors.TemplateProcessing(
             single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B:1 {end}:1",
             special_tokens=[(content, pieces.index(content)) for content in around]))


def bert_uncased(folder, checkpoint):
    word_piece(folder, checkpoint, True, ("[CLS]", "[SEP]"))


def bert_cased(folder, checkpoint):
    word_piece(folder, checkpoint, False, ("[CLS]", "[SEP]"))


def mpnet(folder, checkpoint):
    word_piece(folder, checkpoint, True, ("<s>", "</s>"))


# --- sentencepiece ----------------------------------------------------------------------------------------------------------------
TRAINED = {}


def trained(**options):
    """A model of TEXTS; options are sentencepiece's."""
    key = json.dumps(options, sort_keys=True)
    if key not in TRAINED:
        with tempfile.TemporaryDirectory() as folder:
            prefix = str(pathlib.Path(folder, "m"))
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXTS), model_prefix=prefix, hard_vocab_limit=False, minloglevel=2,
                                                     num_threads=1, **options)
            TRAINED[key] = pathlib.Path(prefix + ".model").read_bytes()
    return sentencepiece_model_pb2.ModelProto.FromString(TRAINED[key])


UNIGRAM = dict(model_type="unigram", vocab_size=120, character_coverage=1.0)
BPE = dict(model_type="bpe", vocab_size=440, byte_fallback=True, character_coverage=0.99, normalization_rule_name="identity",
           remove_extra_whitespaces=False)
FAIRSEQ_BPE = dict(model_type="bpe", vocab_size=150, character_coverage=0.99)


def named(proto, contents):
    """The same model whose first pieces, which are its own special ones, and further ones before the others are `contents`."""
    kinds = {piece.piece: piece for piece in proto.pieces}
    rest = [piece for piece in proto.pieces if piece.type in (piece.NORMAL, piece.BYTE)]
    del proto.pieces[:]
    for content in contents:
        kind = "UNKNOWN" if "unk" in content.lower() and "_" not in content else "CONTROL"
        proto.pieces.add(piece=content, score=0.0, type=sentencepiece_model_pb2.ModelProto.SentencePiece.Type.Value(kind))
    proto.pieces.extend(rest)
    spec = proto.trainer_spec
    for role, options in {"unk": ("<unk>", "[UNK]"), "bos": ("<s>", "<bos>", "[CLS]"), "eos": ("</s>", "<eos>", "[SEP]"), "pad": ("<pad>", "[PAD]")}.items():
        found = [i for i, content in enumerate(contents) if content in options]
        setattr(spec, role + "_id", found[0] if found else -1)
        if found:
            setattr(spec, role + "_piece", contents[found[0]])
    assert kinds
    return proto


def write(proto, path):
    path.write_bytes(proto.SerializeToString())
    return [(piece.piece, piece.score) for piece in proto.pieces]


def charsmap(proto):
    return normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)


def metaspace_bpe(vocabulary):
    return models.BPE(vocabulary, generate_merges(vocabulary), unk_token="<unk>", fuse_unk=True, byte_fallback=True)


def llama_like(folder, checkpoint):
    first = first_and_last(checkpoint)[0]
    pieces = write(named(trained(**BPE), first), folder / "tokenizer.model")
    tokenizer = Tokenizer(metaspace_bpe({piece: i for i, (piece, _) in enumerate(pieces)}))
    steps = [("<s>", 1)]
    begins = checkpoint.settings["add_bos_token"]
    save(folder, checkpoint, tokenizer, normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
         decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
         post_processor=processors.TemplateProcessing(single="<s> $A" if begins else "$A", pair="<s> $A <s>:1 $B:1" if begins else "$A $B:1",
                                                      special_tokens=steps))


llama = phi3 = llama_like


def gemma(folder, checkpoint):
    first, last = first_and_last(checkpoint)
    pieces = write(named(trained(**BPE), first + last[:-1] if "<image_soft_token>" in last else first), folder / "tokenizer.model")
    tokenizer = Tokenizer(metaspace_bpe({piece: i for i, (piece, _) in enumerate(pieces)}))
    save(folder, checkpoint, tokenizer, normalizer=normalizers.Replace(" ", "▁"), pre_tokenizer=pre_tokenizers.Split(" ", "merged_with_previous"),
         decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
         post_processor=processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[("<bos>", 2)]))


def t5_pieces(folder, checkpoint):
    first = first_and_last(checkpoint)[0]
    write(named(trained(**UNIGRAM, byte_fallback=False), first), folder / "spiece.model")


def t5(folder, checkpoint):
    first, last = first_and_last(checkpoint)
    proto = named(trained(**UNIGRAM, byte_fallback=False), first)
    pieces = write(proto, folder / "spiece.model") + [(content, 0.0) for content in last]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    save(folder, checkpoint, tokenizer, normalizer=charsmap(proto),
         pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), decoder=decoders.Metaspace(),
         post_processor=processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]))


def umt5(folder, checkpoint):
    first, last = first_and_last(checkpoint)
    proto = named(trained(**UNIGRAM, byte_fallback=False), first)
    pieces = write(proto, folder / "spiece.model") + [(content, 0.0) for content in last]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    save(folder, checkpoint, tokenizer, normalizer=charsmap(proto), pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace(),
         post_processor=processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]))


def albert(folder, checkpoint):
    proto = named(trained(**UNIGRAM, normalization_rule_name="nmt_nfkc_cf"), first_and_last(checkpoint)[0])
    pieces = write(proto, folder / "spiece.model")
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
             normalizers.Lowercase(), charsmap(proto)]
    save(folder, checkpoint, Tokenizer(models.Unigram(pieces, unk_id=1, byte_fallback=False)), normalizer=normalizers.Sequence(steps),
         pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), decoder=decoders.Metaspace(),
         post_processor=processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                      special_tokens=[("[CLS]", 2), ("[SEP]", 3)]))


def deberta(folder, checkpoint):
    write(named(trained(**UNIGRAM), first_and_last(checkpoint)[0]), folder / "spm.model")


def pegasus(folder, checkpoint):
    write(named(trained(**UNIGRAM), ["<pad>", "</s>", "<unk>"]), folder / "spiece.model")


def fairseq(folder, checkpoint, options, template, with_json=True, fused=False):
    """Pieces in sentencepiece's order of special tokens, ids in fairseq's."""
    first, last = first_and_last(checkpoint)
    proto = named(trained(**options), ["<unk>", "<s>", "</s>"])
    pieces = write(proto, folder / "sentencepiece.bpe.model")[3:]
    if not with_json:
        return
    rows = [(content, 0.0) for content in first] + pieces + [(content, 0.0) for content in last]
    vocabulary = {piece: i for i, (piece, _) in enumerate(rows)}
    model = models.BPE(vocabulary, generate_merges({piece: i for piece, i in vocabulary.items() if piece not in first + last}), unk_token="<unk>",
                       fuse_unk=True) if fused else models.Unigram(rows, unk_id=3, byte_fallback=False)
    steps = charsmap(proto) if not fused else normalizers.Sequence([charsmap(proto), normalizers.Replace(Regex(" {2,}"), " ")])
    words = pre_tokenizers.Metaspace() if fused else pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    save(folder, checkpoint, Tokenizer(model), normalizer=steps, pre_tokenizer=words, decoder=decoders.Metaspace(),
         post_processor=processors.TemplateProcessing(single=template, pair=template.replace("$A", "$A $B"),
                                                      special_tokens=[(content, vocabulary[content]) for content in first + last]))


def xlmr(folder, checkpoint):
    fairseq(folder, checkpoint, UNIGRAM, "<s> $A </s>")


def mbart(folder, checkpoint):
    fairseq(folder, checkpoint, UNIGRAM, "$A </s> en_XX")


def mbart50(folder, checkpoint):
    fairseq(folder, checkpoint, UNIGRAM, "", with_json=False)


def nllb(folder, checkpoint):
    fairseq(folder, checkpoint, FAIRSEQ_BPE, "$A </s> eng_Latn", fused=True)


def m2m(folder, checkpoint):
    proto = named(trained(**FAIRSEQ_BPE), ["<unk>", "<s>", "</s>"])
    pieces = write(proto, folder / "sentencepiece.bpe.model")[3:]
    names = [*first_and_last(checkpoint)[0], *(piece for piece, _ in pieces)]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(names)}))


def marian(folder, checkpoint):
    proto = named(trained(**UNIGRAM), ["<unk>", "<s>", "</s>"])
    pieces = write(proto, folder / "source.spm")[3:]
    write(proto, folder / "target.spm")
    names = ["</s>", "<unk>", *(piece for piece, _ in pieces), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(names)}))
