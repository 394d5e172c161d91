#!/usr/bin/env python3
"""What two hosts do when the cable between them is cut while they train: for some seconds, and for ever.

Run by hand, with iproute2 and util-linux, as any user who may make namespaces:  python cut_cable.py [--seconds 10] [--rank_timeout 30] [FLAG=VALUE ...]

Each network namespace is a host with one rank; the cable is a pair of virtual devices, of which one is taken down. Prints a line of JSON per
cut: how long the ranks then lived, what each printed, and whether one process goes on from the last checkpoint.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("TZOO_PROGRAM", str(pathlib.Path(__file__).parents[2] / "build/apps/tzoo"))
SHAPE = dict(tokenizer="char", n_layer=2, n_head=2, n_embd=32, block_size=32, batch_size=4, threads=1, eval_iters=1, eval_interval=20,
             max_iters=1000000, lr_decay_iters=1000000, log_interval=1)
INSIDE = "TZOO_CUT_CABLE"


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check)


class Hosts:
    """This network namespace and another, with a cable between them."""

    def __enter__(self):
        self.other = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.other.stdout.readline()
        self.inside = (["env"], ["nsenter", "-t", str(self.other.pid), "-n"])
        ip("link", "add", "wire0", "type", "veth", "peer", "name", "wire1", "netns", str(self.other.pid))
        for number, prefix in enumerate(self.inside):
            for words in (("link", "set", "lo", "up"), ("address", "add", f"10.9.8.{number + 1}/24", "dev", f"wire{number}"),
                          ("link", "set", f"wire{number}", "up")):
                subprocess.run([*prefix, "ip", *words], check=True)
        return self

    def __exit__(self, *_):
        self.other.kill()
        self.other.communicate()
        ip("link", "del", "wire0", check=False)

    def start(self, words, streams):
        """Both ranks; what they print goes to files, so that they wait for no reader."""
        return [subprocess.Popen([*prefix, *words], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0",
                                                         "MASTER_ADDR": "10.9.8.1", "MASTER_PORT": "29544"},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream)
                for rank, (prefix, stream) in enumerate(zip(self.inside, streams))]


def words_of(folder, flags):
    flags = {**SHAPE, "dataset": folder / "text.txt", "out_dir": folder / "run", **flags}
    return [PROGRAM, "train", *(str(word) for key, value in flags.items() for word in (f"--{key}", value))]


def updates(folder):
    path = folder / "run/metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def await_updates(folder, count, ranks, seconds=60):
    end = time.monotonic() + seconds
    while updates(folder) < count and all(rank.poll() is None for rank in ranks) and time.monotonic() < end:
        time.sleep(0.05)
    return updates(folder) >= count


def errors_of(stream):
    stream.seek(0)
    return [line for line in stream.read().splitlines() if line.startswith("error: ")]


def cut(folder, seconds, flags, timeout):
    """One training whose cable is cut; seconds: None for ever."""
    with Hosts() as hosts, contextlib.ExitStack() as ends:
        streams = [ends.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)]
        ranks = hosts.start(words_of(folder, {**flags, "rank_timeout": timeout}), streams)
        for rank in ranks:
            ends.callback(rank.wait)
            ends.callback(rank.kill)
        if not await_updates(folder, 45, ranks):
            sys.exit(f"the ranks did not train: {[errors_of(stream) for stream in streams]}")
        ip("link", "set", "wire0", "down")
        began, before = time.monotonic(), updates(folder)
        if seconds is not None:
            time.sleep(seconds)
            ip("link", "set", "wire0", "up")
        goes_on = seconds is not None and await_updates(folder, before + 20, ranks, 2 * timeout + 60)
        for rank in ranks if not goes_on else ():
            rank.wait(4 * timeout + 60)
        found = {"cut_s": seconds, "goes_on": goes_on, "after_s": round(time.monotonic() - began, 1),
                 "errors": [errors_of(stream) for stream in streams]}
    # Whole: one process goes on from the last checkpoint.
    last = max(int(path.name[5:]) for path in (folder / "run/checkpoints").glob("step-*"))
    alone = subprocess.run(words_of(folder, {**flags, "init_from": "resume", "max_iters": last + 1}), capture_output=True, text=True, check=False)
    return {**found, "checkpoint": last, "checkpoint_is_whole": alone.returncode == 0 or alone.stderr}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", nargs="*", type=float, default=[10], help="lengths of the cuts before the one for ever")
    parser.add_argument("--rank_timeout", type=int, default=30)
    parser.add_argument("flags", nargs="*", help="more flags of tzoo train, as shard=weights")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        os.execvpe("unshare", ["unshare", "-rn", sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})
    flags = dict(flag.split("=", 1) for flag in options.flags)
    for seconds in [*options.seconds, None]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            (folder / "text.txt").write_text("the old king of the red house and the new sea\n" * 400)
            print(json.dumps(cut(folder, seconds, flags, options.rank_timeout)), flush=True)


if __name__ == "__main__":
    main()
