#pragma once

#include <array>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "apps/command/flags.h"
#include "tests/support/catch.h"

namespace zoo::test {

inline const std::array kRecipes{
    Recipe{"small", R"({"max_iters": 10, "dropout": 0.25, "name": "from recipe"})"},
    Recipe{"large", R"({"max_iters": 1000})"}, Recipe{"broken", R"({"max_iter": 1000})"}};

// A verb with a flag of every type.
struct SampleVerb {
  std::int64_t max_iters = 2000;
  double dropout = 0;
  bool bias = true;
  std::string name = "unnamed", format = "torchscript";
  std::filesystem::path out_dir;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<bool> verify;
  std::vector<std::string> prompts;
  Flags flags{"tzoo verb", "Does something."};

  SampleVerb() {
    flags.group("Optimizer");
    flags.add("max_iters", max_iters, "iterations", at_least(1));
    flags.add("dropout", dropout, "share of activations dropped", between(0, 1));
    flags.group("Model");
    flags.add("bias", bias, "biases");
    flags.add("name", name, "what it is called");
    flags.choice("format", format, {"torchscript", "huggingface"}, "what to write");
    flags.add("out_dir", out_dir, "where", {.placeholder = "DIR"});
    flags.add("top_k", top_k, "most likely tokens kept");
    flags.add("top_p", top_p, "probability kept", above(0));
    flags.add("verify", verify, "reload and compare");
    flags.add("prompt", prompts, "texts to continue");
    flags.add_recipes(kRecipes);
    flags.example("tzoo verb --max_iters 3");
  }

  bool parse(std::vector<std::string> words) { return flags.parse({"tzoo verb", std::move(words)}); }
};

// The message that refuses the words.
inline std::string fault_of(std::vector<std::string> words) {
  SampleVerb verb;
  try {
    verb.parse(std::move(words));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no fault";
}

// std::cout while it lives.
class Captured {
 public:
  Captured() : before_(std::cout.rdbuf(out_.rdbuf())) {}
  ~Captured() { std::cout.rdbuf(before_); }
  std::string text() const { return out_.str(); }

 private:
  std::ostringstream out_;
  std::streambuf* before_;
};

inline std::string printed(SampleVerb& verb, std::vector<std::string> words) {
  const Captured captured;
  CHECK_FALSE(verb.parse(std::move(words)));
  return captured.text();
}

}  // namespace zoo::test
