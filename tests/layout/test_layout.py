"""Checks how the tree is laid out: who includes whom, the top level, READMEs, no path of one machine.

    test_layout.py ROOT
"""

import pathlib
import re
import subprocess
import sys
import unittest

import layout_rules as rules

ROOT = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else ".").resolve()


def git_files(*options):
    """Paths from the root; of a tree that is no git checkout (an archive), everything but dotfiles and builds."""
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z", *options]
    if (ROOT / ".git").exists():
        found = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
        return {path for path in found if path and (ROOT / path).is_file()}
    skipped = ("build", "runs", "third_party/libtorch/", "third_party/interop/", "third_party/arrow/", ".")
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()}
    return {path for path in found if not path.startswith(skipped) and "__pycache__" not in path}


class Tree(unittest.TestCase):
    """The rules hold for the files that git tracks, and for those about to be added."""

    @classmethod
    def setUpClass(cls):
        cls.tracked = git_files("--cached")
        cls.paths = git_files("--cached", "--others", "--exclude-standard")
        cls.sources = sorted(path for path in cls.paths if path.endswith((".h", ".cpp")))

    def text(self, path):
        return (ROOT / path).read_text(encoding="utf-8")

    def assert_none(self, problems):
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_there_is_something_to_check(self):
        self.assertGreater(len(self.sources), 20)

    def test_includes_point_one_way(self):
        # A test includes the program that has no header.
        headers = {path for path in self.paths if path.endswith(".h")} | {"apps/demos/gpt_in_one_file.cpp"}
        self.assert_none(
            [p for path in self.sources for p in rules.include_problems(path, self.text(path), headers.__contains__)]
        )

    def test_a_type_is_defined_once(self):
        # The linker mixes the functions of two types of one name without a word.
        files = {}
        for path in self.sources:
            if not path.startswith("tests/"):
                for name in rules.type_names(self.text(path)):
                    files.setdefault(name, []).append(path)
        self.assertGreater(len(files), 300)
        self.assert_none([f"{name}: defined in {paths}" for name, paths in files.items() if len(paths) > 1])

    def test_headers_of_the_api_are_cheap(self):
        # torch::nn costs four fifths of compiling a program that classifies or generates.
        heavy = {path for path in self.sources if path.endswith(".h") and "#include <torch/nn" in self.text(path)}
        api = ("models/tasks/", "models/checkpoint/checkpoint.h")
        for header in (path for path in self.sources if path.startswith(api) and path.endswith(".h")):
            reached, left = {header}, [header]
            while left:
                included = set(re.findall(r'#include "([^"]+)"', self.text(left.pop())))
                found = included & self.paths
                left += found - reached
                reached |= found
            if header != "models/tasks/inference_loading.h":  # packs the parts of modules
                self.assertEqual(reached & heavy, set(), header)

    def test_top_level_is_the_documented_one(self):
        self.assert_none(rules.top_level_problems(self.tracked))

    def test_every_top_folder_has_a_readme(self):
        self.assert_none(rules.readme_problems(self.paths))

    def test_no_path_of_one_machine(self):
        problems = []
        for path in sorted(self.paths):
            try:
                problems += rules.home_path_problems(path, self.text(path))
            except UnicodeDecodeError:
                pass  # not a text
        self.assert_none(problems)

    def test_both_releases_of_catch_serve(self):
        self.assert_none([p for path in self.sources for p in rules.catch_problems(path, self.text(path))])

    def test_quickstart_needs_nothing_of_the_tests(self):
        suffixes = (".sh", ".cmake", ".in", "CMakeLists.txt", ".ci/run")
        self.assert_none(rules.quickstart_problems({p: self.text(p) for p in self.paths if p.endswith(suffixes)}))


