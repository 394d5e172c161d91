#!/usr/bin/env python3
"""Makes tokenizer/text/character_class_ranges.h: the Unicode tables as the engine of `tokenizers` knows them.

    python tests/golden/make_character_classes.py      (needs tokenizers)

The pre-tokenizers of the library ask a regular expression for \\p{L}, \\w and the like, and its engine holds the tables of
one version of Unicode (tiktoken's the same). Another version would cut the newest scripts elsewhere.
"""

import pathlib
import textwrap

import tokenizers
from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tokenizer" / "text" / "character_class_ranges.h"

CATEGORIES = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
              "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"]
SCRIPTS = ["Han", "Hiragana", "Katakana", "Hangul", "Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Devanagari", "Thai"]
# Properties, without the categories that they are made of where there are such.
CLASSES = {name: rf"\p{{{name}}}" for name in CATEGORIES + SCRIPTS} | {
    "Space": r"\s",
    "OtherAlphabetic": r"[\p{Alphabetic}&&[^\p{L}\p{Nl}]]",
    "OtherUppercase": r"[\p{Uppercase}&&[^\p{Lu}]]",
    "OtherLowercase": r"[\p{Lowercase}&&[^\p{Ll}]]",
}

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def members(pattern):
    splitter = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = set()
    for i in range(0, len(CHARACTERS), 4096):
        for piece, _ in splitter.pre_tokenize_str("".join(CHARACTERS[i:i + 4096])):
            found.update(map(ord, piece))
    return sorted(found)


def ranges(codes):
    """(first, last, step): upper and lower case take turns in many scripts, hence the steps of two."""
    result, i = [], 0
    while i < len(codes):
        ends = []
        for step in (1, 2):
            j = i
            while j + 1 < len(codes) and codes[j + 1] - codes[j] == step:
                j += 1
            ends.append((j, -step))
        last, step = max(ends)
        result.append((codes[i], codes[last], -step if last > i else 1))
        i = last + 1
    return result


def written(first, last, step):
    end = f",0x{last:X}" if last > first else ""
    return f"{{0x{first:X}{end}{',2' if step == 2 else ''}}}"


def main():
    parts = [
        "#pragma once",
        f"// Made by tests/golden/make_character_classes.py with tokenizers {tokenizers.__version__} (Unicode 16.0).",
        '#include "tokenizer/text/character_class.h"\n',
        "namespace zoo {\n",
        "// clang-format off",
    ]
    for name, pattern in CLASSES.items():
        codes = members(pattern)
        rows = ",".join(written(*each) for each in ranges(codes))
        rows = textwrap.fill(rows.replace("},{", "}, {"), 118, initial_indent="  ", subsequent_indent="  ")
        parts.append(f"inline constexpr CharacterRange k{name}Ranges[] = {{\n{rows}}};")
    parts += ["// clang-format on\n", "}  // namespace zoo"]
    OUT.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
