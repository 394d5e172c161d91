#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/formats/weight_table.h"
#include "models/model.h"

namespace zoo {

class WeightFiles;

/// What a model ends in.
enum class Head {
  kBase,
  kMaskedLm,
  kCausalLm,
  kSeq2SeqLm,
  kSequenceClassification,
  kTokenClassification,
  kQuestionAnswering,
  kNextSentence,
};

/// "causal-lm", …: the names that flags use.
const std::string& name_of(Head head);

/// Throws Error with the nearest name for one that is not a head's.
Head head_named(const std::string& name);

/// A configuration with a name that people know.
struct Preset {
  std::string name;
  std::string description;
  TransformerConfig config;
};

/// Everything the zoo knows of one family of models.
struct Family {
  std::string model_type;   // as config.json says it
  std::string description;  // a line, with the paper
  struct HeadEntry {
    Head head;
    std::string architecture;  // Hugging Face's class, as in config.json's "architectures"
  };
  std::vector<HeadEntry> heads;  // the first is the default
  std::vector<Preset> presets;

  /// Throws Error naming the key of `config` that is missing, has another type or is not supported.
  TransformerConfig (*read_config)(const nlohmann::json& config, const std::string& source);
  /// Hugging Face's keys for the configuration.
  nlohmann::json (*write_config)(const TransformerConfig& config);
  std::shared_ptr<Model> (*build)(const TransformerConfig& config, Head head);
  WeightTable (*weight_table)(const TransformerConfig& config);
  /// Completes what read_config has read by what only the tensors tell; null: nothing.
  void (*complete_config)(TransformerConfig& config, const WeightFiles& files) = nullptr;
};

}  // namespace zoo
