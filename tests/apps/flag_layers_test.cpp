#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "tests/apps/sample_verb.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using namespace zoo::test;
using nlohmann::json;

TEST_CASE("a recipe lies below the config file and both below flags, whatever their order") {
  const TemporaryDirectory folder;
  const std::string config = (folder / "run.json").string();
  write_file(config, R"({"dropout": 0.5, "top-k": 7, "bias": false, "prompt": ["x", "y"]})");
  SampleVerb verb;
  CHECK(verb.parse({"--top_k", "9", "--config", config, "--recipe", "small"}));
  CHECK(verb.max_iters == 10);
  CHECK(verb.dropout == 0.5);
  CHECK(verb.top_k == 9);
  CHECK_FALSE(verb.bias);
  CHECK(verb.prompts == std::vector<std::string>{"x", "y"});
  CHECK(verb.flags.given("dropout"));
}

TEST_CASE("a config file can name the recipe, and null in it means unset") {
  const TemporaryDirectory folder;
  const std::string config = (folder / "run.json").string();
  write_file(config, R"({"recipe": "small", "dropout": null, "top_k": null})");
  SampleVerb verb;
  CHECK(verb.parse({"--config", config}));
  CHECK(verb.max_iters == 10);
  CHECK(verb.name == "from recipe");
  CHECK(verb.dropout == 0);
  CHECK_FALSE(verb.top_k.has_value());
}

TEST_CASE("a recipe that is asked for takes the place of the defaults' own") {
  const TemporaryDirectory folder;
  const auto defaults = folder / "run_config.json";
  for (const char* recipe : {"null", R"("small")"}) {
    write_file(defaults, R"({"recipe": )" + std::string(recipe) + R"(, "max_iters": 5})");
    SampleVerb verb;
    CHECK(verb.flags.parse(
        {.command = "tzoo verb", .words = {"--recipe", "large"}, .defaults = defaults.string()}));
    CHECK(verb.max_iters == 1000);
  }
}

TEST_CASE("a fault in a config file names file, key and what was expected") {
  const TemporaryDirectory folder;
  const std::string config = (folder / "run.json").string();
  const auto fault = [&config](const std::string& text) {
    write_file(config, text);
    return fault_of({"--config", config});
  };
  CHECK(fault(R"({"max_iter": 3})") == config + ": unknown key 'max_iter'; did you mean 'max_iters'?");
  CHECK(fault(R"({"max_iters": "ten"})") == config + R"(: max_iters: expected an integer, got "ten")");
  CHECK(fault(R"({"max_iters": 2.5})") == config + ": max_iters: expected an integer, got 2.5");
  CHECK(fault(R"({"max_iters": -1})") == config + ": max_iters: expected an integer of at least 1, got -1");
  CHECK(fault(R"({"bias": 0})") == config + ": bias: expected true or false, got 0");
  CHECK(fault(R"({"name": 3})") == config + ": name: expected text in UTF-8, got 3");
  CHECK(fault(R"({"max_iters": {"n": 3}})") == config + ": max_iters: expected an integer, got {\"n\":3}");
  CHECK(fault(R"({"model": {"n_layer": 3}})").starts_with(config + ": unknown key 'model'"));
  CHECK(fault(R"({"config": "x"})").starts_with(config + ": unknown key 'config'"));
  CHECK(fault(R"({"format": "torchscrip"})").ends_with("did you mean 'torchscript'?"));
  SampleVerb verb;
  CHECK_THROWS_WITH(verb.parse({"--config", (folder / "nix.json").string()}), Catch::Contains("nix.json"));
}

TEST_CASE("a fault in a recipe names the recipe") {
  CHECK(fault_of({"--recipe", "smal"}) ==
        "--recipe: expected small, large or broken, got 'smal'; did you mean 'small'?");
  CHECK(fault_of({"--recipe", "broken"}) ==
        "recipe 'broken': unknown key 'max_iter'; did you mean 'max_iters'?");
}

TEST_CASE("resolved values are what --config reads again") {
  const TemporaryDirectory folder;
  const std::string config = (folder / "run.json").string();
  SampleVerb verb;
  CHECK(verb.parse(
      {"--recipe", "small", "--no_bias", "--top_p", "0.9", "--prompt", "a", "--out_dir", "runs/x"}));
  const json resolved = verb.flags.resolved();
  CHECK(resolved["max_iters"] == 10);
  CHECK(resolved["bias"] == false);
  CHECK(resolved["top_k"].is_null());
  CHECK(resolved["out_dir"] == "runs/x");
  CHECK(resolved["recipe"] == "small");
  CHECK_FALSE(resolved.contains("config"));
  CHECK_FALSE(resolved.contains("dump_config"));

  write_file(config, resolved.dump());
  SampleVerb again;
  CHECK(again.parse({"--config", config}));
  CHECK(again.flags.resolved() == resolved);
}

TEST_CASE("dump_config prints the resolved values and needs no required flag") {
  SampleVerb verb;
  std::string model;
  verb.flags.add("model", model, "folder", {.required = true});
  const json dumped = json::parse(printed(verb, {"--dump_config", "--max_iters", "5"}));
  CHECK(dumped["max_iters"] == 5);
  CHECK(dumped["model"].is_null());
}

TEST_CASE("every recipe in the program is a JSON object") {
  for (const Recipe& recipe : embedded_recipes()) CHECK(json::parse(recipe.json).is_object());
}
