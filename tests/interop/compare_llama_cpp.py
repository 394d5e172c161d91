"""tzoo beside llama.cpp on GGUF files: token ids of texts, logits and greedy ids. Run by hand, with a Python that has
llama_cpp_python (which compiles for ten minutes); TZOO names the program.

    TZOO=build/apps/tzoo python tests/interop/compare_llama_cpp.py FILE.gguf …

With --quantize TYPE, llama.cpp first writes each file again in that type (Q4_K_M, Q5_K_M, Q6_K, Q8_0, …).
"""

import argparse
import ctypes
import json
import os
import random
import subprocess
import sys
import tempfile

import llama_cpp
import numpy as np

TEXTS = ["And God said, Let there be light", "Hello  world  it's 12345 tests — naïve café", "   ", "don't I'LL 3.14!",
         "And they said unto him,\tWhere is Sarah thy wife? ✓ 日本語"]
# Beside float weights; llama.cpp multiplies quantized weights by activations that it rounds to 8 bits.
CLOSE, CLOSE_QUANTIZED = 2e-5, 4e-2
NEW_TOKENS = 24


def tzoo(*words, text=""):
    done = subprocess.run([os.environ["TZOO"], *words], input=text, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"tzoo {' '.join(words)}: {done.stderr}")
    return done.stdout


def quantized(path, kind, folder):
    target = os.path.join(folder, f"{os.path.basename(path)}-{kind}.gguf")
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    options.allow_requantize, options.nthread = True, 2
    if llama_cpp.llama_model_quantize(path.encode(), target.encode(), ctypes.byref(options)) != 0:
        sys.exit(f"llama.cpp does not quantize {path}")
    return target


def texts_with_other_ids(model, path):
    other = []
    for text in TEXTS:
        theirs = model.tokenize(text.encode(), add_bos=True, special=True)
        ours = json.loads(tzoo("tokenizer", "encode", "--model", path, "--json", text=text + "\n"))
        if ours != theirs:
            other.append((text, ours, theirs))
    return other


def without_repacking():
    """llama.cpp's own layouts of quantized weights need instructions that not every machine lets a program use."""
    defaults = llama_cpp.llama_model_default_params

    def params():
        values = defaults()
        values.use_extra_bufts = False
        return values

    llama_cpp.llama_cpp.llama_model_default_params = llama_cpp.llama_model_default_params = params


def last_logits(model, ids):
    model.reset()
    model.eval(ids)
    return np.array(model._scores[-1])


def forced_ids(model, path, prompt, exact):
    """Our greedy ids, and how many of them are llama.cpp's choice after the same tokens. Where the two best logits are
    closer than rounding, both are right."""
    ours = json.loads(tzoo("generate", "--model", path, "--input_ids", json.dumps([prompt]), "--max_new_tokens", str(NEW_TOKENS),
                           "--temperature", "0", "--weights", "float32", "--json"))["ids"][0]
    good = 0
    for i, chosen in enumerate(ours):
        logits = last_logits(model, prompt + ours[:i])
        near = (CLOSE if exact else CLOSE_QUANTIZED) * np.abs(logits).max()
        good += bool(logits[chosen] >= logits.max() - near)
    return ours, good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--quantize", metavar="TYPE")
    arguments = parser.parse_args()
    without_repacking()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for source in arguments.files:
            path = quantized(source, arguments.quantize, folder) if arguments.quantize else source
            model = llama_cpp.Llama(path, n_ctx=128, n_threads=2, logits_all=True, verbose=False)
            kinds = {"F32", "F16", "BF16"}
            exact = set(json.loads(tzoo("inspect", path, "--json"))["dtypes"]) <= kinds and not arguments.quantize
            other = texts_with_other_ids(model, path)
            draw = random.Random(1)
            total = right = 0
            for length in (1, 5, 12):
                prompt = [draw.randrange(3, model.n_vocab()) for _ in range(length)]
                ours, good = forced_ids(model, path, prompt, exact)
                total, right = total + len(ours), right + good
            print(f"{os.path.basename(path)}: texts {len(TEXTS) - len(other)} of {len(TEXTS)}, greedy ids {right} of {total}",
                  flush=True)
            for text, ours, theirs in other:
                print(f"  {text!r}: ours {ours}, theirs {theirs}")
            failed = failed or bool(other) or right != total
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
