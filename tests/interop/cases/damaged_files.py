"""tokenizer.json, config.json, generation_config.json and the files of Sentence-Transformers with other values, flipped
bytes or a part cut off: tzoo works or prints one error line of its own words, and no signal ends it."""

import json

from test_hostile_json import FILES, TOKENIZER_JSON, mutated
from tiny_checkpoint import write_checkpoint

from cases.outcome import EQUAL, REFUSED, tzoo

LINES = "[CLS]a b ab xx\n"


def damaged(text, chance):
    """Bytes of the text with a few changed, or its beginning."""
    text = bytearray(text.encode())
    if chance.random() < 0.2:
        return bytes(text[:chance.randrange(len(text))])
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(text))
        text[place] = chance.choice([chance.randrange(256), text[place] ^ 1 << chance.randrange(8), *b'"{}[],:0-e'])
    return bytes(text)


def check(chance, folder):
    write_checkpoint(str(folder), n_layer=1)
    (folder / "1_Pooling").mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER_JSON))
    name, root, commands = chance.choice(FILES)
    if root is None:
        root = json.loads((folder / name).read_text())
    if chance.random() < 0.5:
        content = json.dumps(mutated(root, chance)).encode()
    else:
        content = damaged(json.dumps(root), chance)
    (folder / name).write_bytes(content)
    verb = chance.choice(commands)
    place = 2 if verb[0] == "tokenizer" else 1
    done = tzoo(*verb[:place], "--model", folder, *verb[place:], stdin=LINES)
    return REFUSED if done.returncode else EQUAL
