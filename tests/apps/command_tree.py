"""The commands of tzoo and their flags, as its help lists them."""

import functools
import re
from typing import NamedTuple

from tzoo_runner import run


class Command(NamedTuple):
    words: tuple  # ("data", "make")
    help: str

    @property
    def name(self):
        return " ".join(("tzoo", *self.words))

    @property
    def flags(self):
        """Every flag without --help, under its own name only: "json" for --[no_]json."""
        return [name for _, name in re.findall(r"(?m)^  \[?--(\[no_\])?(\w+)", self.help) if name != "help"]

    @property
    def booleans(self):
        return re.findall(r"(?m)^  --\[no_\](\w+)", self.help)

    @property
    def choices(self):
        """The flags that take one of a few words, with these words."""
        found = re.findall(r"(?m)^  --(\w+) ([a-z0-9_-]+(?:\|[a-z0-9_-]+)+)(?=$| )", self.help)
        return {name: values.split("|") for name, values in found}


def names_in(help_text):
    """The verbs of a list of verbs."""
    return re.findall(r"(?m)^  ([a-z][a-z0-9-]*) ", help_text)


@functools.cache
def verbs_of(*words):
    return names_in(run(*words, "--help").out)


@functools.cache
def commands():
    """Those that have flags, however deep."""

    def below(words):
        text = run(*words, "--help").out
        if not text.startswith(" ".join(("usage: tzoo", *words, "VERB"))):
            return [Command(words, text)]
        return [command for name in names_in(text) for command in below((*words, name))]

    return below(())
