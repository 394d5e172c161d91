#!/usr/bin/env bash
# Configures and builds, for apps/quickstart.sh and tests/run.sh:
#   third_party/build.sh FOLDER TARGET [CMAKE OPTION...]
# Warnings are errors with ZOO_WERROR=ON in the environment.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$1 target=$2
shift 2

# A file that includes LibTorch takes up to 2.5 GB to compile: as many at once as there are cores and memory for.
compile_jobs() {
  local -r per_job=$((2500 * 1024)) # KiB
  local jobs memory limit
  jobs=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit != max ]] && ((limit / 1024 < memory)); then memory=$((limit / 1024)); fi
  if ((memory / per_job < jobs)); then jobs=$((memory / per_job)); fi
  echo $((jobs > 0 ? jobs : 1))
}

options=(-G Ninja "$@")
if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
if [[ -n ${ZOO_WERROR:-} ]]; then options+=("-DZOO_WERROR=$ZOO_WERROR"); fi

cmake -S "$root" -B "$folder" "${options[@]}"
cmake --build "$folder" --target "$target" -j "$(compile_jobs)"
