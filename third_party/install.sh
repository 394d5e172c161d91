#!/usr/bin/env bash
# Puts everything in place that the zoo is built from. Run it as often as you like: what is there stays.
#
#   third_party/install.sh           Debian packages and LibTorch
#   third_party/install.sh --tests   also the Python on the other side of the tests (third_party/interop)
#
# With Torch_DIR set to a LibTorch (its root, or the folder of TorchConfig.cmake) none is downloaded.
# On a system without apt-get it says what to install and checks what is there.
set -euo pipefail

readonly torch_version=2.13.0 # the wheel that is fetched
readonly torch_minimum=2.13   # what Torch_DIR must offer
readonly torch_tag=311        # the Python whose wheel is taken where the system's own Python has none
readonly torch_index=https://download.pytorch.org/whl/cpu
readonly cmake_minimum=3.25
readonly gxx_minimum=12
# The Python packages of --tests are pinned in requirements*.txt, beside this file.

# Debian package | versions that work | the program, or the header in <>, that shows it is there
readonly packages='
cmake                | 3.25+         | cmake
ninja-build          | 1.10+         | ninja
g++                  | 12+           | g++
python3              | 3.11+         | python3
python3-venv         | 3.11+         |
python3-pip          | 22+           |
libsentencepiece-dev | 0.1.97+       | <sentencepiece_trainer.h>
libicu-dev           | 67+           | <unicode/regex.h>
nlohmann-json3-dev   | 3.10+         | <nlohmann/json_fwd.hpp>
catch2               | 2.13+, not 3  | <catch2/catch.hpp>
libssl-dev           | 1.1+          | <openssl/evp.h>
gnuplot-nox          | 5.4+          | gnuplot
libopenmpi-dev       | 4.1+          |
openmpi-bin          | 4.1+          |
bible-kjv            | 4.38+         | bible
wordnet-base         | 3.0           |
curl                 | 7.74+         | curl
ca-certificates      |               |
git                  | 2.30+         | git
clang-format         | 14+           | clang-format
'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here libtorch=$here/libtorch interop=$here/interop
readonly partial=$libtorch/.partial log=$libtorch/.install.log

say() { printf '%-24s %s\n' "$1:" "$2"; }

fail() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}

# quietly WHAT COMMAND...: the command's output is shown only if it fails.
quietly() {
  local what=$1
  shift
  "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    fail "$what failed; its output is above"
  }
}

