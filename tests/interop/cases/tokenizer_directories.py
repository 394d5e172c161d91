"""Everything that transformers opens beside a vocabulary, each file absent, present or contradicting: the ids of tzoo are those
of AutoTokenizer over the same directory."""

import json

from test_tokenizers import BERT_TOKENS, CORPUS, byte_bpe, train_pieces, word_piece
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoTokenizer
from transformers.tokenization_utils_base import generate_merges

from cases.outcome import EQUAL, NO_REFERENCE, refused_by_name, tzoo

ADDED = ["covid", "<|im_start|>", "<new>", "[MASK]", "<mask>", "[PAD]", "the", "</s>", "<s>", "[X]", "eng_Latn", "en_XX", "<extra_id_0>"]
ROLES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>", "eng_Latn", "fra_Latn", "en_XX", "de_DE", "<mask>"]
TRAINED = {}


def trained(name, make):
    if name not in TRAINED:
        TRAINED[name] = make().to_str()
    return Tokenizer.from_str(TRAINED[name])


def unigram(special, unk):
    from test_tokenizers import trainers
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(CORPUS[:800], trainers.UnigramTrainer(vocab_size=600, special_tokens=special, unk_token=unk,
                                                                        show_progress=False))
    return tokenizer


def metaspace_bpe(special):
    from test_tokenizers import trainers
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(CORPUS[:800], trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False))
    return tokenizer


def byte_level():
    return byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"])


# Of each class: its tokenizer, and the files that hold its vocabulary without a tokenizer.json.
CLASSES = {
    "BertTokenizer": lambda: trained("bert", lambda: word_piece(lowercase=True)),
    "GPT2Tokenizer": lambda: trained("bytes", byte_level),
    "RobertaTokenizer": lambda: trained("bytes", byte_level),
    "PreTrainedTokenizerFast": lambda: trained("bytes", byte_level),
    "T5Tokenizer": lambda: trained("t5", lambda: unigram(["<pad>", "</s>", "<unk>", *(f"<extra_id_{i}>" for i in range(99, -1, -1))], "<unk>")),
    "MBartTokenizer": lambda: trained("mbart", lambda: unigram(FAIRSEQ, "<unk>")),
    "MBart50Tokenizer": lambda: trained("mbart", lambda: unigram(FAIRSEQ, "<unk>")),
    "NllbTokenizer": lambda: trained("nllb", lambda: metaspace_bpe(FAIRSEQ)),
}


# Model types by the type of model that their registered class runs: the class of a directory follows from both names. Beside a
# vocabulary of another type transformers raises or gives letters, where tzoo keeps the file's pipeline.
TYPES_OF = {"BPE": ["qwen2", "gpt2", "bart", "gemma"], "WordPiece": ["bert", "mpnet"], "Unigram": ["t5", "mbart", "albert"]}
METASPACE_TYPES = ["gemma"]  # of BPE over words with a ▁: a class of byte-level BPE finds letters alone in it
MODEL_TYPES = ["", "llama", "mistral", "granite"]  # of no class, or of one that keeps the file's pipeline


def drawn_template(chance, tokenizer):
    known = [token for token in (*FAIRSEQ, *BERT_TOKENS) if tokenizer.token_to_id(token) is not None]
    around = [chance.choice(known) for _ in range(chance.randint(0, 2))] + ["$A"]
    chance.shuffle(around)
    return processors.TemplateProcessing(single=" ".join(around), pair="$A $B:1",
                                         special_tokens=[(token, tokenizer.token_to_id(token)) for token in known])


def drawn_token(chance, content):
    if chance.random() < 0.6:
        return content
    return {"content": content, "lstrip": chance.random() < 0.3, "rstrip": chance.random() < 0.2, "normalized": chance.random() < 0.5,
            "single_word": chance.random() < 0.2, "special": True}


def drawn_roles(chance):
    return {role: drawn_token(chance, chance.choice(ADDED)) for role in chance.sample(ROLES, chance.choice([0, 0, 1, 2]))}


def drawn_extras(chance):
    key = chance.choice(["additional_special_tokens", "extra_special_tokens"])
    return {key: [drawn_token(chance, content) for content in chance.sample(ADDED, chance.randint(0, 2))]} if chance.random() < 0.3 else {}


