#!/usr/bin/env bash
# Trains a small GPT from a fresh clone: installs dependencies, builds tzoo, trains on the King James Bible,
# generates text with the model and exports it. The results are in runs/quickstart; a second run replaces
# them.
#
#   apps/quickstart.sh                       two to three minutes of training
#   apps/quickstart.sh --max_iters 50        flags of "tzoo train" override the recipe's, here for a quick look
#   apps/quickstart.sh --dataset YOUR.txt    your own text
#   apps/quickstart.sh --chat                instead a model that answers questions, in about an hour (apps/chat/train.sh)
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

if [[ ${1:-} == --chat ]]; then third_party/install.sh --extras; else third_party/install.sh --quickstart; fi
installed=$SECONDS
third_party/build.sh build tzoo -DCMAKE_BUILD_TYPE=Release -DZOO_SANITIZE= -DZOO_BUILD_TESTS=OFF
built=$SECONDS

if [[ ${1:-} == --chat ]]; then exec apps/chat/train.sh "${@:2}"; fi

rm -rf "$run"
tzoo train --recipe kjv-char --out_dir "$run" "$@"
trained=$SECONDS
tzoo generate --model "$run/final" --prompt "In the beginning " --max_new_tokens 230 --temperature 0.6 --seed 1
tzoo export --model "$run/final" --format torchscript --output "$run/kjv.pt" --verify
tzoo export --model "$run/final" --format html --output "$run/kjv.html"

cat <<END

Done in $SECONDS s: $installed s to install, $((built - installed)) s to build, $((trained - built)) s to train.

  $run/loss.png         the loss curve
  $run/metrics.jsonl    the same in numbers
  $run/final/           the model, as a Hugging Face directory
  $run/kjv.pt           the model as TorchScript: torch.jit.load needs nothing else
  $run/kjv.html         the model as a page: open it in a browser, or mail it to somebody

What to try next:

  export PATH="$root/build/apps:\$PATH"
  tzoo generate --model $run/final --prompt "And God said" --temperature 0.5
  tzoo train --init_from resume --out_dir $run --max_iters 4000
  tzoo train --recipe kjv-char --dataset YOUR.txt --out_dir runs/yours
  tzoo models
  tzoo --help
END
