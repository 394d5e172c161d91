#!/usr/bin/env python3
"""Cuts the power at each fsync of a command or fills the disk at each write, and looks that what is on the disk is whole.

    TZOO=build/apps/tzoo FAULTY_DISK=build/tests/apps/libfaulty_disk.so python3 tests/apps/faulty_disk.py [EVERY]

With EVERY, at each EVERY-th only. A full disk is one error, and nothing half-written stays. After a cut the disk holds one of two things: all that was synced and nothing else (names
of a directory that was not synced are the old ones), or all names, with the contents that were synced (a file that was
not is empty). From both a training goes on and ends with the weights of a run that nothing has cut; other commands leave
what was there before, nothing, or all that they write.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from tzoo_runner import PROGRAM as TZOO

TRAIN = ("--task seq2seq --block_size 8 --n_layer 1 --n_head 2 --n_embd 16 --dropout 0.1 --batch_size 4 --max_iters 30 --seed 3 "
         "--eval_interval 10 --eval_iters 1 --log_interval 5 --threads 1 --keep_checkpoints 2").split()


def identity(path):
    """As faulty_disk.cpp names what it keeps."""
    said = subprocess.run(["stat", "-c", "%i %W %w", path], check=True, capture_output=True, text=True).stdout.split()
    nanoseconds = said[3].split(".")[1] if "." in said[3] else "0"
    return f"{said[0]}-{said[1]}-{int(nanoseconds)}"


class Disk:
    """A folder for a command to write into, and what of it is synced."""

    def __init__(self, folder):
        self.folder, self.kept = folder / "disk", folder / "kept"
        self.folder.mkdir()
        self.kept.mkdir()

    def run(self, words, **faults):
        """Faults: cut and full, the numbers of an fsync and of a write; plain, 1: no exchange of two names."""
        environment = {**os.environ, "LD_PRELOAD": os.environ["FAULTY_DISK"], "FAULTY_DISK_DIR": str(self.kept)}
        environment |= {f"FAULTY_DISK_{name.upper()}": str(number) for name, number in faults.items()}
        return subprocess.run([TZOO, *words], cwd=self.folder, env=environment, capture_output=True, text=True)

    def content(self, name):
        path = self.kept / name
        return path.read_bytes() if path.exists() else b""

    def synced_names(self, folder, name):
        """Builds in `folder` what was synced of the directory `name`."""
        folder.mkdir()
        for line in self.content(name).decode().splitlines():
            kind, entry, kept = line.split("\t")
            if kind == "directory":
                self.synced_names(folder / entry, kept)
            elif kind == "link":
                (folder / entry).symlink_to(kept)
            else:
                (folder / entry).write_bytes(self.content(kept))

    def all_names(self, folder):
        """Builds in `folder` all names, with the contents that were synced."""
        shutil.copytree(self.folder, folder, symlinks=True)
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.write_bytes(self.content(identity(self.folder / path.relative_to(folder))))


def files(folder):
    """What stands in a folder, without what a later run removes or overwrites: its logs and what was half-written."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if ".tmp-" not in name}


def cut_everywhere(prepare, words, check, every):
    """Cuts the command at each fsync. prepare(folder) writes what is there before. check(after, before, when) refuses what is
    wrong with the folder `after` the cut; `before` it had all that was written."""
    number, cuts = 1, 0
    while True:
        with tempfile.TemporaryDirectory() as place:
            disk = Disk(pathlib.Path(place))
            prepare(disk.folder)
            os.sync()
            keep_all(disk)
            done = disk.run(words, cut=number)
            if done.returncode == 0:
                return cuts
            assert done.returncode == 9, f"cut at fsync {number}: ended with {done.returncode}: {done.stderr}"
            for build in (lambda target: disk.synced_names(target, identity(disk.folder)), disk.all_names):
                target = pathlib.Path(place) / "after"
                build(target)
                check(target, disk.folder, f"cut at fsync {number}")
                shutil.rmtree(target)
            cuts += 1
        number += every


def fill_everywhere(prepare, words, check, every):
    """Fills the disk at each write; check() as in cut_everywhere(), of the folder as it is."""
    number, times = 1, 0
    while True:
        with tempfile.TemporaryDirectory() as place:
            disk = Disk(pathlib.Path(place))
            prepare(disk.folder)
            done = disk.run(words, full=number)
            if done.returncode == 0:
                return times
            when = f"full at write {number}"
            errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
            assert done.returncode == 1 and len(errors) == 1, f"{when}: ended with {done.returncode}: {done.stderr}"
            assert "No space left on device" in errors[0], f"{when}: {done.stderr}"
            assert not (left := list(disk.folder.rglob("*.tmp-*"))), f"{when}: {left} are left"
            check(disk.folder, disk.folder, when)
            times += 1
        number += every


