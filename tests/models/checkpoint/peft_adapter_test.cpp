#include "models/checkpoint/peft_adapter.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "data/base/json.h"
#include "models/checkpoint/named_tensors.h"
#include "models/layers/linear.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/write_bytes.h"

using namespace zoo;
namespace fs = std::filesystem;

using Catch::Contains;
using test::message_of;

namespace {

constexpr double kTolerance = 1e-6;

fs::path golden(const std::string& path) { return fs::path(ZOO_SOURCE_DIR) / "tests/golden" / path; }

fs::path base_named(const std::string& name) { return golden("peft/bases/" + name); }

// Adapters that PEFT wrote, of make_peft.py.
std::vector<fs::path> cases() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(golden("peft")))
    if (fs::exists(entry.path() / "expected.safetensors")) found.push_back(entry.path());
  return found;
}

std::vector<std::pair<std::string, at::Tensor>> parameters_of(const LoadedModel& loaded) {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& entry : loaded.model->named_parameters())
    parameters.emplace_back(entry.key(), entry.value());
  return parameters;
}

// A copy of an adapter, to be changed.
class Copy {
 public:
  explicit Copy(const std::string& name) {
    for (const char* file : {"adapter_config.json", "adapter_model.safetensors"})
      fs::copy(golden("peft/" + name) / file, folder_ / file);
  }

  void set(const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = read_json(folder_ / "adapter_config.json");
    config[key] = value;
    write_json(folder_ / "adapter_config.json", config);
  }

  // Writes the tensors again, without the first whose name contains `without`, or with another.
  void change(const std::string& without, const NamedTensors& more = {}) {
    NamedTensors tensors = more;
    {
      const SafetensorsFile file(folder_ / "adapter_model.safetensors");
      bool left_out = false;
      for (const std::string& name : file.names()) {
        if (!without.empty() && !left_out && name.find(without) != name.npos) {
          left_out = true;
        } else {
          tensors.emplace_back(name, file.tensor(name).clone());
        }
      }
    }
    write_safetensors(folder_ / "adapter_model.safetensors", tensors);
  }

