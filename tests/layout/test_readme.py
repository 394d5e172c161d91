"""Runs the commands that a README shows.

    test_readme.py ROOT TZOO README...

Every ```sh block is run, in order, in one empty directory with tzoo on PATH; the first command that fails is the
test's failure. Commands that set up (git, cmake, cd, export, apt-get) are left out, and so are scripts of the tree
(apps/quickstart.sh): of those it is checked that they exist and can be run. An HTML comment before a block makes it
quick, unseen by the reader:
    <!-- test: --max_iters 20 -->           is appended to every `tzoo train` of the block
    <!-- test before: seq 9 > numbers -->   is run before the block ($ROOT is the tree)
"""

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import readme_blocks

WRAPPER = """#!/bin/sh
if [ "$1" = train ]; then exec {tzoo} "$@" $TRAIN_FLAGS; fi
exec {tzoo} "$@"
"""


class Failure(Exception):
    pass


def check_script(root, script):
    path = root / script
    if not path.is_file():
        raise Failure(f"there is no {script}")
    if path.suffix != ".py" and not os.access(path, os.X_OK):
        raise Failure(f"{script} cannot be executed")


def run_shell(text, directory, environment):
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise Failure(f"exit status {done.returncode} of:\n{text}\n{output[-4000:]}")


def run_block(block, root, directory, environment):
    """Returns how many commands it ran. They share a shell, so that a variable set in one is there in the next."""
    script, count = block.before, 0
    for _, command in block.commands:
        if readme_blocks.is_setup(command):
            continue
        named = readme_blocks.script_of_tree(command)
        if named:
            check_script(root, named)
        else:
            script += command + "\n"
            count += 1
    run_shell(script, directory, environment | {"TRAIN_FLAGS": block.train_flags})
    return count


def run_readme(root, tzoo, readme):
    """Returns (blocks, commands run). Raises Failure, which names the line."""
    try:
        blocks = readme_blocks.read_blocks((root / readme).read_text(encoding="utf-8"))
    except ValueError as error:
        raise Failure(f"{readme}: {error}") from None
    count = 0
    with tempfile.TemporaryDirectory(prefix="zoo-readme-") as scratch:
        programs, work = pathlib.Path(scratch, "bin"), pathlib.Path(scratch, "work")
        programs.mkdir()
        work.mkdir()
        wrapper = programs / "tzoo"
        wrapper.write_text(WRAPPER.format(tzoo=shlex.quote(str(tzoo))))
        wrapper.chmod(0o755)
        environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(root)}
        for block in blocks:
            try:
                count += run_block(block, root, work, environment)
            except Failure as failure:
                raise Failure(f"{readme}:{block.line}: {failure}") from None
    return len(blocks), count


def main():
    root, tzoo = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    failures = 0
    for readme in sys.argv[3:]:
        try:
            blocks, commands = run_readme(root, tzoo, readme)
            if readme == "README.md" and commands == 0:
                raise Failure("README.md shows no command that could be run")
            print(f"{readme}: {blocks} blocks, {commands} commands run")
        except Failure as failure:
            print(f"error: {failure}", file=sys.stderr)
            failures += 1
    sys.exit(int(failures > 0))


if __name__ == "__main__":
    main()
