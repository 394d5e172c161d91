#!/usr/bin/env python3
"""Makes tokenizer/text/character_classes.txt: the Unicode tables as the engine of `tokenizers` knows them.

    python tests/golden/make_character_classes.py      (needs tokenizers)

The pre-tokenizers of the library ask a regular expression for \\p{L}, \\w and the like, and its engine holds the tables of
one version of Unicode (tiktoken's the same). Another version would cut the newest scripts elsewhere.
"""

import itertools
import pathlib
import re

import tokenizers
from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tokenizer" / "text" / "character_classes.txt"

CATEGORIES = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
              "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"]
SCRIPTS = ["Han", "Hiragana", "Katakana", "Hangul", "Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Devanagari", "Thai"]
# The sets of a list have no character in common.
LISTS = {
    "Category": {name: rf"\p{{{name}}}" for name in CATEGORIES},
    "Script": {name: rf"\p{{{name}}}" for name in SCRIPTS},
    "Space": {"In": r"\s"},
    # Properties without the categories that they are made of.
    "OtherAlphabetic": {"In": r"[\p{Alphabetic}&&[^\p{L}\p{Nl}]]"},
    "OtherUppercase": {"In": r"[\p{Uppercase}&&[^\p{Lu}]]"},
    "OtherLowercase": {"In": r"[\p{Lowercase}&&[^\p{Ll}]]"},
}
NONE = "X"
WIDTH = 118

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def members(pattern):
    splitter = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = set()
    for i in range(0, len(CHARACTERS), 4096):
        for piece, _ in splitter.pre_tokenize_str("".join(CHARACTERS[i:i + 4096])):
            found.update(map(ord, piece))
    return found


def runs(codes_of):
    """The names of the code points from 0 on, each with the length of its run: "Cc32ZsPo3ScPo"."""
    names = {code: name for name, codes in codes_of.items() for code in codes}
    every = (names.get(code, NONE) for code in range(max(names) + 1))
    result = [[name, len(list(run))] for name, run in itertools.groupby(every)]
    text = "".join(name + (str(count) if count > 1 else "") for name, count in result)
    # Capital and small letters take turns in many scripts.
    return re.sub(r"(?:LuLl)+(?:Lu(?![0-9]))?(?![0-9])", lambda turns: f"Lul{len(turns[0]) // 2}", text)


def lines(text):
    """Lines, each with as many runs as fit."""
    line = ""
    for run in re.findall("[A-Z][a-z]*[0-9]*", text):
        if len(line) + len(run) > WIDTH - 4:
            yield line
            line = ""
        line += run
    yield line


def main():
    parts = [f"Made by tests/golden/make_character_classes.py with tokenizers {tokenizers.__version__} (Unicode 16.0). "
             "Lists for for_each_range()."]
    for name, classes in LISTS.items():
        text = runs({name: members(pattern) for name, pattern in classes.items()})
        parts += [f"#: {name}", *lines(text)]
    OUT.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
