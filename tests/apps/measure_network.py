#!/usr/bin/env python3
"""What an update of several hosts costs: measured between two network namespaces, and by the formula of apps/training/README.md.

Run by hand, as root, with iproute2:  python measure_network.py [--rates 100mbit 1gbit 10gbit] [--rounds 4]

Each namespace is a host with one rank of one thread; tc's tbf limits what each sends. The model is gpt-4x128 of tzoo bench. A figure is the
least of several stretches of updates, in ms per update, because other programs on the machine can only add to it.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile

PROGRAM = os.environ.get("TZOO_PROGRAM", str(pathlib.Path(__file__).parents[2] / "build/apps/tzoo"))
NAMES = ("tzoo-host-0", "tzoo-host-1")
SHAPE = dict(tokenizer="char", n_layer=4, n_head=4, n_embd=128, block_size=64, batch_size=12, bias="false", activation="gelu", threads=1, eval_iters=1,
             max_iters=100000, eval_interval=100000, lr_decay_iters=100000, always_save_checkpoint="false")
# Name, flags, updates of a stretch.
SCHEMES = (("plain", {}, 8), ("bfloat16 gradients", dict(gradient_wire="bfloat16"), 8), ("ZeRO-1", dict(shard_optimizer="true"), 8),
           ("local steps 8", dict(local_steps=8), 8), ("local steps 64", dict(local_steps=64), 64))


def update_ms(scheme, hosts, compute, size, bandwidth, latency, tensors=27):
    """The formula: ms of an update; compute and latency in ms, the size of the weights in bytes, the bandwidth in bytes per ms."""
    ring, hops = 2 * (hosts - 1) / hosts * size / bandwidth, 2 * (hosts - 1) * latency
    buckets, depth = math.ceil(size / (4 << 20)), math.ceil(math.log2(hosts))
    if scheme.startswith("local"):  # whether to stop is asked in each update, and answered during the next
        return max(compute, hops) + (ring + hops) / int(scheme.split()[-1])
    return compute + {"plain": ring, "bfloat16 gradients": ring / 2, "ZeRO-1": ring + depth * (size / bandwidth + tensors * latency)}[scheme] + (
        buckets + 1) * hops


def system(*words):
    subprocess.run(words, check=True)


def connect(rate):
    for name in NAMES:
        system("ip", "netns", "add", name)
    system("ip", "link", "add", "wire0", "netns", NAMES[0], "type", "veth", "peer", "name", "wire1", "netns", NAMES[1])
    for number, name in enumerate(NAMES):
        inside = ("ip", "netns", "exec", name)
        system(*inside, "ip", "link", "set", "lo", "up")
        system(*inside, "ip", "address", "add", f"10.9.8.{number + 1}/24", "dev", f"wire{number}")
        system(*inside, "ip", "link", "set", f"wire{number}", "up")
        if rate:
            system(*inside, "tc", "qdisc", "add", "dev", f"wire{number}", "root", "tbf", "rate", rate, "burst", "2mbit", "latency", "50ms")


def disconnect():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def least_ms(folder, ranks, flags, stretch, rounds):
    """The least ms per update of a stretch; with one rank, without a network."""
    flags = {**SHAPE, "dataset": folder / "text.txt", "out_dir": folder / "run", "overwrite": "true", "log_interval": stretch, **flags}
    if (steps := flags.get("local_steps")):
        flags.update(max_iters=100000 // steps * steps, eval_interval=100000 // steps * steps)
    words = [PROGRAM, "train", *(str(word) for key, value in flags.items() for word in (f"--{key}", value))]
    processes = []
    for rank in range(ranks):
        variables = dict(RANK=rank, WORLD_SIZE=ranks, LOCAL_RANK=0, MASTER_ADDR="10.9.8.1", MASTER_PORT=29544) if ranks > 1 else {}
        inside = ["ip", "netns", "exec", NAMES[rank]] if ranks > 1 else []
        processes.append(subprocess.Popen([*inside, *words], env={**os.environ, **{key: str(value) for key, value in variables.items()}},
                                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    rows = []
    for line in processes[0].stderr:
        if line.startswith("iter ") and not line.startswith("iter 0:"):
            rows.append(float(line.split("time ")[1].split("ms")[0]))
        if len(rows) == rounds:
            break
    for process in processes:
        process.kill()
        process.communicate()
    return min(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="*", default=["100mbit", "1gbit", "10gbit"])
    parser.add_argument("--rounds", type=int, default=4, help="stretches per figure")
    parser.add_argument("--latency", type=float, default=0.1, help="of the formula: ms from host to host")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .,:;!?-'\"$&3\n"
        (folder / "text.txt").write_text("".join(letters[i * i * 7919 % 104729 % len(letters)] for i in range(100000)))
        compute = least_ms(folder, 1, {}, 8, options.rounds)
        print(f"one host: {compute:.1f} ms")
        for rate in options.rates:
            bandwidth = float(rate[:-4]) * {"mbit": 1e6, "gbit": 1e9}[rate[-4:]] / 8 / 1000
            for scheme, flags, stretch in SCHEMES:
                try:
                    connect(rate)
                    measured = least_ms(folder, 2, flags, stretch, options.rounds)
                finally:
                    disconnect()
                size = 4 * 804_000
                formula = [update_ms(scheme, hosts, compute, size, bandwidth, options.latency) for hosts in (2, 8, 64, 1024)]
                print(json.dumps({"rate": rate, "scheme": scheme, "measured_ms": measured, "formula_ms": [round(ms, 1) for ms in formula]}), flush=True)


if __name__ == "__main__":
    main()
