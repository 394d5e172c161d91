#!/usr/bin/env bash
# Installs the zoo's dependencies. It can be run again at any time; installed ones stay.
#
#   third_party/install.sh                what the build needs: Debian packages and LibTorch
#   third_party/install.sh --quickstart   also the text and the plotter that apps/quickstart.sh uses
#   third_party/install.sh --extras       also the other programs, libraries and texts that tzoo can use
#   third_party/install.sh --tests        all, and what the tests need, with a separate Python (third_party/interop)
#
# With Torch_DIR set to a LibTorch (its root, or the folder of TorchConfig.cmake) none is downloaded. CXX
# names the compiler; default: g++. Without apt-get, or without root and sudo, the script names what to
# install and checks what is installed.
set -euo pipefail

readonly torch_version=2.13.0 # the wheel that is fetched
readonly torch_minimum=2.13   # what Torch_DIR must offer
readonly torch_tag=311        # the Python whose wheel is taken where the system's own Python has none
readonly arrow_version=26.0.1 # apps/CMakeLists.txt names its library
readonly torch_index=https://download.pytorch.org/whl/cpu
readonly cmake_minimum=3.25
readonly gcc_minimum=12 clang_minimum=14
# The Python packages of --tests are pinned in requirements*.txt in this folder.

# for       | Debian package      | versions | the program, or the header in <>, that shows it | what is lost without it
readonly packages='
build       | cmake               | 3.25+    | cmake                                           |
build       | ninja-build         | 1.10+    | ninja                                           |
build       | g++                 | 12+      |                                                 |
build       | python3             | 3.11+    | python3                                         |
build       | python3-pip         | 22+      |                                                 |
build       | ca-certificates     |          |                                                 |
build       | libsentencepiece-dev| 0.1.97+  | <sentencepiece_trainer.h>                       |
build       | libicu-dev          | 67+      | <unicode/regex.h>                               |
build       | nlohmann-json3-dev  | 3.10+    | <nlohmann/json_fwd.hpp>                         |
build       | libssl-dev          | 1.1+     | <openssl/evp.h>                                 |
quickstart  | bible-kjv           | 4.38+    | bible                                           | the corpora kjv and kjv-groups, on which the quickstart trains
quickstart  | gnuplot-nox         | 5.4+     | gnuplot                                         | pictures: loss.png, the figures of "tzoo demo"
quickstart  | libcurl4-openssl-dev| 7.85+    | <curl/curl.h>                                   | "tzoo pull", which downloads models
quickstart  | libcpp-httplib-dev  | 0.11+    | <httplib.h>                                     | "tzoo serve", the server for programs that speak the API of OpenAI
quickstart  | libedit-dev         | 3.1+     | <editline/readline.h>                           | line editing and history in "tzoo chat" and "tzoo generate --interactive"
extra       | wordnet-base        | 3.0      |                                                 | "apps/quickstart.sh --chat", whose model learns what words mean
extra       | libyaml-cpp-dev     | 0.6+     | <yaml-cpp/yaml.h>                               | YAML in "tzoo evaluate --suite", which then reads JSON
extra       | zstd                | 1.4+     | zstd                                            | datasets that end in .zst
extra       | curl                | 7.74+    | curl                                            | "tzoo data get", which downloads corpora
test        | catch2              | 2.13+, 3 | <catch2/catch.hpp> or <catch2/catch_all.hpp>    |
test        | python3-venv        | 3.11+    |                                                 |
test        | git                 | 2.30+    | git                                             |
test        | clang-format        | 14+      | clang-format                                    |
test        | chromium            | 110+     | chromium                                        |
test        | chromium-driver     | 110+     | chromedriver                                    |
'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here libtorch=$here/libtorch interop=$here/interop arrow=$here/arrow compiler=${CXX:-g++}
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

# for_each_package FUNCTION: calls it with purpose, package, version, probe and loss.
for_each_package() {
  local purpose package version probe loss
  while IFS='|' read -r purpose package version probe loss; do
    [[ -z $purpose ]] ||
      "$1" "$(trim "$purpose")" "$(trim "$package")" "$(trim "$version")" "$(trim "$probe")" "$(trim "$loss")"
  done <<<"$packages"
}

# --- system packages -------------------------------------------------------------------------------------------

wanted() { [[ " $purposes " == *" $1 "* ]]; }

collect_missing_package() {
  wanted "$1" || return 0
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$2" 2>/dev/null) == installed ]] || missing+=("$2")
}

print_package() { if wanted "$1"; then printf '  %-22s%s\n' "$2" "$3"; fi; }

apt_install() {
  local -a as_root=(env DEBIAN_FRONTEND=noninteractive)
  if ((EUID != 0)); then as_root=(sudo "${as_root[@]}"); fi
  # Continue with stale or partly unreachable lists: the next command shows whether the packages are
  # available.
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
    say "Debian packages" "not installed, since this user is not root and there is no sudo. An administrator runs"
    echo "  apt-get install ${missing[*]}"
  else
    say "Debian packages" "installing ${missing[*]}"
    quietly "apt-get install ${missing[*]}" apt_install "${missing[@]}"
  fi
}

