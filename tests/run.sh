#!/usr/bin/env bash
# Installs what is needed, builds and runs the tests: all that a fresh clone needs.
#
#   tests/run.sh                  everything
#   tests/run.sh -R safetensors   ctest's arguments: the tests whose name matches
#   tests/run.sh --sanitize       in build-sanitize/, with the address and undefined-behaviour sanitizers
#   tests/run.sh --fuzz SECONDS   in build-fuzz/, each fuzzer that long (clang's libFuzzer with the same sanitizers)
#
# Warnings are errors, unless build/ is there from apps/quickstart.sh, whose objects are then used.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$root/build
options=(-DCMAKE_BUILD_TYPE=Release -DZOO_SANITIZE=)
arguments=()
target=all
fuzz_seconds=
# Undefined behaviour would otherwise be a line in the log of a test that passes, and refused memory the end of it.
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}
for argument; do
  if [[ $argument == --fuzz ]]; then
    command -v "${CXX:-clang++}" >/dev/null || { echo 'error: --fuzz needs clang (Debian: clang, libclang-rt-dev)' >&2; exit 1; }
    target=fuzzers
    folder=$root/build-fuzz
    options=(-DCMAKE_CXX_COMPILER="${CXX:-clang++}" -DCMAKE_BUILD_TYPE=RelWithDebInfo
             "-DZOO_SANITIZE=fuzzer-no-link,address,undefined")
  elif [[ $target == fuzzers ]]; then
    fuzz_seconds=$argument
  elif [[ $argument == --sanitize ]]; then
    folder=$root/build-sanitize
    options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo "-DZOO_SANITIZE=address,undefined")
    arguments+=(--exclude-regex test_load_memory)  # the sanitizers' own memory is counted there
  else
    arguments+=("$argument")
  fi
done
if [[ $target == fuzzers && ! $fuzz_seconds =~ ^[1-9][0-9]*$ ]]; then
  printf 'error: --fuzz takes a number of seconds, got "%s"\n' "$fuzz_seconds" >&2
  exit 2
fi
if [[ ! -f $folder/CMakeCache.txt ]]; then export ZOO_WERROR=${ZOO_WERROR:-ON}; fi

"$root/third_party/install.sh" --tests
started=$SECONDS
"$root/third_party/build.sh" "$folder" "$target" -DZOO_BUILD_TESTS=ON "${options[@]}"
printf 'installing took %s s, building %s s\n' "$started" $((SECONDS - started))

cd "$folder"
if [[ $target == fuzzers ]]; then exec "$root/tests/fuzz/run.sh" "$folder/tests/fuzz" "$fuzz_seconds"; fi
# Teams of two threads: those of every processor, several at a time, wait for one another most of the time.
jobs=$(nproc)
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
exec ctest --output-on-failure -j"$jobs" "${arguments[@]}"
