#!/usr/bin/env bash
# From nothing to a model that answers: texts -> tokenizer -> pretraining -> conversations -> preferences -> report card,
# 3,700 updates of 2,048 tokens, an hour on two cores of 2.5 GHz. apps/quickstart.sh --chat installs, builds and runs this.
# A stage that is done is not done again, one that was interrupted goes on from its last checkpoint.
#
#   apps/chat/train.sh                  in runs/chat
#   apps/chat/train.sh --effort 5       5 percent of the updates: a quick look
#   apps/chat/train.sh --out_dir DIR    in another folder
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
run=$root/runs/chat
effort=100
while (($#)); do
  case $1 in
    --effort) effort=${2:-} ;;
    --out_dir) run=${2:-} ;;
    *) printf 'error: unknown flag %s; there are --effort PERCENT and --out_dir DIR\n' "$1" >&2 && exit 2 ;;
  esac
  (($# > 1)) || { printf 'error: %s needs a value\n' "$1" >&2 && exit 2; }
  shift 2
done
[[ $effort =~ ^[1-9][0-9]{0,3}$ ]] || { printf 'error: --effort %s: expected a percentage of at least 1\n' "$effort" >&2 && exit 2; }
[[ -n $run ]] || { printf 'error: --out_dir needs a folder\n' >&2 && exit 2; }

tzoo() {
  printf '\n\033[1m$ tzoo'
  printf ' %q' "$@"
  printf '\033[0m\n'
  "$root/build/apps/tzoo" "$@"
}

# updates N: as many as the effort leaves of N.
updates() { echo $((($1 * effort + 99) / 100)); }

# stage NAME FLAGS...: a training, unless it is done; its seconds go to NAME.seconds, in all of its parts.
stage() {
  local name=$1 began=$SECONDS
  shift
  [[ -e $run/$name.done ]] && return
  if compgen -G "$run/$name/checkpoints/step-*" >/dev/null; then
    tzoo train --init_from resume --out_dir "$run/$name"
  else
    tzoo train --out_dir "$run/$name" --overwrite "$@"
  fi
  echo $((SECONDS - began)) >>"$run/$name.seconds"
  touch "$run/$name.done"
}

data=$run/data
mkdir -p "$data"
if [[ ! -e $data/done ]]; then
  wordnet=${WNSEARCHDIR:-/usr/share/wordnet}
  [[ -e $wordnet/data.noun ]] ||
    { printf 'error: WordNet is not there; apt-get install wordnet-base, or set WNSEARCHDIR to its folder\n' >&2 && exit 1; }
  kjv=$("$root/build/apps/tzoo" data get kjv)
  awk -v folder="$wordnet" -v count=12000 -f "$here/definitions.awk" >"$data/definitions.tsv"
  awk -f "$here/texts.awk" "$kjv" "$data/definitions.tsv" >"$data/documents.jsonl"
  awk -v folder="$data" -v count=20000 -v words=1500 -f "$here/conversations.awk" "$data/definitions.tsv"
  { cat "$kjv" && tr '\t' ' ' <"$data/definitions.tsv" && cut -d '"' -f 10,18 "$data/chats.jsonl"; } >"$data/text.txt"
  tzoo tokenizer train --kind byte_bpe --pattern qwen2 --vocab_size 4096 --special_tokens '<|user|>' --special_tokens '<|assistant|>' \
    --input "$data/text.txt" --out_dir "$run/tokenizer" --overwrite
  touch "$data/done"
fi

# Qwen3's layers: 6.5 million parameters.
stage pretraining --dataset "$data/documents.jsonl" --documents pack --tokenizer "$run/tokenizer" --model_type qwen3 \
  --n_layer 6 --n_head 4 --n_kv_head 2 --n_embd 256 --n_inner 704 --block_size 256 --batch_size 8 --optimizer muon \
  --learning_rate 3e-3 --min_lr 1e-4 --max_iters "$(updates 2400)" --eval_interval "$(updates 300)" --eval_iters 20
stage conversations --task chat --init_from "$run/pretraining/final" --chat_template "$here/template.jinja" \
  --dataset "$data/chats.jsonl" --documents pack --block_size 256 --batch_size 8 --optimizer muon --learning_rate 2e-3 --min_lr 5e-5 \
  --max_iters "$(updates 1200)" --eval_interval "$(updates 200)" --eval_iters 20
stage preferences --task preference --init_from "$run/conversations/final" --dataset "$data/preferences.jsonl" --batch_size 16 \
  --block_size 256 --learning_rate 5e-6 --min_lr 5e-7 --warmup_iters 10 --max_iters "$(updates 100)" \
  --eval_interval "$(updates 50)" --eval_iters 10

"$here/report.sh" "$run"

cat <<END

  $run/report.html    what each stage learned
  tzoo chat $run/preferences/final
  tzoo serve --model $run/preferences/final    the same in a browser
END