def keep_all(disk):
    """What was there before the command is synced."""
    for path in [disk.folder, *disk.folder.rglob("*")]:
        name = disk.kept / identity(path)
        if path.is_dir():
            lines = [("directory" if entry.is_dir() else "file", entry.name, identity(entry)) for entry in path.iterdir()]
            name.write_text("".join("\t".join(line) + "\n" for line in lines))
        else:
            name.write_bytes(path.read_bytes())


def pairs(folder):
    (folder / "pairs.tsv").write_text("".join(f"{a} {b}\t{b} {a}\n" for a in "abcde" for b in "fghi"))


def whole_run(words, prepare, output, **faults):
    """What the command writes to `output` if nothing cuts it."""
    with tempfile.TemporaryDirectory() as place:
        disk = Disk(pathlib.Path(place))
        prepare(disk.folder)
        done = disk.run(words, **faults)
        assert done.returncode == 0, done.stderr
        return files(disk.folder / output)


def training(every):
    words = ["train", *TRAIN, "--dataset", "pairs.tsv", "--out_dir", "runs/one"]

    def weights(**faults):
        return {name: data for name, data in whole_run(words, pairs, "runs/one", **faults).items() if name.endswith(".safetensors")}

    wanted = weights()
    assert weights(plain=1) == wanted, "without an exchange of names there are other files or weights"

    def steps(folder):
        return sorted(path.name for path in (folder / "runs/one/checkpoints").glob("step-*"))

    def check(after, before, when):
        # The newest may be written, but not yet safe.
        assert set(steps(before)[:-1]) <= set(steps(after)), f"{when}: {steps(before)} were written, {steps(after)} are left"
        begun = (after / "runs/one/run_config.json").exists()
        more = [*words, "--init_from", "resume"] if begun else words
        done = subprocess.run([TZOO, *more], cwd=after, capture_output=True, text=True)
        assert done.returncode == 0, f"{when}: {done.stderr}"
        found = files(after / "runs/one")
        for name in wanted:
            if name.startswith(("best/", "final/")):
                assert found[name] == wanted[name], f"{when}: {name} has other weights"

    return cut_everywhere(pairs, words, check, every), fill_everywhere(pairs, words, check, every)


def run(words, folder):
    done = subprocess.run([TZOO, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def writing(words, prepare, output, every, is_nothing=lambda found: not found):
    """A command that writes `output`, perhaps over an older one. With is_nothing(), what is left may also be no output."""
    with tempfile.TemporaryDirectory() as place:
        prepare(pathlib.Path(place))
        old = files(pathlib.Path(place) / output)
    new = whole_run(words, prepare, output)
    assert old != new, sorted(new)

    def check(after, before, when):
        found = files(after / output)
        assert found in (old, new) or is_nothing(found), f"{when}: {sorted(found)} are neither the old files nor the new"

    return cut_everywhere(prepare, words, check, every), fill_everywhere(prepare, words, check, every)


def report(what, times):
    print(f"{what}: {times[0]} power cuts, {times[1]} full disks", flush=True)


def main():
    every, began = int(sys.argv[1]) if len(sys.argv) > 1 else 1, time.time()
    report("training", training(every))
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        pairs(place)
        run(["train", *TRAIN, "--dataset", "pairs.tsv", "--out_dir", "run"], place)

        def trained(folder):
            (folder / "new").mkdir()
            shutil.copytree(place / "run/final", folder / "model")

        for form in ("huggingface", "torchscript"):
            words = ["export", "--model", "model", "--output", "new/out", "--format", form]
            report(f"export to {form}", writing(words, trained, "new", every))

    def prepared(folder):
        for name, text in (("old", "one two three "), ("new", "four five six ")):
            (folder / name).write_text(text * 50)
        run(["data", "prepare", "old", "--tokenizer", "char", "--out_dir", "tokens"], folder)

    words = ["data", "prepare", "new", "--tokenizer", "char", "--out_dir", "tokens", "--overwrite"]
    report("data prepare", writing(words, prepared, "tokens", every, lambda found: "train.bin" not in found))
    print(f"{time.time() - began:.0f} s: nothing lost, nothing half")


if __name__ == "__main__":
    main()