class Rules(unittest.TestCase):
    """The rules themselves: each refuses what it is there for, and lets its neighbour pass."""

    def check_include(self, path, line, refused):
        problems = rules.include_problems(path, f"#pragma once\n{line}\n", lambda name: name.endswith("ours.h"))
        self.assertEqual(bool(problems), refused, f"{path}: {line}: {problems}")

    def test_quickstart(self):
        good = {
            "apps/quickstart.sh": "third_party/install.sh --extras\nthird_party/build.sh build tzoo -DZOO_BUILD_TESTS=OFF",
            ".ci/run": "apps/quickstart.sh --max_iters 9\ntests/run.sh",
            "CMakeLists.txt": "add_subdirectory(models)",
            "tests/interop/CMakeLists.txt": "third_party/interop/bin/python",
        }
        self.assertEqual(rules.quickstart_problems(good), [])
        for path, text in [
            ("apps/quickstart.sh", "third_party/install.sh --tests\nbuild -DZOO_BUILD_TESTS=OFF"),
            ("apps/quickstart.sh", "third_party/install.sh\nthird_party/build.sh build tzoo"),
            ("models/CMakeLists.txt", "third_party/interop/bin/python"),
            (".ci/run", "tests/run.sh\napps/quickstart.sh"),
            (".ci/run", "third_party/install.sh --tests\napps/quickstart.sh\ntests/run.sh"),
            (".ci/run", "tests/run.sh"),
        ]:
            self.assertEqual(len(rules.quickstart_problems(good | {path: text})), 1, (path, text))

    def test_catch(self):
        for path, line, refused in [
            ("tests/a.cpp", "using Catch::Contains;", False),
            ("tests/a.cpp", '#include "tests/support/catch.h"', False),
            ("tests/a.cpp", "using Catch::Matchers::Contains;", True),
            ("tests/a.cpp", "#include <catch2/catch.hpp>", True),
            ("tests/support/catch.h", "#include <catch2/catch.hpp>", False),
        ]:
            self.assertEqual(bool(rules.catch_problems(path, f"{line}\n")), refused, (path, line))

    def test_includes_of_ours(self):
        for path, included, refused in [
            ("tokenizer/a.cpp", "data/base/ours.h", False),
            ("tokenizer/a.cpp", "data/ours.h", True),
            ("tokenizer/a.cpp", "models/ours.h", True),
            ("tokenizer/load.cpp", "tokenizer/files/ours.h", False),
            ("tokenizer/tokenizer.cpp", "tokenizer/files/ours.h", True),
            ("tokenizer/text/a.h", "tokenizer/pipeline/ours.h", True),
            ("tokenizer/pipeline/a.h", "tokenizer/text/ours.h", False),
            ("tokenizer/pipeline/a.h", "tokenizer/files/ours.h", True),
            ("tokenizer/files/a.h", "tokenizer/sentencepiece/ours.h", False),
            ("tokenizer/learning/a.h", "tokenizer/files/ours.h", True),
            ("data/a.h", "tokenizer/ours.h", False),
            ("data/a.h", "models/ours.h", True),
            ("data/tokens/a.h", "data/random/ours.h", False),
            ("data/random/a.h", "data/tokens/ours.h", True),
            ("data/base/a.h", "data/base/ours.h", False),
            ("data/base/a.h", "data/ours.h", True),
            ("models/families/a.cpp", "models/layers/ours.h", False),
            ("models/families/a.cpp", "data/base/ours.h", False),
            ("models/families/a.cpp", "data/ours.h", True),
            ("models/families/a.cpp", "tokenizer/ours.h", True),
            ("models/families/a.cpp", "apps/ours.h", True),
            ("models/families/a.cpp", "models/families/ours.h", False),
            ("models/families/a.cpp", "models/registry.h", True),
            ("models/registry.cpp", "models/families/ours.h", True),
            ("models/layers/a.cpp", "models/kernels/ours.h", True),
            ("models/layers/a.cpp", "models/ops/ours.h", False),
            ("models/ops/a.cpp", "models/layers/ours.h", True),
            ("models/ops/a.cpp", "models/kernels/ours.h", False),
            ("models/inference/a.cpp", "models/kernels/ours.h", False),
            ("models/kernels/a.cpp", "models/layers/ours.h", True),
            ("models/encoder/a.cpp", "models/decoder/ours.h", True),
            ("models/formats/a.cpp", "models/checkpoint/ours.h", True),
            ("models/new/a.cpp", "models/layers/ours.h", True),
            ("models/tasks/a.cpp", "tokenizer/ours.h", False),
            ("models/tasks/a.cpp", "models/inference/ours.h", False),
            ("models/tasks/a.cpp", "apps/command/ours.h", True),
            ("models/inference/a.cpp", "models/tasks/ours.h", True),
            ("apps/serve/a.cpp", "apps/verbs/ours.h", True),
            ("apps/demos/a.cpp", "apps/verbs/ours.h", True),
            ("apps/serve/a.cpp", "apps/demos/ours.h", True),
            ("apps/serve/endpoints/a.cpp", "apps/answers/ours.h", False),
            ("apps/verbs/verbs.cpp", "apps/serve/ours.h", False),
            ("apps/command/a.cpp", "apps/plots/ours.h", True),
            ("apps/plots/a.cpp", "apps/command/ours.h", False),
            ("apps/new/a.cpp", "apps/command/ours.h", True),
            ("apps/main.cpp", "apps/verbs/ours.h", False),
            ("apps/verbs/train/train.cpp", "apps/training/ours.h", False),
            ("apps/verbs/train/train.cpp", "models/ours.h", False),
            ("apps/verbs/train/train.cpp", "models/families/ours.h", True),
            ("apps/training/a.cpp", "apps/command/ours.h", True),
            ("apps/training/a.cpp", "models/ours.h", False),
            ("tests/models/a.cpp", "apps/training/ours.h", False),
            ("models/model.cpp", "lost.h", True),
        ]:
            self.check_include(path, f'#include "{included}"', refused)

    def test_includes_of_others(self):
        for path, included, refused in [
            ("data/a.cpp", "nlohmann/json.hpp", False),
            ("data/a.h", "nlohmann/json.hpp", True),
            ("data/a.h", "nlohmann/json_fwd.hpp", False),
            ("apps/a.cpp", "CLI/CLI.hpp", False),
            ("models/a.cpp", "CLI/CLI.hpp", True),
            ("models/script/a.cpp", "torch/script.h", False),
            ("models/formats/a.cpp", "torch/script.h", True),
            ("models/a.h", "torch/torch.h", True),
            ("models/a.h", "torch/nn.h", True),
            ("models/a.cpp", "torch/nn.h", False),
            ("models/a.h", "torch/nn/module.h", False),
        ]:
            self.check_include(path, f"#include <{included}>", refused)

    def test_a_problem_says_where(self):
        problems = rules.include_problems("data/a.h", "\n\n# include <nlohmann/json.hpp>\n", lambda name: False)
        self.assertEqual(len(problems), 1)
        self.assertTrue(problems[0].startswith("data/a.h:3: nlohmann/json.hpp: "), problems)

    def test_types(self):
        text = "namespace zoo {\nnamespace {\nstruct A {\n}  // namespace\nclass B final : public C {\n}  // namespace zoo\n"
        self.assertEqual(list(rules.type_names(text)), ["zoo::B"])

    def test_top_level(self):
        self.assertEqual(rules.top_level_problems(["apps/main.cpp", ".ci/run", "LICENSE"]), [])
        self.assertEqual(rules.top_level_problems(["src/main.cpp"]), ["src: not part of the top level"])

    def test_readmes(self):
        self.assertEqual(rules.readme_problems({"apps/README.md", "apps/a.cpp", ".ci/run", "LICENSE"}), [])
        self.assertEqual(rules.readme_problems({"apps/a.cpp"}), ["apps/ has no README.md"])

    def test_home_paths(self):
        for folder, refused in [("/home", True), ("/root", True), ("models/work", False), ("$HOME", False)]:
            self.assertEqual(bool(rules.home_path_problems("a.md", f"see {folder}/someone\n")), refused, folder)


if __name__ == "__main__":
    unittest.main()
