#!/usr/bin/env bash
# Installs what is needed, builds and runs the tests: all that a fresh clone needs.
#
#   tests/run.sh                  each part, family, verb and engine: 12 minutes on two cores after apps/quickstart.sh
#   tests/run.sh --all            more cases of each seed and table, and the tests that only that shows (label "long")
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
all=
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
  elif [[ $argument == --all ]]; then
    all=1
  else
    arguments+=("$argument")
  fi
done
if [[ $target == fuzzers && ! $fuzz_seconds =~ ^[1-9][0-9]*$ ]]; then
  printf 'error: --fuzz takes a number of seconds, got "%s"\n' "$fuzz_seconds" >&2
  exit 2
fi
# Tests chosen by name run whole, too.
if [[ ! $all && ${#arguments[@]} -eq 0 ]]; then
  export ZOO_TEST_SHORT=1
  arguments=(--label-exclude long)
fi
if [[ ! -f $folder/CMakeCache.txt ]]; then export ZOO_WERROR=${ZOO_WERROR:-ON}; fi

"$root/third_party/install.sh" --tests
installed=$SECONDS
"$root/third_party/build.sh" "$folder" "$target" -DZOO_BUILD_TESTS=ON "${options[@]}"
built=$SECONDS

cd "$folder"
if [[ $target == fuzzers ]]; then exec "$root/tests/fuzz/run.sh" "$folder/tests/fuzz" "$fuzz_seconds"; fi

# Fork servers (runner/README.md). They end with this script, which holds the other end of their standard input; where
# one is not there yet, or cannot be, its clients start the program themselves.
ZOO_FORK_SERVERS=$(mktemp -d /tmp/zoo-tests-XXXXXX)
export ZOO_FORK_SERVERS ZOO_TEST_TIMES=$folder/Testing/times
rm -f "$ZOO_TEST_TIMES"
trap 'rm -rf "$ZOO_FORK_SERVERS"' EXIT
mkfifo "$ZOO_FORK_SERVERS/alive"
exec 9<>"$ZOO_FORK_SERVERS/alive"
if [[ -f tests/runner/libfork_server.so ]]; then
  OMP_WAIT_POLICY=passive ZOO_FORK_SOCKET=$ZOO_FORK_SERVERS/tzoo LD_PRELOAD=$PWD/tests/runner/libfork_server.so \
    apps/tzoo <"$ZOO_FORK_SERVERS/alive" 9>&- &
fi
OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive HF_HUB_OFFLINE=1 "$root/third_party/interop/bin/python" \
  "$root/tests/runner/fork_server.py" "$ZOO_FORK_SERVERS/python" <"$ZOO_FORK_SERVERS/alive" 9>&- &

result=0
# One more than there are processors: many tests wait for a server, a signal or the disk.
ctest --output-on-failure --no-label-summary -j$(($(nproc) + 1)) "${arguments[@]}" 9>&- || result=$?
grep -ho 'SKIPPED: needs .*' Testing/Temporary/LastTest.log | sort | uniq -c || true
printf 'installing took %s s, building %s s, testing %s s\n' "$installed" $((built - installed)) $((SECONDS - built))
"$root/third_party/interop/bin/python" "$root/tests/runner/times.py" "$ZOO_TEST_TIMES" "${arguments[@]}" || result=1
exit $result