# at_least FOUND WANTED: compares version numbers.
at_least() { [[ $(printf '%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

trim() { local text=${1#"${1%%[! ]*}"} && printf '%s' "${text%"${text##*[! ]}"}"; }

# for_each_package FUNCTION: calls it with package, version and probe.
for_each_package() {
  local package version probe
  while IFS='|' read -r package version probe; do
    [[ -z $package ]] || "$1" "$(trim "$package")" "$(trim "$version")" "$(trim "$probe")"
  done <<<"$packages"
}

# --- system packages -------------------------------------------------------------------------------------------

collect_missing_package() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]] || missing+=("$1")
}

print_package() { printf '  %-22s%s\n' "$1" "$2"; }

apt_install() {
  local -a as_root=(env DEBIAN_FRONTEND=noninteractive)
  if ((EUID != 0)); then as_root=(sudo "${as_root[@]}"); fi
  # Stale or partly unreachable lists are no reason to stop: whether the packages can be had shows next.
  "${as_root[@]}" apt-get update || true
  "${as_root[@]}" apt-get install --yes --no-install-recommends "$@"
}

install_packages() {
  local -a missing=()
  if ! command -v apt-get >/dev/null; then
    say "system packages" "no apt-get here; these are needed (Debian's names):"
    for_each_package print_package
    return
  fi
  for_each_package collect_missing_package
  if ((${#missing[@]} == 0)); then
    say "Debian packages" "already there"
  elif ((EUID != 0)) && ! command -v sudo >/dev/null; then
    say "Debian packages" "neither root nor sudo; an administrator installs them with"
    echo "  apt-get install ${missing[*]}"
  else
    say "Debian packages" "installing ${missing[*]}"
    quietly "apt-get install ${missing[*]}" apt_install "${missing[@]}"
  fi
}

collect_missing_probe() {
  case $3 in
    '') ;;
    '<'*) headers+="$1|$3"$'\n' ;;
    *) command -v "$3" >/dev/null || absent+=("$1 (the program $3)") ;;
  esac
}

# Whatever installed them: are the programs and headers there, and new enough?
check_packages() {
  local -a absent=()
  local headers='' package header source=''
  for_each_package collect_missing_probe
  if command -v g++ >/dev/null; then
    while IFS='|' read -r package header; do
      [[ -z $package ]] || source+="#if !__has_include($header)"$'\n'"$package (the header $header)"$'\n#endif\n'
    done <<<"$headers"
    while read -r package; do absent+=("$package"); done < <(g++ -std=c++20 -E -P -x c++ - <<<"$source" | grep . || true)
  fi
  if ((${#absent[@]} > 0)); then
    fail "missing: $(printf '%s, ' "${absent[@]}" | sed 's/, $//')"
  fi

  local found
  found=$(cmake --version | sed -n '1s/[^0-9]*//p')
  at_least "$found" $cmake_minimum || fail "cmake $cmake_minimum or newer is needed, this one is $found"
  found=$(g++ -dumpfullversion -dumpversion)
  at_least "$found" $gxx_minimum || fail "g++ $gxx_minimum or newer is needed, this one is $found"
}

# --- LibTorch --------------------------------------------------------------------------------------------------

# The version of the LibTorch in a folder; nothing where there is none.
libtorch_version() {
  local header
  for header in "$1/include/torch/headeronly/version.h" "$1/include/torch/version.h"; do
    [[ -f $header && -f $1/lib/libtorch_cpu.so ]] || continue
    sed -n -E 's/^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' "$header" | paste -s -d .
    return
  done
}

check_torch_dir() {
  local root version
  for root in "$Torch_DIR/../../.." "$Torch_DIR"; do
    version=$(libtorch_version "$root")
    [[ -n $version ]] || continue
    at_least "$version" $torch_minimum ||
      fail "Torch_DIR=$Torch_DIR holds LibTorch $version; $torch_minimum or newer is needed"
    say "LibTorch $version" "the one of Torch_DIR"
    return
  done
  fail "Torch_DIR=$Torch_DIR holds no LibTorch (no include/torch/version.h with lib/libtorch_cpu.so)"
}

# The first Python 3 that has pip.
python_with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  fail "python3 has no pip (Debian's package python3-pip)"
}

# pip_torch PYTHON OPTION...: the CPU wheel from the first index that has it. The version ends in "+cpu" because
# PyPI's plain one is the CUDA build: gigabytes, and linked against libraries that --no-deps leaves out.
pip_torch() {
  local python=$1
  shift
  local -a pip=("$python" -m pip install --disable-pip-version-check --no-deps --no-compile --only-binary=:all:)
  "${pip[@]}" "$@" "torch==$torch_version+cpu" || "${pip[@]}" "$@" --index-url $torch_index "torch==$torch_version+cpu"
}

unpack_wheel() (
  python=$(python_with_pip)
  # Pip unpacks in TMPDIR first: there, what an interrupted run leaves is cleared away by the next.
  mkdir -p "$partial/.tmp"
  export TMPDIR=$partial/.tmp
  # A Python too old or too new for the wheel can still unpack it: C++ needs only its lib, include and share.
  pip_torch "$python" --target "$partial" ||
    pip_torch "$python" --target "$partial" --upgrade --implementation cp --python-version $torch_tag \
      --abi cp$torch_tag --platform "manylinux_2_28_$(uname -m)"
)

install_libtorch() {
  if [[ $(libtorch_version "$libtorch/torch") == "$torch_version" ]]; then
    say "LibTorch $torch_version" "already there"
    return
  fi
  say "LibTorch $torch_version" "fetching the CPU wheel (about 200 MB)"
  rm -rf "$partial"
  quietly "pip install torch==$torch_version+cpu (from the configured indexes and from $torch_index)" unpack_wheel
  # PyTorch's own test programs; protoc and torch_shm_manager stay.
  find "$partial/torch/bin" -maxdepth 1 -type f -iname '*test*' -delete

  # torch/ goes last: where it is, everything is.
  rm -rf "$libtorch"/torch
  local entry
  for entry in "$partial"/*; do
    [[ ${entry##*/} == torch ]] && continue
    rm -rf "${libtorch:?}/${entry##*/}"
    mv "$entry" "$libtorch/"
  done
  sync -f "$partial"
  mv "$partial/torch" "$libtorch/torch"
  rm -rf "$partial"
}

# --- Python for the tests --------------------------------------------------------------------------------------

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

# Where the wheel in libtorch/ is for a Python that is here, that one, so that torch need not be installed twice.
choose_test_python() {
  local tag python module
  for module in "$libtorch"/torch/_C.cpython-3*.so; do
    [[ -f $module && -z ${Torch_DIR:-} ]] || continue
    tag=${module##*/_C.cpython-3}
    tag=3.${tag%%-*}
    for python in python3 /usr/bin/python3 "python$tag"; do
      if [[ $(python_version "$python") == "$tag" ]] && "$python" -c 'import ensurepip' 2>/dev/null; then
        echo "$python shared"
        return
      fi
    done
  done
  echo "$(python_with_pip) own"
}

fill_interop() {
  local python=$1 torch=$2
  "$python" -m venv "$interop" || return
  "$interop/bin/python" -m pip install --disable-pip-version-check --only-binary=:all: \
    -r "$here/requirements.txt" || return
  "$interop/bin/python" -m pip install --disable-pip-version-check --only-binary=:all: --no-deps \
    -r "$here/requirements-no-deps.txt" || return
  if [[ $torch == shared ]]; then
    # Relative to the folder it lies in, so that the tree can be moved.
    echo ../../../../libtorch >"$interop/lib/python$(python_version "$python")/site-packages/libtorch.pth"
  else
    pip_torch "$interop/bin/python" || return
  fi
  "$interop/bin/python" -c 'import numpy, safetensors, sentencepiece, tokenizers, torch, transformers'
}

install_interop() {
  local python torch stamp
  read -r python torch < <(choose_test_python)
  [[ -n $python ]] || exit 1
  stamp="$(python_version "$python") torch $torch_version ($torch) $(cat "$here"/requirements*.txt | cksum)"
  # The stamp is written last: without it the folder is a torso of an interrupted run.
  if [[ -f $interop/.complete && $(<"$interop/.complete") == "$stamp" ]] && "$interop/bin/python" -c '' 2>/dev/null; then
    say "Python for the tests" "already there"
    return
  fi
  say "Python for the tests" "installing third_party/requirements.txt"
  rm -rf "$interop"
  quietly "setting up third_party/interop" fill_interop "$python" "$torch"
  echo "$stamp" >"$interop/.complete"
}

# ---------------------------------------------------------------------------------------------------------------

main() {
  local tests=no argument
  for argument; do
    case $argument in
      --tests) tests=yes ;;
      *) fail "unknown option $argument; there is --tests and nothing else" ;;
    esac
  done

  mkdir -p "$libtorch"
  exec 9>"$libtorch/.lock"
  if command -v flock >/dev/null && ! flock --nonblock 9; then
    echo "another third_party/install.sh is at work; waiting for it"
    flock 9
  fi

  install_packages
  check_packages
  if [[ -n ${Torch_DIR:-} ]]; then check_torch_dir; else install_libtorch; fi
  if [[ $tests == yes ]]; then install_interop; fi
  rm -f "$log"
  echo "third_party/install.sh took $SECONDS s"
}

main "$@"
