"""Cases drawn by a seed: what tzoo computes from a directory, a file or a schema equals the reference, or tzoo refuses it
and its message names what it refuses.

    conformance.py                                 900 cases by the day's date, 300 of them directories
    conformance.py --cases 20000 --seed 7          more, by another seed
    conformance.py --seed 7 --only schemas:12      one case again, as a failure prints it
"""

import collections
import concurrent.futures
import os
import pathlib
import random
import sys
import tempfile
import time

os.environ |= {"OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}  # the cases run beside one another

import seeded_run  # noqa: E402
import torch  # noqa: E402

from cases import (configurations, damaged_files, generation_files, schemas, sentence_directories, tables,  # noqa: E402
                   text_pipelines, tokenizer_directories, tokenizer_pipelines, weight_names)

# check(chance, folder) of a kind gives "equal", "refused" (by name) or "no reference" (the other side refuses it) and
# raises AssertionError for everything else.
KINDS = {
    "configurations": configurations.check,
    "generation_files": generation_files.check,
    "tokenizer_pipelines": tokenizer_pipelines.check,
    "tokenizer_directories": tokenizer_directories.check,
    "sentence_directories": sentence_directories.check,
    "schemas": schemas.check,
    "tables": tables.check,
    "text_pipelines": text_pipelines.check,
    "damaged_files": damaged_files.check,
    "weight_names": weight_names.check,
}
# Cases of each kind in a hundred.
SHARES = {"configurations": 16, "weight_names": 6, "generation_files": 15, "tokenizer_pipelines": 16,
          "tokenizer_directories": 8 if seeded_run.SHORT else 43,
          "sentence_directories": 8, "schemas": 10, "tables": 9, "text_pipelines": 6, "damaged_files": 6}


def run(kind, seed, number):
    """The verdict of a case and, if it is "different", why."""
    chance = random.Random(f"{seed} {kind} {number}")
    torch.manual_seed(chance.getrandbits(32))
    with tempfile.TemporaryDirectory() as folder:
        try:
            return KINDS[kind](chance, pathlib.Path(folder)), ""
        except Exception as fault:  # a fault of the script itself is no reason to lose the other cases
            return "different", f"{type(fault).__name__}: {str(fault)[:4000]}"


def chosen_cases(arguments):
    """(kind, number) of each case; kinds alternate, so that slow ones are not left to the end."""
    if arguments.only and ":" in arguments.only:
        kind, number = arguments.only.split(":")
        return [(kind, int(number))]
    if arguments.only:
        return [(arguments.only, number) for number in range(arguments.cases)]
    cases = [(kind, number) for kind, share in SHARES.items() for number in range(arguments.cases * share // 100)]
    random.Random(arguments.seed).shuffle(cases)
    return cases


def main():
    parser = seeded_run.flags(__doc__)
    parser.add_argument("--cases", type=int, default=200 if seeded_run.SHORT else 700)
    parser.add_argument("--only", help=f"a kind, or KIND:NUMBER for one case; kinds: {', '.join(KINDS)}")
    arguments = parser.parse_args()
    seeded_run.be_quiet()
    cases = chosen_cases(arguments)
    print(f"{len(cases)} cases by the seed {arguments.seed}", flush=True)
    counts, begin = collections.defaultdict(collections.Counter), time.monotonic()
    with seeded_run.processes(arguments.workers) as workers:
        verdicts = {workers.submit(run, kind, arguments.seed, number): (kind, number) for kind, number in cases}
        for done in concurrent.futures.as_completed(verdicts):
            (kind, number), (verdict, why) = verdicts[done], done.result()
            counts[kind][verdict] += 1
            if why:
                print(f"--seed {arguments.seed} --only {kind}:{number}: {why}", flush=True)
    for kind, found in counts.items():
        print(f"{kind}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items())))
    print(f"{time.monotonic() - begin:.0f} s")
    # A kind without an equal case compares nothing.
    blind = [kind for kind, found in counts.items() if sum(found.values()) > 20 and not found["equal"]]
    for kind in blind:
        print(f"error: no case of {kind} is equal")
    return int(bool(blind) or any(found["different"] for found in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
