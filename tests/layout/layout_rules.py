"""The rules of how the tree is laid out, as functions of paths and texts. test_layout.py applies them."""

import re

TOP_LEVEL = {"CMakeLists.txt", "README.md", "LICENSE", "apps", "data", "models", "tests", "third_party", "tokenizer"}

# The interface of tokenizer/, below the folders that implement it; load.cpp and stream_decoder lie above them.
TOKENIZER = [f"tokenizer/{name}" for name in ("encoding.h", "token_id.h", "tokenizer.h")]
PIPELINE = ["tokenizer/pipeline", "tokenizer/text", *TOKENIZER]

# Folder or file -> the folders or files whose headers it may include. The longest that a path begins with decides;
# data/base may be included by everybody. tests/ is free.
MAY_INCLUDE = {
    "data/base": [],
    "tokenizer/text": ["tokenizer/text"],
    **dict.fromkeys(TOKENIZER + ["tokenizer/encoding.cpp", "tokenizer/tokenizer.cpp"], ["tokenizer/text", *TOKENIZER]),
    "tokenizer/constraint": ["tokenizer/constraint", "tokenizer/text", *TOKENIZER],
    "tokenizer/pipeline": PIPELINE,
    "tokenizer/sentencepiece": ["tokenizer/sentencepiece", *PIPELINE],
    "tokenizer/learning": ["tokenizer/learning", *PIPELINE],
    "tokenizer/files": ["tokenizer/files", "tokenizer/sentencepiece", *PIPELINE],
    "tokenizer/jinja": ["tokenizer/jinja", *PIPELINE],
    "tokenizer/chat": ["tokenizer/chat", "tokenizer/constraint", "tokenizer/jinja", "tokenizer/files", *PIPELINE],
    "tokenizer": ["tokenizer"],
    "data/random": ["data/random"],
    "data/corpora": ["data/corpora", "tokenizer"],
    "data/examples": ["data/examples", "data/random", "tokenizer"],
    "data/tokens": ["data/tokens", "data/corpora", "data/random", "tokenizer"],
    "data": ["data", "tokenizer"],
    "models": ["models", "tokenizer/token_id.h"],
    "models/tasks": ["models", "tokenizer"],
    "apps/training": ["apps/training", "apps/plots", "data", "models", "tokenizer"],
    "apps": ["apps", "data", "models", "tokenizer"],
}

# The floors of models/, from the ground up: a file may include those of its own floor's part and of all floors below.
MODEL_FLOORS = [
    ["models/kernels/"],
    ["models/ops/"],
    ["models/layers/"],
    ["models/formats/"],
    ["models/gguf/gguf_"],
    ["models/heads/"],
    ["models/model_io."],
    ["models/model."],
    ["models/family."],
    ["models/decoder/", "models/encoder/", "models/encoder_decoder/"],
    ["models/families/"],
    ["models/registry."],
    ["models/checkpoint/"],
    ["models/gguf/save_gguf."],
    ["models/generation/"],
    ["models/analysis/", "models/inference/", "models/graph/"],
    ["models/script/", "models/pt2/", "models/onnx/"],
    ["models/tasks/"],
]

# The same of apps/: what the doors share, then the doors. The list of verbs knows the verbs that have folders of their own.
APP_FLOORS = [
    ["apps/command/"],
    ["apps/plots/"],
    ["apps/training/"],
    ["apps/hub/"],
    ["apps/answers/", "apps/compute/"],
    ["apps/serve/", "apps/demos/"],
    ["apps/verbs/"],
    ["apps/main."],
]

# The parts of models/ that call kernels.
CALL_KERNELS = ["models/kernels", "models/ops", "models/inference"]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)
# Not preceded by another part of a path: after "models" or "$HOME" it is not absolute.
HOME_PATH = re.compile(r"(?<![\w.~})-])/(?:home|root|work|workspace|Users)/\w")


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def floor_of(path, floors):
    """Floor and part of a file; (None, None) for one that is on no floor."""
    return next(((number, part) for number, floor in enumerate(floors) for part in floor
                 if path.startswith(part)), (None, None))


