"""The command blocks of a README, and which of their lines a test can run."""

import dataclasses
import re
import shlex

# Whatever precedes the program: "VARIABLE=value program".
ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
FENCE = re.compile(r"^\s*```+\s*(\w*)")
DIRECTIVE = re.compile(r"<!--\s*test(\s+before)?:(.*?)-->", re.DOTALL)

# They fetch, build or install; tests/run.sh has done so before a test runs.
SETUP_PROGRAMS = {"git", "cmake", "cd", "export", "sudo", "apt-get"}
# Names that a block of commands must not have, because it would then go untested.
OTHER_SHELLS = {"bash", "shell", "zsh", "console"}


@dataclasses.dataclass
class Block:
    line: int  # of its first command in the README
    commands: list  # (line, text); a command continued with \ is one text
    train_flags: str = ""  # appended to every `tzoo train`
    before: str = ""  # run first, unseen by the reader


def join_continued(lines, first_line):
    commands, text, start = [], "", first_line
    for number, line in enumerate(lines, first_line):
        start = start if text else number
        text += line
        if line.endswith("\\"):
            text += "\n"
            continue
        if text.strip() and not text.strip().startswith("#"):
            commands.append((start, text))
        text = ""
    if text.strip():
        commands.append((start, text.rstrip("\\\n")))
    return commands


def read_blocks(text):
    """The ```sh blocks of a README with the directives before them. Raises ValueError for a block in another shell."""
    blocks, lines, index, pending = [], text.splitlines(), 0, ""
    while index < len(lines):
        fence = FENCE.match(lines[index])
        if not fence:
            pending += lines[index] + "\n"
            index += 1
            continue
        kind, first = fence[1], index + 1
        index = first
        while index < len(lines) and not FENCE.match(lines[index]):
            index += 1
        if index == len(lines):
            raise ValueError(f"line {first}: the block has no end")
        if kind in OTHER_SHELLS:
            raise ValueError(f"line {first}: the block is ```{kind}; commands are ```sh, their output ```text")
        if kind == "sh":
            block = Block(first + 1, join_continued(lines[first:index], first + 1))
            for before, value in DIRECTIVE.findall(pending):
                if before:
                    block.before += value.strip() + "\n"
                else:
                    block.train_flags += value.strip() + " "
            blocks.append(block)
        pending, index = "", index + 1
    return blocks


def script_of_tree(command):
    """The file of the tree that a command runs ("tests/run.sh"); None where it runs a program."""
    words = [w for w in shlex.split(command.replace("\\\n", " "), comments=True) if not ASSIGNMENT.match(w)]
    if words and words[0].endswith("/python") and len(words) > 1:
        words = words[1:]
    return words[0] if words and "/" in words[0] else None


def is_setup(command):
    words = [w for w in shlex.split(command.replace("\\\n", " "), comments=True) if not ASSIGNMENT.match(w)]
    return not words or words[0] in SETUP_PROGRAMS
