#!/usr/bin/env bash
# Runs each fuzzer of a build folder, one per core: tests/fuzz/run.sh FOLDER SECONDS (by tests/run.sh --fuzz).
# An input with a fault stays as FOLDER/fault-NAME-…; "FOLDER/fuzz_NAME FILE" shows it again.
set -euo pipefail

cd "$1"
jobs=$(nproc)
export seconds=$2 OMP_NUM_THREADS=1

fuzz() {
  local name=${1#./fuzz_} result=0
  mkdir -p "corpus/$name"
  TMPDIR=${TMPDIR:-/dev/shm} "$1" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=3000 -malloc_limit_mb=1000 \
    -artifact_prefix="fault-$name-" -print_final_stats=1 "corpus/$name" >"log-$name" 2>&1 || result=$?
  awk -v name="$name" '/ cov: / { coverage = $4 } /number_of_executed_units/ { inputs = $2 }
    END { printf "%-20s %9d inputs, %6d places reached\n", name, inputs, coverage }' "log-$name"
  if ((result)); then sed -n '/ERROR: \|runtime error: \|terminate called/,$p' "log-$name" | head -n 30 >&2; fi
  return "$result"
}
export -f fuzz

find . -maxdepth 1 -name 'fuzz_*' -type f -executable -print0 | sort -z | xargs -0 -n 1 -P "$jobs" bash -c 'fuzz "$0"'
