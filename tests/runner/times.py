"""Prints where a run's processor time went, and holds each test of a whole run to its share.

    times.py FILE [CTEST'S ARGUMENTS]

FILE has a line for each process measured: microseconds, a tab, the test's name. A test that takes half as much again as
its share fails the run: it has grown, and the next one will too, until nobody runs them. Make it smaller; if what it
tests is worth more, say so in SHARES. Shares do not depend on how fast the machine is, but somewhat on its kind, which
decides what kernels there are to try.
"""

import collections
import pathlib
import sys

EACH = 2.0  # percent of the run's processor time
SHARES = {
    "apps: faulty_disk": 3.0,
    "apps: test_bench_verb": 6.0,
    "apps: test_demo_verb": 5.0,  # each demo of the tutorials
    "apps: test_load_memory": 5.0,
    "apps: test_train_families": 6.0,  # of --all, where it trains all families
    "apps: test_train_parallel": 8.0,  # each launcher, two to four processes at a time; local steps, shards
    "apps: test_train_verb": 3.0,
    "interop: conformance": 7.0,
    "interop: parity_table": 10.0,  # of --all, where half of the table is made
    "interop: test_decoding": 4.0,
    "interop: test_gguf": 4.0,
    "interop: test_page": 3.0,
    "interop: test_pt2": 3.0,
    "interop: test_tokenizers": 4.0,
    "package: another project finds, links and runs an installed zoo": 8.0,  # compiles five programs
}
GROWN = 1.5
# Arguments of a whole run, in which shares mean something.
WHOLE = ([], ["--label-exclude", "long"])


def read(path):
    seconds = collections.Counter()
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        microseconds, test = line.split("\t")
        seconds[test] += int(microseconds) / 1e6
    return seconds


def too_large(seconds):
    """(test, percent, allowed) of each test above its share."""
    whole = sum(seconds.values())
    shares = ((test, 100 * used / whole, SHARES.get(test, EACH)) for test, used in seconds.items())
    return [(test, share, allowed) for test, share, allowed in shares if share > GROWN * allowed]


def main():
    seconds = read(sys.argv[1])
    print(f"{len(seconds)} tests took {sum(seconds.values()):.0f} s of processor time; the ten slowest:")
    for test, used in seconds.most_common(10):
        print(f"  {used:7.1f} s  {100 * used / sum(seconds.values()):4.1f} %  {test}")
    faults = too_large(seconds) if sys.argv[2:] in WHOLE else []
    for test, share, allowed in faults:
        print(f"error: {test} took {share:.1f} % of the processor time; its share is {allowed:.1f} % (tests/runner/times.py)")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
