#!/usr/bin/env bash
# A speedrun: how fast a model of 4 layers of 128 features learns the King James text to a validation loss of 1.45 nats
# per character. Each row adds one idea to the rows above it and has as many updates as it needs; the learning rate
# falls to its end in them. To add an idea, add a row, and lower its updates for as long as the mean of three seeds
# reaches the target.
#
#   apps/recipes/speedrun.sh            all rows with seeds 1 to 3, on a machine that does nothing else
#   apps/recipes/speedrun.sh muon qk    these rows
#   SEEDS="1 2" THREADS=1 apps/recipes/speedrun.sh
set -euo pipefail

tzoo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/apps/tzoo
target=1.45
read -r -a seeds <<<"${SEEDS:-1 2 3}"
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

# name; updates; flags that are added to those of the rows above; idea
rows='
adamw;    2700; --model_type gpt2 --no_bias --block_size 64 --batch_size 16 --learning_rate 2e-3; GPT-2 and AdamW, the recipe of 2019
muon;     1100; --optimizer muon --learning_rate 3e-3;  Muon for the matrices (Jordan et al., 2024)
llama;    660;  --model_type llama --n_inner 344;       rotary positions, RMSNorm, SwiGLU (Touvron et al., 2023)
qk;       550;  --model_type qwen3;                     norms of queries and keys (Henry et al., 2020)
context;  510;  --block_size 128 --batch_size 8;        half of the rows, each twice as long
kv;       520;  --n_kv_head 1;                          one head of keys and values (Shazeer, 2019)
momentum; 475;  --momentum 0.9;                         a shorter memory of Muon, for a short run
batch;    585;  --batch_size 6;                         fewer tokens per update
'

train() {  # ROW SEED UPDATES FLAG…: prints the loss and the milliseconds of an update
  local run=$runs/$1-$2
  "$tzoo" train --dataset kjv --tokenizer char --n_layer 4 --n_head 4 --n_embd 128 --min_lr 1e-4 \
    --eval_interval "$3" --eval_iters 100 --max_iters "$3" --seed "$2" --threads "${THREADS:-2}" --out_dir "$run" \
    "${@:4}" >"$run.log" 2>&1 || { cat "$run.log" >&2; return 1; }
  sed -nE '$s/.*"val_loss":([0-9.]+).*/loss \1/p; s/.*"ms_per_iter":([0-9.]+).*/ms \1/p' "$run/metrics.jsonl" |
    awk '$1 == "loss" { loss = $2 } $1 == "ms" && ++n > 3 { sum += $2 } END { print loss, sum / (n - 3) }'
}

echo "| row | updates | losses of seeds ${seeds[*]} | mean | ms per update | seconds | idea |"
echo "|---|---|---|---|---|---|---|"
flags=()
while IFS=';' read -r name updates added idea; do
  [[ $name ]] || continue
  read -r -a added <<<"$added"
  flags+=("${added[@]}")
  if (($#)) && [[ " $* " != *" $name "* ]]; then continue; fi
  for seed in "${seeds[@]}"; do train "$name" "$seed" "$((updates))" "${flags[@]}"; done |
    awk -v row="$name" -v updates="$((updates))" -v idea="$idea" -v target="$target" '
      { losses = losses sprintf(" %.3f", $1); mean += $1; ms += $2 }
      END { mean /= NR; ms /= NR; sub(/^ */, "", idea)
            printf "| %s | %d |%s | %.3f%s | %.1f | %.0f | %s |\n", row, updates, losses, mean,
                   (mean > target ? ": not reached" : ""), ms, updates * ms / 1000, idea }'
done <<<"$rows"
