"""What scripts share that compute cases by a seed, beside one another in processes of one thread."""

import argparse
import concurrent.futures
import datetime
import multiprocessing
import pathlib
import subprocess
import sys
import warnings

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tier import SHORT  # noqa: E402


def day_of_commit():
    """Other cases with each day's commits; the same commit always has the same, so that its verdict does not change."""
    found = subprocess.run(["git", "log", "-1", "--format=%cd", "--date=format:%Y%m%d"], cwd=pathlib.Path(__file__).parent,
                           capture_output=True, text=True)
    return int(found.stdout or datetime.date.today().strftime("%Y%m%d"))


def flags(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1 if SHORT else day_of_commit())
    parser.add_argument("--workers", type=int, default=2)
    return parser


def be_quiet():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def processes(count):
    return concurrent.futures.ProcessPoolExecutor(count, multiprocessing.get_context("fork"))