has_header() { "$compiler" -E -x c++ - <<<"#if !__has_include($1)"$'\n#error\n#endif' >/dev/null 2>&1; }

# is_there PROBE: a program, a header, or "<header> or <header>".
is_there() {
  local header
  case $1 in
    '') ;;
    '<'*) for header in ${1// or / }; do ! has_header "$header" || return 0; done && return 1 ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

check_package() {
  wanted "$1" && ! is_there "$4" || return 0
  if [[ -n $5 ]]; then
    say "$2" "not there; without it: no $5"
  else
    absent+=("$2 ($([[ $4 == '<'* ]] && echo "the header" || echo "the program") $4)")
  fi
}

check_compiler() {
  command -v "$compiler" >/dev/null || fail "missing: the compiler $compiler (Debian's package g++; CXX names another)"
  local minimum=$gcc_minimum found
  if "$compiler" --version | grep -qi clang; then minimum=$clang_minimum; fi
  found=$("$compiler" -dumpfullversion -dumpversion) || found=
  [[ $found ]] || fail "$compiler does not run as a C++ compiler (CXX names another)"
  at_least "$found" $minimum || fail "gcc $gcc_minimum or clang $clang_minimum is needed, or a newer one; $compiler is $found"
}

# Checks that the programs and headers are installed, by any means, and new enough.
check_packages() {
  local -a absent=()
  check_compiler
  for_each_package check_package
  if ((${#absent[@]} > 0)); then
    fail "missing: $(printf '%s, ' "${absent[@]}" | sed 's/, $//')"
  fi

  local found
  found=$(cmake --version | sed -n '1s/[^0-9]*//p')
  at_least "$found" $cmake_minimum || fail "cmake $cmake_minimum or newer is needed, this one is $found"
}

# --- LibTorch --------------------------------------------------------------------------------------------------

# The version of the LibTorch in a folder; nothing if there is none.
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

# pip_torch PYTHON OPTION...: the CPU wheel from the first index that has it. Its version ends in "+cpu", because PyPI's
# plain one is the CUDA build: gigabytes, and linked against libraries that --no-deps leaves out. PyTorch's own index of
# CPU wheels has had both kinds of versions.
pip_torch() {
  local python=$1
  shift
  local -a pip=("$python" -m pip install --disable-pip-version-check --no-deps --no-compile --only-binary=:all:)
  "${pip[@]}" "$@" "torch==$torch_version+cpu" ||
    "${pip[@]}" "$@" --index-url $torch_index "torch==$torch_version"
}

unpack_wheel() (
  python=$(python_with_pip)
  # Pip unpacks in TMPDIR first. In this folder, the next run removes the leftovers of an interrupted one.
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

  # torch/ is moved last, so that its presence means a complete installation.
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

# --- Arrow -----------------------------------------------------------------------------------------------------

# Its C++ libraries and headers are in the wheel, as LibTorch's are in torch's. Without it: no tzoo-parquet.
install_arrow() {
  local python
  if [[ -f $arrow/.$arrow_version ]]; then
    say "Arrow $arrow_version" "already there"
    return
  fi
  say "Arrow $arrow_version" "fetching the wheel (about 50 MB)"
  rm -rf "$arrow"
  python=$(python_with_pip)
  quietly "pip install pyarrow==$arrow_version" "$python" -m pip install --disable-pip-version-check --no-deps --no-compile \
    --only-binary=:all: --target "$arrow" "pyarrow==$arrow_version"
  touch "$arrow/.$arrow_version"
}

# --- Python for the tests --------------------------------------------------------------------------------------

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

# Prefers the Python that the wheel in libtorch/ is for, so that torch need not be installed twice.
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
    # Relative to its folder, so that the tree can be moved.
    echo ../../../../libtorch >"$interop/lib/python$(python_version "$python")/site-packages/libtorch.pth"
  else
    # If no index has the CPU wheel for this Python, the CUDA build with all its libraries: gigabytes.
    pip_torch "$interop/bin/python" || "$interop/bin/python" -m pip install --disable-pip-version-check \
      --only-binary=:all: "torch==$torch_version" || return
  fi
  "$interop/bin/python" -c 'import numpy, safetensors, sentencepiece, tokenizers, torch, transformers'
}

install_interop() {
  local python torch stamp
  read -r python torch < <(choose_test_python)
  [[ -n $python ]] || exit 1
  stamp="$(python_version "$python") torch $torch_version ($torch) $(cat "$here"/requirements*.txt | cksum)"
  # The stamp is written last: without it, the folder is from an interrupted run.
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
  local purposes=build argument
  for argument; do
    case $argument in
      --quickstart) purposes+=' quickstart' ;;
      --extras) purposes+=' quickstart extra' ;;
      --tests) purposes+=' quickstart extra test' ;;
      *) fail "unknown option $argument; there are --quickstart, --extras and --tests" ;;
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
  if wanted extra; then install_arrow; fi
  if wanted test; then install_interop; fi
  rm -f "$log"
  echo "third_party/install.sh took $SECONDS s"
}

main "$@"
