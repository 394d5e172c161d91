#include "models/registry.h"

#include <nlohmann/json.hpp>

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;

namespace {

std::int64_t count_of(const std::string& preset) {
  const auto [family, entry] = find_preset(preset);
  return build_meta_model(family, entry.config, family.heads.front().head)->parameter_count();
}

}  // namespace

TEST_CASE("the presets have the parameter counts of the published models") {
  // transformers' own num_parameters() of openai-community/gpt2, -medium, -large and -xl
  CHECK(count_of("gpt2") == 124'439'808);
  CHECK(count_of("gpt2-medium") == 354'823'168);
  CHECK(count_of("gpt2-large") == 774'030'080);
  CHECK(count_of("gpt2-xl") == 1'557'611'200);
  // The same of the encoders, bare, with their poolers.
  CHECK(count_of("bert-base-uncased") == 109'482'240);
  CHECK(count_of("bert-large-uncased") == 335'141'888);
  CHECK(count_of("roberta-base") == 124'645'632);
  CHECK(count_of("distilbert-base-uncased") == 66'362'880);
  CHECK(count_of("albert-base-v2") == 11'683'584);
  // 12 L C^2 and 13 L C of biases and norms, tables of (50257 + 2048) C, the last norm's 2 C
  constexpr std::int64_t kLayers = 96, kHidden = 12288;
  CHECK(count_of("gpt3") ==
        12 * kLayers * kHidden * kHidden + 13 * kLayers * kHidden + (50257 + 2048) * kHidden + 2 * kHidden);
  // transformers' own num_parameters() of google-t5/t5-small and -base, google/t5-v1_1-small and -base
  CHECK(count_of("t5-small") == 60'506'624);
  CHECK(count_of("t5-base") == 222'903'552);
  CHECK(count_of("t5-v1_1-small") == 76'961'152);
  CHECK(count_of("t5-v1_1-base") == 247'577'856);
  // … and of meta-llama's Llama-2-7b, Llama-3.2-1B, Llama-3.2-3B and Meta-Llama-3-8B
  CHECK(count_of("llama-2-7b") == 6'738'415'616);
  CHECK(count_of("llama-3.2-1b") == 1'235'814'400);
  CHECK(count_of("llama-3.2-3b") == 3'212'749'824);
  CHECK(count_of("llama-3-8b") == 8'030'261'248);
  // nanoGPT without biases: 12 L C^2, the norms' (2 L + 1) C, tables of (65 + 64) C
  CHECK(count_of("shakespeare-char") == 12 * 4 * 128 * 128 + 9 * 128 + (65 + 64) * 128);
}

TEST_CASE("a meta model takes no memory, whatever its size") {
  const auto [family, preset] = find_preset("gpt3");
  const auto model = build_meta_model(family, preset.config, Head::kCausalLm);
  for (const auto& parameter : model->named_parameters()) {
    CAPTURE(parameter.key());
    CHECK(parameter.value().is_meta());
  }
}

TEST_CASE("the components of a model add up to its parameters, with every head") {
  for (const std::string& name : preset_names()) {
    const auto [family, preset] = find_preset(name);
    for (const auto& entry : family.heads) {
      for (const bool tied : {true, false}) {
        CAPTURE(name, name_of(entry.head), tied);
        TransformerConfig config = preset.config;
        config.tie_word_embeddings = tied;
        const auto model = build_meta_model(family, config, entry.head);
        std::int64_t sum = 0;
        for (const auto& [component, count] : model->components()) sum += count;
        CHECK(sum == model->parameter_count());
      }
    }
  }
}

TEST_CASE("an output projection of its own counts, a tied one does not") {
  const auto [family, preset] = find_preset("gpt2");
  for (const bool tied : {true, false}) {
    TransformerConfig config = preset.config;
    config.tie_word_embeddings = tied;
    const auto model = build_meta_model(family, config, Head::kCausalLm);
    CHECK(model->components().back().second == (tied ? 0 : config.vocab_size * config.hidden_size));
  }
}

TEST_CASE("every preset's configuration is valid and survives config.json") {
  for (const std::string& name : preset_names()) {
    CAPTURE(name);
    const auto [family, preset] = find_preset(name);
    CHECK_NOTHROW(preset.config.validate());
    const TransformerConfig again = family.read_config(family.write_config(preset.config), "config.json");
    CHECK(family.write_config(again) == family.write_config(preset.config));
    CHECK(build_meta_model(family, again, family.heads.front().head)->parameter_count() == count_of(name));
  }
}

TEST_CASE("an unknown name is answered with the nearest one and all there are") {
  const auto preset = [](const char* name) { return test::error_of([&] { find_preset(name); }); };
  CHECK_THAT(preset("gpt2-medum"), Contains("'gpt2-medum'") && Contains("did you mean 'gpt2-medium'?"));
  CHECK_THAT(preset("wholly different"), !Contains("did you mean") && Contains("shakespeare-char"));
  CHECK_THAT(test::error_of([] { find_family("longt5"); }),
             Contains("no family for model_type 'longt5'; the nearest is 't5'"));
  CHECK_THAT(test::error_of([] { find_family("gtp2"); }),
             Contains("model_type 'gtp2'") && Contains("'gpt2'?"));
  CHECK_THAT(test::error_of([] { head_named("casual-lm"); }), Contains("did you mean 'causal-lm'?"));
  CHECK_THAT(test::error_of([] { build_model(find_family("gpt2"), {}, Head::kMaskedLm, 1); }),
             Contains("gpt2 has no masked-lm head (it has: causal-lm, base, sequence-classification)"));
  CHECK_THAT(test::error_of([] { build_model(find_family("distilbert"), {}, Head::kNextSentence, 1); }),
             Contains("distilbert has no next-sentence head"));
}

TEST_CASE("heads are named as they are called") {
  for (const char* name :
       {"base", "masked-lm", "causal-lm", "seq2seq-lm", "sequence-classification", "token-classification",
        "question-answering", "next-sentence", "pretraining", "replaced-tokens"}) {
    CHECK(name_of(head_named(name)) == name);
  }
  CHECK(head_named("question-answering") == Head::kQuestionAnswering);
}

TEST_CASE("a family's layers follow their number") {
  const auto layers = [](const char* family, std::int64_t count) {
    TransformerConfig config = find_family(family).base;
    config.num_layers = count;
    find_family(family).keys.set_layers(config);
    return config;
  };
  // Every sixth layer sees all; every second; every fourth has no positions.
  CHECK(layers("gemma3_text", 7).window_layers ==
        std::vector<bool>{true, true, true, true, true, false, true});
  CHECK(layers("modernbert", 4).window_layers == std::vector<bool>{false, true, true, false});
  CHECK(layers("gemma2", 3).window_layers == std::vector<bool>{true, false, true});
  CHECK(layers("smollm3", 5).rotary_layers == std::vector<bool>{true, true, true, false, true});
  CHECK(layers("llama", 5).window_layers.empty());
}

TEST_CASE("a key that changes numbers is known to a family or refused by name") {
  const nlohmann::json changes{{"attn_logit_softcapping", 20.0},
                               {"embedding_multiplier", 3.0},
                               {"clip_qkv", 4.0},
                               {"qk_layernorm", true},
                               {"is_causal", false},
                               {"logit_scale", 0.5},
                               {"num_experts", 7},
                               {"kv_lora_rank", 16},
                               {"quantization_config", {{"bits", 4}}}};
  for (const Family& family : families()) {
    const TransformerConfig config = family.presets.front().config;
    for (const auto& [key, value] : changes.items()) {
      CAPTURE(family.model_type, key);
      nlohmann::json json = family.write_config(config);
      json[key] = value;
      TransformerConfig found = config;
      const std::string error = test::error_of([&] { found = family.read_config(json, "config.json"); });
      const bool is_known = error.empty() && fields_of(found) != fields_of(config);
      if (!is_known) CHECK_THAT(error, Contains("'" + key + "'"));
      json[key] = nullptr;
      CHECK_NOTHROW(family.read_config(json, "config.json"));
    }
  }
}

TEST_CASE("more layers than any model has are refused before anything is listed for each of them") {
  for (const Family& family : families()) {
    CAPTURE(family.model_type);
    nlohmann::json json = family.write_config(family.presets.front().config);
    for (const char* list : {"layer_types", "no_rope_layers"}) json.erase(list);
    for (const char* key : {"num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers"}) {
      if (!json.contains(key)) continue;
      json[key] = 3'000'000'000'000'000;
      CHECK_THROWS_WITH(family.read_config(json, "config.json").validate(), Contains("got 3000000000000000"));
    }
  }
}
