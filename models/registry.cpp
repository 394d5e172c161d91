#include "models/registry.h"

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"
#include "models/layers/parameter.h"
#include "models/model.h"

namespace zoo {

// Each is defined in the file of models/families that has its name, XLM-RoBERTa in RoBERTa's, mT5 and UMT5 in
// T5's.
// clang-format off
#define ZOO_FAMILIES(each)                                                                                \
  each(gpt2) each(llama) each(mistral) each(qwen2) each(qwen3) each(gemma) each(gemma2) each(gemma3)      \
  each(olmo2) each(phi3) each(smollm3) each(starcoder2) each(gpt_neox) each(opt) each(bloom) each(falcon) \
  each(gptj) each(mpt) each(gpt_bigcode) each(stablelm) each(granite) each(mixtral) each(qwen2_moe)       \
  each(qwen3_moe) each(nanochat) each(t5) each(mt5) each(umt5) each(bart) each(mbart) each(pegasus) each(marian)         \
  each(m2m_100) each(bert) each(roberta) each(xlm_roberta) each(distilbert) each(albert) each(electra)    \
  each(mpnet) each(deberta) each(modernbert) each(nomic_bert)                                             \
  each(tutorial_embeddings) each(tutorial_ambiguous) each(tutorial_disagreement)
#define ZOO_DECLARE(name) namespace family::name { Family family(); }
#define ZOO_ENTRY(name) family::name::family(),
// clang-format on

ZOO_FAMILIES(ZOO_DECLARE)

namespace {

const std::vector<std::string> kHeadNames{"base",
                                          "masked-lm",
                                          "causal-lm",
                                          "seq2seq-lm",
                                          "sequence-classification",
                                          "token-classification",
                                          "question-answering",
                                          "next-sentence",
                                          "pretraining",
                                          "replaced-tokens"};

// Families of transformers that the zoo lacks, between spaces, after the one that is nearest to them.
struct Relatives {
  std::string_view nearest, theirs;
};
constexpr Relatives kRelatives[]{
    {"t5", " longt5 switch_transformers "},
    {"m2m_100", " nllb-moe seamless_m4t "},
    {"bart", " blenderbot-small led plbart "},
    {"mbart", " blenderbot "},
    {"pegasus", " bigbird_pegasus pegasus_x "},
    {"deberta-v2", " deberta "},
    {"bert", " convbert ernie mobilebert xlnet "},
    {"roberta", " camembert longformer "},
    {"xlm-roberta", " xlm xlm-roberta-xl "},
    {"gpt2", " gpt_neo "},
    {"gptj", " codegen phi "},
    {"granite", " granitemoe granitemoeshared "},
    {"llama", " cohere dbrx deepseek_v2 deepseek_v3 gpt_oss olmo "},
    {"qwen3_moe", " olmoe qwen3_next "},
    {"gemma3_text", " gemma3 gemma3n "},
    {"olmo2", " olmo3 "},
    {"opt", " xglm "},
    {"phi3", " phimoe "},
};

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all{ZOO_FAMILIES(ZOO_ENTRY)};
  return all;
}

TransformerConfig Family::read_config(const nlohmann::json& config, const std::string& source) const {
  return keys.read(base, config, source);
}

nlohmann::json Family::write_config(const TransformerConfig& config) const {
  return keys.write(base, config);
}

const std::string& name_of(Head head) { return kHeadNames[static_cast<std::size_t>(head)]; }

Head head_named(const std::string& name) {
  for (std::size_t i = 0; i < kHeadNames.size(); ++i)
    if (kHeadNames[i] == name) return static_cast<Head>(i);
  throw Error("unknown head '", name, "'", did_you_mean(name, kHeadNames),
              " (there are: ", joined(kHeadNames), ")");
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.push_back(family.model_type);
  return names;
}

const Family& find_family(std::string_view model_type) {
  const std::vector<std::string> names = family_names();
  for (const Family& family : families())
    if (family.model_type == model_type) return family;
  for (const auto& [nearest, theirs] : kRelatives) {
    if (theirs.find(" " + std::string(model_type) + " ") != std::string_view::npos)
      throw Error("the zoo has no family for model_type '", model_type, "'; the nearest is '", nearest,
                  "' (there are: ", joined(names), ")");
  }
  throw Error("unknown model_type '", model_type, "'", did_you_mean(model_type, names),
              " (there are: ", joined(names), ")");
}

void check_head(const Family& family, Head head) {
  std::vector<std::string> names;
  for (const auto& entry : family.heads) {
    if (entry.head == head) return;
    const std::string& name = name_of(entry.head);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  throw Error(family.model_type, " has no ", name_of(head), " head (it has: ", joined(names), ")");
}

PresetEntry find_preset(const std::string& name) {
  for (const Family& family : families()) {
    for (const Preset& preset : family.presets) {
      if (preset.name == name) return {family, preset};
    }
  }
  const auto names = preset_names();
  throw Error("unknown model '", name, "'", did_you_mean(name, names), " (there are: ", joined(names), ")");
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    for (const Preset& preset : family.presets) names.push_back(preset.name);
  }
  return names;
}

std::shared_ptr<Model> build_model(const Family& family, const TransformerConfig& config, Head head,
                                   std::uint64_t seed) {
  check_head(family, head);
  const ParameterScope scope(ParameterInit::kUninitialized);
  auto model = family.build(config, head);
  model->initialize(at::detail::createCPUGenerator(seed));
  return model;
}

std::shared_ptr<Model> build_meta_model(const Family& family, const TransformerConfig& config, Head head) {
  check_head(family, head);
  const ParameterScope scope(ParameterInit::kMeta);
  return family.build(config, head);
}

}  // namespace zoo