def drawn_ids(chance, size):
    """Ids as they are, permuted or of other pieces."""
    contents = chance.sample(ADDED, chance.randint(1, 4))
    first = chance.choice([size, size, 3, size + 50])
    ids = list(range(first, first + len(contents)))
    chance.shuffle(ids)
    return dict(zip(contents, ids))


def write_vocabulary(chance, name, tokenizer, folder):
    if name in ("BertTokenizer", "GPT2Tokenizer", "RobertaTokenizer") and chance.random() < 0.5:
        if name == "BertTokenizer":
            words = sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])
            (folder / "vocab.txt").write_text("".join(word + "\n" for word, _ in words), encoding="utf-8")
        else:
            tokenizer.model.save(str(folder))
        return
    if chance.random() < 0.5:
        tokenizer.post_processor = drawn_template(chance, tokenizer)
    for content in chance.sample(ADDED, chance.choice([0, 0, 1, 2])):
        tokenizer.add_tokens([AddedToken(content, special=chance.random() < 0.5, normalized=chance.random() < 0.5)])
    tokenizer.save(str(folder / "tokenizer.json"))
    root = json.loads((folder / "tokenizer.json").read_text())
    change = chance.random()
    if change < 0.1:
        root["added_tokens"] = []
    elif change < 0.2:
        for token in root["added_tokens"]:
            token["id"] = chance.choice([token["id"], chance.randrange(700)])
    (folder / "tokenizer.json").write_text(json.dumps(root))


def check(chance, folder):
    name = chance.choice(sorted(CLASSES))
    tokenizer = CLASSES[name]()
    write_vocabulary(chance, name, tokenizer, folder)
    size = tokenizer.get_vocab_size()
    settings = {"tokenizer_class": name + chance.choice(["", "Fast"]) if "PreTrained" not in name else name, **drawn_roles(chance), **drawn_extras(chance)}
    if name == "NllbTokenizer":
        settings |= chance.choice([{}, {"additional_special_tokens": ["eng_Latn", "fra_Latn"]}])
        settings |= chance.choice([{}, {"src_lang": "fra_Latn"}, {"legacy_behaviour": True}])
    if name == "MBart50Tokenizer" or name == "MBartTokenizer":
        settings |= chance.choice([{}, {"src_lang": "de_DE"}])
    if chance.random() < 0.3:
        settings["added_tokens_decoder"] = {
            str(id): {"content": content, "lstrip": False, "rstrip": chance.random() < 0.2, "normalized": chance.random() < 0.5,
                      "single_word": False, "special": chance.random() < 0.5} for content, id in drawn_ids(chance, size).items()}
    own = METASPACE_TYPES if name == "NllbTokenizer" else TYPES_OF[type(tokenizer.model).__name__]
    config = {"model_type": chance.choice(MODEL_TYPES + own + ["gpt2", "bert", "t5"])}
    place = chance.random()
    if place < 0.2 and (folder / "tokenizer.json").exists():
        config["tokenizer_class"] = settings.pop("tokenizer_class")
    elif place < 0.3 and (folder / "tokenizer.json").exists():
        settings.pop("tokenizer_class")
        config["model_type"] = chance.choice(MODEL_TYPES + own)
    if chance.random() < 0.6:
        (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if chance.random() < 0.4:
        (folder / "special_tokens_map.json").write_text(json.dumps({**drawn_roles(chance), **drawn_extras(chance)}))
    if chance.random() < 0.5:
        (folder / "added_tokens.json").write_text(json.dumps(drawn_ids(chance, size)))
    try:
        reference = AutoTokenizer.from_pretrained(folder)
        lines = [" ".join(chance.choice([chance.choice(CORPUS).split()[0], *chance.sample(ADDED, 2)]) for _ in range(6)) for _ in range(10)]
        expected = [reference(line)["input_ids"] for line in lines]
    except Exception:
        return NO_REFERENCE
    done = tzoo("tokenizer", "encode", "--json", "--model", folder, stdin="".join(line + "\n" for line in lines))
    if done.returncode:
        return refused_by_name(done, "tokenizer_config.json", "special_tokens_map.json", "added_tokens", "has no token", "src_lang", "unk_token")
    for line, found, ids in zip(lines, done.stdout.split("\n"), expected):
        said = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json") if path.name not in ("tokenizer.json", "vocab.json")}
        assert json.loads(found) == ids, f"{said}: {line!a} gives {found} instead of {ids}"
    return EQUAL
