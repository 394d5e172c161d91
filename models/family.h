#pragma once

/// @file
/// Use:
///
///     const zoo::Family& family = zoo::find_family("llama");  // models/registry.h
///     const zoo::TransformerConfig config = family.read_config(json, "config.json");
///     const nlohmann::json written = family.write_config(config);

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/formats/config_keys.h"
#include "models/formats/weight_table.h"
#include "models/model_io.h"

namespace zoo {

class WeightFiles;

/// Output of a model.
enum class Head {
  kBase,
  kMaskedLm,
  kCausalLm,
  kSeq2SeqLm,
  kSequenceClassification,
  kTokenClassification,
  kQuestionAnswering,
  kNextSentence,
  kPretraining,     // masked-lm and next-sentence (ALBERT: sentence order) together
  kReplacedTokens,  // whether each token is the original (ELECTRA)
};

/// "causal-lm", …: the names that flags use.
const std::string& name_of(Head head);

/// Throws Error with the nearest name for one that is not a head's.
Head head_named(const std::string& name);

/// A published or documented configuration.
struct Preset {
  std::string name;
  std::string description;
  TransformerConfig config;
};

/// A causal decoder with the head: a DecoderModel (models/decoder/decoder.h), as most families have.
std::shared_ptr<Model> build_decoder(const TransformerConfig& config, Head head);

/// An encoder-decoder with the head: an EncoderDecoderModel (models/encoder_decoder/encoder_decoder.h).
std::shared_ptr<Model> build_encoder_decoder(const TransformerConfig& config, Head head);

/// A family: its names, keys, weights, presets and the function that builds a model.
struct Family {
  std::string model_type;   // as config.json says it
  std::string description;  // one line, with the paper
  struct HeadEntry {
    Head head;
    std::string architecture;  // Hugging Face's class, as in config.json's "architectures"
  };
  std::vector<HeadEntry> heads;  // the first is the default
  /// Choices and default rates of the family, without sizes. Presets and `tzoo train` start from it, and a
  /// key that config.json lacks keeps its value.
  TransformerConfig base;
  ConfigKeys keys;
  std::vector<Preset> presets;

  std::function<std::shared_ptr<Model>(const TransformerConfig& config, Head head)> build = build_decoder;
  WeightTable (*weight_table)(const TransformerConfig& config);
  /// Completes what config.json says by what only the tensors tell; null: nothing.
  void (*complete_config)(TransformerConfig& config, const WeightFiles& files) = nullptr;

  /// Throws Error naming the key of `config` that is missing, has another type or is not supported.
  TransformerConfig read_config(const nlohmann::json& config, const std::string& source) const;
  /// Hugging Face's keys for the configuration. Throws Error naming the fields that no key can express.
  nlohmann::json write_config(const TransformerConfig& config) const;
};

}  // namespace zoo
