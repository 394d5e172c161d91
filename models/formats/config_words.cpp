#include "models/formats/config_words.h"

#include <array>

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {
namespace {

struct ActivationWord {
  const char* theirs;
  Activation ours;
};
// The first word of each activation is the one that is written.
constexpr std::array<ActivationWord, 6> kActivations{{{"gelu_new", Activation::kGeluTanh},
                                                      {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                                      {"gelu", Activation::kGelu},
                                                      {"relu", Activation::kRelu},
                                                      {"silu", Activation::kSilu},
                                                      {"swish", Activation::kSilu}}};

struct ProblemWord {
  const char* theirs;
  ProblemType ours;
};
constexpr std::array<ProblemWord, 3> kProblems{{{"regression", ProblemType::kRegression},
                                                {"single_label_classification", ProblemType::kSingleLabel},
                                                {"multi_label_classification", ProblemType::kMultiLabel}}};

// "LABEL_0", …: what a model without names of its own calls its labels.
std::string plain_label(std::int64_t id) {
  return "LABEL_" + std::to_string(id);
}

}  // namespace

Activation read_activation(const ConfigReader& reader, const char* key, const std::string& fallback) {
  const std::string word = reader.get_string(key, fallback);
  for (const ActivationWord& entry : kActivations) {
    if (word == entry.theirs) return entry.ours;
  }
  reader.refuse(key, "expected gelu, gelu_new, relu or silu");
}

std::string activation_word(Activation activation) {
  for (const ActivationWord& entry : kActivations) {
    if (activation == entry.ours) return entry.theirs;
  }
  throw Error("config.json has no word for an activation of ", name_of(activation));
}

void read_pad_token(const ConfigReader& reader, std::int64_t fallback, TransformerConfig& config) {
  config.pad_token_id = reader.is_null("pad_token_id") ? -1 : reader.get_int("pad_token_id", fallback);
}

void read_labels(const ConfigReader& reader, TransformerConfig& config) {
  config.label_names = reader.get_names("id2label");
  const auto named = static_cast<std::int64_t>(config.label_names.size());
  config.num_labels = named > 0 ? named : reader.get_int("num_labels", 2);
  bool plain = true;
  for (std::int64_t id = 0; id < named; ++id) {
    plain = plain && config.label_names[static_cast<std::size_t>(id)] == plain_label(id);
  }
  if (plain) config.label_names.clear();

  const std::string word = reader.get_string("problem_type", "");
  if (word.empty()) return;
  for (const ProblemWord& entry : kProblems) {
    if (word == entry.theirs) config.problem_type = entry.ours;
  }
  if (config.problem_type == ProblemType::kByLabels) {
    reader.refuse("problem_type",
                  "expected regression, single_label_classification or multi_label_classification");
  }
}

void write_pad_token_and_labels(const TransformerConfig& config, nlohmann::json& json) {
  json["pad_token_id"] = nullptr;
  if (config.pad_token_id >= 0) json["pad_token_id"] = config.pad_token_id;
  if (config.num_labels != 2 || !config.label_names.empty()) {
    for (std::int64_t id = 0; id < config.num_labels; ++id) {
      const std::string label =
          config.label_names.empty() ? plain_label(id) : config.label_names[static_cast<std::size_t>(id)];
      json["id2label"][std::to_string(id)] = label;
      json["label2id"][label] = id;
    }
  }
  for (const ProblemWord& entry : kProblems) {
    if (config.problem_type == entry.ours) json["problem_type"] = entry.theirs;
  }
}

}  // namespace zoo