  std::string fault(const std::string& base) const {
    return message_of([&] { load_model({base_named(base), folder_.path()}); });
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  test::TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("adapters of PEFT compute what PeftModel computes") {
  const auto found = cases();
  REQUIRE(found.size() == 17);
  for (const fs::path& path : found) {
    CAPTURE(path);
    const SafetensorsFile expected(path / "expected.safetensors");
    const auto given = [&](const char* name) {
      return expected.contains(name) ? expected.tensor(name) : at::Tensor();
    };
    const LoadedModel loaded = load_model({base_named(expected.metadata().at("base")), path});
    CHECK(name_of(loaded.head) == expected.metadata().at("head"));
    const ModelOutput output = loaded.model->forward({.input_ids = given("input_ids"),
                                                      .attention_mask = given("attention_mask"),
                                                      .decoder_input_ids = given("decoder_input_ids")});
    std::size_t compared = 0;
    for (const auto& [name, tensor] : tensors_of(output, loaded.head)) {
      if (!expected.contains(name)) continue;
      ++compared;
      CHECK(test::relative_error(tensor, expected.tensor(name)) <= kTolerance);
    }
    CHECK(compared == 1);
  }
}

TEST_CASE("rows of adapted matrices are those of the whole, however they lie in the file") {
  for (const fs::path& path : cases()) {
    CAPTURE(path);
    const SafetensorsFile expected(path / "expected.safetensors");
    const ModelPath model(base_named(expected.metadata().at("base")), path);
    const LoadedModel whole = load_model(model), stored = load_model(model, {.stored = true});
    const auto parameters = stored.model->named_parameters();
    std::size_t from_files = 0;
    for (const auto& [name, weight] : parameters_of(whole)) {
      CAPTURE(name);
      if (!stored.stored->contains(parameters[name])) continue;
      ++from_files;
      const WeightRows rows = stored.stored->rows_of(parameters[name]);
      std::vector<at::Tensor> parts;
      for (std::int64_t row = 0; row < weight.size(0); row += 3)
        parts.push_back(rows.rows(row, std::min(row + 3, weight.size(0))));
      const at::Tensor read = at::cat(parts, 0);
      CHECK(test::relative_error(read, weight) <= kTolerance);
    }
    CHECK(from_files > 0);
  }
}

TEST_CASE("what an adapter asks for and the zoo does not compute is refused by name") {
  const auto refused = [](const char* key, const nlohmann::json& value) {
    Copy copy("llama-rslora");
    copy.set(key, value);
    CHECK_THAT(copy.fault("llama"),
               Contains("adapter_config.json") && Contains("'" + std::string(key) + "'"));
  };
  refused("peft_type", "IA3");
  refused("peft_type", nullptr);
  refused("use_qalora", true);
  refused("layer_replication", {{0, 2}, {1, 2}});
  refused("lora_bias", true);
  refused("trainable_token_indices", {3});
  refused("target_parameters", {"mlp.experts.gate_up_proj"});
  refused("alora_invocation_tokens", {1, 2});
  refused("megatron_config", {{"a", 1}});
  refused("a_key_of_tomorrow", 1);
  refused("init_lora_weights", "pissa");
  refused("init_lora_weights", "loftq");
  refused("rank_pattern", {2});
  refused("alpha_pattern", {{"layers\\.1\\.self_attn\\..*", "3"}});
  const nlohmann::json harmless{{"a_key_of_tomorrow", nullptr}, {"another", nlohmann::json::array()},
                                {"use_qalora", false},          {"init_lora_weights", "gaussian"},
                                {"lora_dropout", 0.1},          {"fan_in_fan_out", true},
                                {"ensure_weight_tying", true}};
  for (const auto& [key, value] : harmless.items()) {
    CAPTURE(key);
    Copy copy("llama-rslora");
    copy.set(key, value);
    CHECK_NOTHROW(load_model({base_named("llama"), copy.path()}));
  }
}

TEST_CASE("the base model of an adapter has the revision that the file names") {
  const test::TemporaryDirectory folder;
  const auto base_of = [&](const std::string& config) {
    test::write_bytes(folder / "adapter_config.json", config);
    return PeftAdapter::base_of(folder.path());
  };
  CHECK(base_of(R"({"base_model_name_or_path": "owner/tiny", "revision": "v2"})") == "owner/tiny@v2");
  CHECK(base_of(R"({"base_model_name_or_path": "owner/tiny", "revision": null})") == "owner/tiny");
  CHECK(base_of(R"({"base_model_name_or_path": "..", "revision": "v2"})") == "..");
  CHECK(base_of(R"({"revision": "v2"})") == "");
}

TEST_CASE("an adapter whose tensors do not fit its configuration or the model is refused") {
  Copy copy("llama-rslora");
  SECTION("another rank") {
    copy.set("rank_pattern", {{"v_proj", 3}});
    CHECK_THAT(copy.fault("llama"), Contains("proj has A [") && Contains("says that the rank is "));
  }
  SECTION("a module that is no target") {
    copy.set("target_modules", {"q_proj", "v_proj", "gate_proj"});
    CHECK_THAT(copy.fault("llama"), Contains("layers.0.mlp.down_proj is none of the target_modules"));
  }
  SECTION("targets by an expression that matches the whole name") {
    copy.set("target_modules", R"(model\.layers\.\d\.(self_attn|mlp)\..*_proj)");
    CHECK_NOTHROW(load_model({base_named("llama"), copy.path()}));
    copy.set("target_modules", "q_proj|v_proj|gate_proj|down_proj");
    CHECK_THAT(copy.fault("llama"), Contains("is none of the target_modules"));
    copy.set("target_modules", "(?P<name>.*)");
    CHECK_THAT(copy.fault("llama"), Contains("'(?P<name>.*)' is not a regular expression"));
    copy.set("target_modules", std::string(100'000, '('));
    CHECK_THAT(copy.fault("llama"), Contains("(((' is not a regular expression"));
  }
  SECTION("no B") {
    copy.change("lora_B");
    CHECK_THAT(copy.fault("llama"), Contains("lacks one of the matrices A and B"));
  }
  SECTION("DoRA without magnitudes, and the other way round") {
    copy.set("use_dora", true);
    CHECK_THAT(copy.fault("llama"), Contains("lacks magnitudes of DoRA, with use_dora"));
    Copy dora("llama-dora");
    dora.set("use_dora", false);
    CHECK_THAT(dora.fault("llama"), Contains("has magnitudes of DoRA, without use_dora"));
  }
  SECTION("a tensor that is no part of the model") {
    copy.change("", {{"base_model.model.model.layers.0.self_attn.w_proj.weight", at::ones({8, 8})},
                     {"base_model.model.model.layers.0.self_attn.q_proj.lora_B.bias", at::ones({8})}});
    CHECK_THAT(copy.fault("llama"), Contains("unexpected 2") && Contains("self_attn.w_proj.weight") &&
                                        Contains("q_proj.lora_B.bias"));
  }
  SECTION("a name without PEFT's prefix") {
    copy.change("", {{"model.norm.weight", at::ones({8})}});
    CHECK_THAT(copy.fault("llama"), Contains("'model.norm.weight'") && Contains("base_model.model."));
  }
  SECTION("another model") {
    CHECK_THAT(copy.fault("gpt2"), Contains("does not fit the model: unexpected"));
    CHECK_THAT(copy.fault("llama-tied"), Contains("mismatched") && Contains("expected [8, 8], found [4, 8]"));
  }
  SECTION("a classifier that is no matrix or has no columns") {
    const std::string name = "base_model.model.score.weight";
    Copy classes("llama-classes");
    classes.change("score.weight", {{name, at::ones({1000, 0})}});
    CHECK_THAT(classes.fault("llama"), Contains("score.weight: expected [2, 8], found [1000, 0]"));
    classes.change("score.weight", {{name, at::ones({1000})}});
    CHECK_THAT(classes.fault("llama"), Contains("score.weight: expected [2, 8], found [1000]"));
    classes.change("score.weight", {{name, at::ones({})}});
    CHECK_THAT(classes.fault("llama"), Contains("score.weight: expected [2, 8], found []"));
  }
  SECTION("files that are missing") {
    fs::rename(copy.path() / "adapter_model.safetensors", copy.path() / "adapter_model.bin");
    CHECK_THAT(copy.fault("llama"), Contains("adapter_model.bin") && Contains("pickle"));
    fs::remove(copy.path() / "adapter_model.bin");
    CHECK_THAT(copy.fault("llama"), Contains("adapter_model.safetensors"));
    fs::remove(copy.path() / "adapter_config.json");
    CHECK_THAT(copy.fault("llama"), Contains("adapter_config.json"));
  }
  SECTION("an adapter where a model is expected") {
    CHECK_THAT(message_of([&] { load_model(copy.path()); }),
               Contains("it is a PEFT adapter of 'llama'") && Contains("'adapter'"));
  }
}

// Queries, keys and values lie in one weight of ours and in three of Llama's; GPT-2's is transposed,
// GPT-NeoX's ordered by head, GPT-J's by pairs of rotary positions.
TEST_CASE("a saved adapter gives the projections that were trained") {
  const std::string name = GENERATE("gpt2", "llama/grouped", "gpt_neox/causal-lm", "gptj/causal-lm",
                                    "t5/tied", "bert", "falcon/grouped");
  CAPTURE(name);
  const fs::path base = name.find('/') == name.npos ? base_named(name) : golden(name);
  const LoadedModel loaded = load_model(base, {.trainable = true});
  at::manual_seed(3);
  AdapterParts parts{.base = base.string(), .alpha = 1.5};
  for (const auto& entry : loaded.model->named_modules()) {
    const auto linear = std::dynamic_pointer_cast<LinearImpl>(entry.value());
    if (!linear || entry.key().find("attention") == std::string::npos) continue;
    linear->low_rank = {.a = at::randn({3, linear->weight.size(1)}),
                        .b = at::randn({linear->weight.size(0), 3}),
                        .scale = 0.5};
    parts.terms.emplace(entry.key() + ".weight", *linear->low_rank);
  }
  REQUIRE(parts.terms.size() >= 4);
  const test::TemporaryDirectory folder;
  save_adapter(loaded, parts, folder / "adapter");

  const LoadedModel merged = load_model({base, folder / "adapter"});
  const auto read = merged.model->named_parameters();
  for (const auto& entry : loaded.model->named_modules())
    if (const auto linear = std::dynamic_pointer_cast<LinearImpl>(entry.value())) {
      CAPTURE(entry.key());
      CHECK(test::relative_error(read[entry.key() + ".weight"], linear->adapted_weight()) <= kTolerance);
    }
  CHECK(PeftAdapter::base_of(folder / "adapter") == base);
  const nlohmann::json config = read_json(folder / "adapter/adapter_config.json");
  CHECK(config["r"] == 3);
  CHECK(config["lora_alpha"] == 1.5);
  CHECK(config["fan_in_fan_out"] == (name == "gpt2"));

  parts.base = "owner/tiny@v2";
  save_adapter(loaded, parts, folder / "other");
  CHECK(read_json(folder / "other/adapter_config.json")["base_model_name_or_path"] == "owner/tiny");
  CHECK(PeftAdapter::base_of(folder / "other") == parts.base);

  parts.terms.emplace("nowhere.weight", parts.terms.begin()->second);
  CHECK_THAT(message_of([&] { save_adapter(loaded, parts, folder / "other"); }), Contains("nowhere.weight"));
}
