#!/usr/bin/env python3
"""Makes python_classes.json: the characters that Python's `re` takes for `\\d`, `\\w`, `\\s` and `.`, of those that its Unicode has.

    python3 tests/golden/make_python_classes.py
"""

import json
import pathlib
import re
import unicodedata

OUT = pathlib.Path(__file__).resolve().parent / "python_classes.json"
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def ranges(fits):
    found = []
    for c in CHARACTERS:
        if not fits(chr(c)):
            continue
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def main():
    classes = {"assigned": ranges(lambda c: unicodedata.category(c) != "Cn")}
    for expression in (r"\d", r"\w", r"\s", "."):
        classes[expression] = ranges(re.compile(expression).fullmatch)
    OUT.write_text(json.dumps({"unicode": unicodedata.unidata_version, **classes}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
