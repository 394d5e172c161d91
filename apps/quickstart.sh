#!/usr/bin/env bash
# From a fresh clone to a small GPT that has learnt to write: sets up, builds tzoo, trains on the King James Bible,
# writes a few lines with the model and exports it. Everything it makes lies in runs/quickstart, which a second
# run makes anew.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
tzoo=build/apps/tzoo
run=runs/quickstart

show() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
tzoo() {
  show tzoo "$@"
  "$tzoo" "$@"
}

third_party/install.sh
third_party/build.sh build tzoo -DCMAKE_BUILD_TYPE=Release -DZOO_SANITIZE=
built=$SECONDS

rm -rf "$run"
tzoo train --recipe kjv-char --out_dir "$run"
trained=$SECONDS
tzoo generate --model "$run/final" --prompt "In the beginning " --max_new_tokens 300 --temperature 0.8 --seed 1
tzoo export --model "$run/final" --format torchscript --output "$run/kjv.pt" --verify

cat <<END

Done in $SECONDS s: $built s to set up and build, $((trained - built)) s to train.

  $run/loss.png         how the loss fell
  $run/metrics.jsonl    the same in numbers
  $run/final/           the model, in Hugging Face's layout
  $run/kjv.pt           the model for torch.jit.load, with nothing of ours

What to try next:

  export PATH="$root/build/apps:\$PATH"
  tzoo generate --model $run/final --prompt "And God said" --temperature 0.5
  tzoo train --init_from resume --out_dir $run --max_iters 4000
  tzoo train --recipe kjv-char --dataset YOUR.txt --out_dir runs/yours
  tzoo models
  tzoo --help
END