def own_include_problem(path, included):
    """Why `path` may not include our header `included`; None if it may."""
    folder = max((f for f in MAY_INCLUDE if within(path, f)), key=len, default=None)
    if folder is None:
        return None
    allowed = MAY_INCLUDE[folder] + ["data/base"]
    if not any(within(included, f) for f in allowed):
        return f"{folder}/ may include only {', '.join(f if f.endswith('.h') else f + '/' for f in allowed)}"
    if within(included, "models/families") and not within(path, "models/families"):
        return "families are reached through models/registry.h"
    if within(included, "models/kernels") and within(path, "models") and not any(within(path, f) for f in CALL_KERNELS):
        return "models/ops chooses between kernels and LibTorch's operators; the mathematics calls models/ops"
    for tree, floors in (("models", MODEL_FLOORS), ("apps", APP_FLOORS)):
        if not within(path, tree):
            continue
        (floor, part), (lower, other) = floor_of(path, floors), floor_of(included, floors)
        if within(included, tree) and (floor is None or lower is None):
            return f"{tree}/ has floors, and this file is on none: see layout_rules.py"
        if lower is not None and (lower > floor or lower == floor and part != other):
            return f"{part} stands below {other} or beside it: no include runs upwards"
    return None


def library_include_problem(path, included):
    """Why `path` may not include `included`, a header of somebody else's; None if it may."""
    # Precompiled for our own sources, included by no header.
    header = path.endswith(".h") and not path.endswith("/pch.h")
    tests = within(path, "tests")
    if included == "nlohmann/json.hpp" and header and not tests:
        return "only .cpp files include it; headers have nlohmann/json_fwd.hpp"
    if included.startswith("CLI/") and not (within(path, "apps") or tests):
        return "only apps/ has flags"
    if included == "torch/script.h" and not (within(path, "models/script") or tests):
        return "only models/script/ includes it"
    if included in ("torch/torch.h", "torch/nn.h") and header and not tests:
        return "too much for a header: it costs every file seven seconds; include the part that is needed"
    return None


def include_problems(path, text, exists):
    """One line for each include of the .h or .cpp file `path` that breaks a rule. exists(path): is it in the tree?"""
    problems = []
    for match in INCLUDE.finditer(text):
        included = match[1] or match[2]
        problem = library_include_problem(path, included)
        if problem is None and exists(included):
            problem = own_include_problem(path, included)
        elif problem is None and match[2]:
            problem = "no such file; ours are included by their path from the root"
        if problem:
            line = text.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: {included}: {problem}")
    return problems


def home_path_problems(path, text):
    return [
        f"{path}:{number}: an absolute path of one machine: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if HOME_PATH.search(line)
    ]


def catch_problems(path, text):
    """Catch2 2 and 3 differ in their headers and in the names of Catch::Matchers: tests use those of support/catch.h."""
    if not path.startswith("tests/") or path == "tests/support/catch.h":
        return []
    return [
        f"{path}:{number}: not in both releases of Catch2, use tests/support/catch.h: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if "<catch2/" in line or "Catch::Matchers" in line
    ]


def top_level_problems(tracked):
    names = {path.split("/")[0] for path in tracked}
    return [f"{n}: not part of the top level" for n in sorted(names) if n not in TOP_LEVEL and not n.startswith(".")]


def readme_problems(paths):
    folders = {path.split("/")[0] for path in paths if "/" in path and not path.startswith(".")}
    return [f"{folder}/ has no README.md" for folder in sorted(folders) if f"{folder}/README.md" not in paths]


def quickstart_problems(texts):
    """Why the quickstart would need what only the tests install. texts: path -> text of all scripts and CMake files."""
    problems = []
    quickstart, ci = texts["apps/quickstart.sh"], texts[".ci/run"]
    if "--tests" in quickstart:
        problems.append("apps/quickstart.sh: installs what only tests need")
    if "-DZOO_BUILD_TESTS=OFF" not in quickstart:
        problems.append("apps/quickstart.sh: must build with -DZOO_BUILD_TESTS=OFF")
    for path in sorted(texts):
        cmake = path.endswith((".txt", ".cmake", ".in", "build.sh"))
        if cmake and not within(path, "tests") and "interop" in texts[path]:
            problems.append(f"{path}: the build must not need third_party/interop")
    before = ci[: ci.find("apps/quickstart.sh")]
    if "apps/quickstart.sh" not in ci or "tests/run.sh" in before or "install.sh" in before:
        problems.append(".ci/run: the quickstart comes first, as in the README, before anything is installed")
    return problems


def type_names(text):
    """Qualified names of the types that a source defines where other sources can see them."""
    spaces = []
    for line in text.splitlines():
        if opened := re.match(r"(?:inline )?namespace ([\w:]*) ?\{$", line):
            spaces.append(opened[1])
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif spaces and all(spaces) and (found := re.match(r"(?:struct|class) (\w+)(?: final)?(?: : .*)? \{", line)):
            yield "::".join([*spaces, found[1]])
