#!/usr/bin/env bash
# report.sh RUN: the report card of a run of train.sh, as RUN/report.md and RUN/report.html, with the examination of each
# stage and ten turns of conversation. An examination that is there already is not held again.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tzoo=$here/../../build/apps/tzoo
run=$1
kinds=(arithmetic order spelling books words)

# last FILE KEY: the newest value of a key in metrics.jsonl.
last() { awk -v key="\"$2\":" '{ at = index($0, key); if (at) { value = substr($0, at + length(key)); sub(/[,}].*/, "", value) } } END { print value }' "$1"; }

# examination STAGE: exact answers per kind, as percentages, one line each.
examination() {
  local kind
  for kind in "${kinds[@]}"; do
    cat >"$run/data/$kind.yaml" <<END
task: $kind
dataset_path: json
dataset_kwargs: {data_files: {test: test-$kind.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "<|user|>{{question}}<|assistant|>"
doc_to_target: answer
target_delimiter: ""
generation_kwargs: {until: ["<|endoftext|>"], max_gen_toks: 60}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
END
    [[ -e $run/$1/$kind.json ]] ||
      "$tzoo" evaluate --model "$run/$1/final" --suite "$run/data/$kind.yaml" --json >"$run/$1/$kind.json"
    last "$run/$1/$kind.json" value
  done
}

# conversation MODEL: each question answered after the ones before it.
conversation() {
  local messages='' question answer
  while IFS= read -r question; do
    messages+="${messages:+, }{\"role\": \"user\", \"content\": \"$question\"}"
    answer=$("$tzoo" chat --model "$1" --messages - --temperature 0 --max_new_tokens 60 <<<"[$messages]")
    messages+=", {\"role\": \"assistant\", \"content\": \"$(sed 's/[\\"]/\\&/g' <<<"$answer" | tr '\n' ' ')\"}"
    printf '> %s\n\n%s\n\n' "$question" "$answer"
  done <<'END'
Who are you?
What can you do?
What is 27 + 48?
What is 81 - 36?
How do you spell garden?
Put these numbers in order: 7 3 9 1
Say these numbers backwards: 4 8 2
Which book comes after Ruth?
Is Romans in the Old or the New Testament?
What does water mean?
END
}

minutes() { awk '{ sum += $1 } END { printf "%.1f", sum / 60 }' "$1"; }

{
  printf '# A model from nothing\n\n'
  printf '| stage | minutes | updates | validation loss |\n|---|---|---|---|\n'
  for stage in pretraining conversations preferences; do
    metrics=$run/$stage/metrics.jsonl
    printf '| %s | %s | %s | %.3f |\n' "$stage" "$(minutes "$run/$stage.seconds")" "$(last "$metrics" iter)" "$(last "$metrics" val_loss)"
  done
  printf '\nThe text of the pretraining has %.2f bits per byte; in the preferences, %.0f %% of the right answers are above the wrong one.\n' \
    "$(last "$run/pretraining/metrics.jsonl" val_bits_per_byte)" \
    "$(awk -v share="$(last "$run/preferences/metrics.jsonl" val_rewards_accuracies)" 'BEGIN { print 100 * share }')"
  printf '\n## Examination\n\nQuestions that were in no training, answered exactly:\n\n| kind | conversations | preferences |\n|---|---|---|\n'
  paste -d ' ' <(printf '%s\n' "${kinds[@]}") <(examination conversations) <(examination preferences) |
    awk '{ printf "| %s | %.0f %% | %.0f %% |\n", $1, 100 * $2, 100 * $3 }'
  printf '\n## What the pretrained model writes\n\n'
  "$tzoo" generate --model "$run/pretraining/final" --prompt 'In the beginning ' --max_new_tokens 60 --temperature 0.7 --seed 1 2>/dev/null |
    sed 's/^/> /'
  printf '\n## Ten turns\n\n'
  conversation "$run/preferences/final"
  for stage in pretraining conversations; do printf '![The loss of %s](%s/loss.png)\n\n' "$stage" "$stage"; done
} >"$run/report.md.part"
mv "$run/report.md.part" "$run/report.md"
awk -v folder="$run" -f "$here/page.awk" "$run/report.md" >"$run/report.html.part"
mv "$run/report.html.part" "$run/report.html"
