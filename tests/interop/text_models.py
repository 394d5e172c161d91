"""Small random models with tokenizers that are written down, for the tests of the verbs that read text."""

import json
import os
import pathlib
import subprocess

import tokenizers
import torch
import transformers

transformers.utils.logging.disable_progress_bar()

TEXTS = ["In the beginning God created the heaven and the earth.", "And God said, Let there be light!",
         "Ünïcode café in PARIS, 北京 🙂", "word", "and the earth was without form, and void; " * 3]
LETTERS = sorted(set("".join(TEXTS).lower()) - {" ", "ü", "ï", "é"})
WORDS = ["and", "the", "earth", "god", "beginning"]


def tzoo(*words, stdin=None, env=None, cwd=None):
    return subprocess.run([os.environ["TZOO"], *words], input=stdin, env=env, cwd=cwd, capture_output=True, text=True, timeout=300)


def lines(*words, stdin=None):
    done = tzoo(*words, stdin=stdin)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def wordpiece():
    """Written down, because a trained one numbers pieces of equal count by chance: words, letters, letters inside."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##in", "##ed", "##ght", *LETTERS,
              *("##" + letter for letter in LETTERS)]
    learnt = tokenizers.BertWordPieceTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, lowercase=True)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=learnt._tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        pad_token="[PAD]", mask_token="[MASK]", model_input_names=["input_ids", "token_type_ids", "attention_mask"])


def byte_level(**tokens):
    """GPT-2's kind: all bytes, a few merges, RoBERTa's special tokens and template if there is a cls_token."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "n"), ("an", "d"), ("Ġ", "and"), ("i", "n"), ("Ġ", "in")]
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *alphabet, *(a + b for a, b in merges)]
    engine = tokenizers.Tokenizer(tokenizers.models.BPE({piece: i for i, piece in enumerate(vocabulary)}, merges))
    engine.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = tokenizers.decoders.ByteLevel()
    if "cls_token" in tokens:
        engine.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0),
                                                                        add_prefix_space=False)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=engine, model_input_names=["input_ids", "attention_mask"],
                                                **tokens)


def configure(directory, tokenizer, **settings):
    """Sets attributes of a saved tokenizer, some of which save_pretrained leaves out of its file."""
    file = pathlib.Path(directory, "tokenizer_config.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    for name, value in settings.items():
        setattr(tokenizer, name, value)


def shaken(model, scale=0.4):
    """New weights are near zero: with these, outputs differ from input to input."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * scale)
    return model.eval()


def chat_gpt2(special):
    """A small GPT-2 of random weights with its tokenizer, which knows these special tokens and Hermes' marks of a call."""
    torch.manual_seed(1)
    tokenizer = byte_level(bos_token="<s>", eos_token="</s>")
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    tokenizer.add_tokens(["<tool_call>", "</tool_call>"])
    model = shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=4096, bos_token_id=0, eos_token_id=2)))
    return model, tokenizer


def sizes(tokenizer):
    return {"vocab_size": len(tokenizer), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 32}
