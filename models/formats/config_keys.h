#pragma once

/// @file
/// Use:
///
///     const zoo::ConfigKeys keys("Mine", {zoo::required_key("n_layer", &zoo::TransformerConfig::num_layers),
///                                         zoo::activation_key("hidden_act")});
///     const zoo::TransformerConfig config = keys.read(base, json, "config.json");
///     const nlohmann::json written = keys.write(base, config);

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/formats/config_reader.h"
#include "models/layers/transformer_config.h"

namespace zoo {

/// A key of config.json: how it is read into a configuration and written from one.
struct ConfigKey {
  using Field = std::variant<std::int64_t TransformerConfig::*, double TransformerConfig::*,
                             bool TransformerConfig::*, Activation TransformerConfig::*>;

  std::string name;
  /// Sets fields of the configuration, or throws Error for a value that the family does not support. An
  /// absent key leaves the fields as they are.
  std::function<void(const ConfigReader& reader, TransformerConfig& config)> read;
  /// Adds the key to `json`; empty: it is never written.
  std::function<void(const TransformerConfig& config, nlohmann::json& json)> write;
  /// Fields that it sets, if they have one of these types.
  std::vector<Field> fields = {};
  /// Its field has an element for each layer; if the key is absent, read() sets the family's default.
  bool by_layer = false;
  /// Other names in place of the family's own: {"num_hidden_layers", "n_layer"}.
  std::vector<std::pair<std::string, std::string>> aliases = {};
};

/// A key that sets all `fields` to one value and is written from the first of them.
ConfigKey optional_key(const std::string& name, std::vector<ConfigKey::Field> fields);
ConfigKey optional_key(const std::string& name, ConfigKey::Field field);

/// The same, but required; `older_name` may replace it.
ConfigKey required_key(const std::string& name, std::int64_t TransformerConfig::*field,
                       const std::string& older_name = "");

/// A number for which null, as files say it, means 0: none. An absent key leaves the field as it is.
ConfigKey nullable_key(const std::string& name, ConfigKey::Field field);

/// Written only if the field differs from `absent`, since Hugging Face's class has no such key.
ConfigKey own_key(const std::string& name, std::vector<ConfigKey::Field> fields, bool absent);

/// Hugging Face's names of elementwise activations: "gelu", "gelu_new", "relu", "silu", …
std::optional<Activation> activation_named(const std::string& name);
/// The first of an activation's names. Throws Error if it has none.
std::string activation_name(Activation activation);
/// All names with commas between them, for messages.
std::string activation_names();

/// Name of an elementwise activation ("gelu", "gelu_new", "relu", "silu", …). kGate: for the gate of a gated
/// linear unit.
enum class ActivationUse { kElementwise, kGate };
ConfigKey activation_key(const std::string& name, ActivationUse use = ActivationUse::kElementwise);

/// A key that must be `value`; other values are refused. An absent key counts as `value`.
ConfigKey expected_key(const std::string& name, const nlohmann::json& value);

/// Keys of files of the family that change none of its numbers, or only where another key asks for it.
ConfigKey ignored_keys(const std::vector<std::string>& names);

/// transformers' names for keys that the family calls otherwise, each with the family's own: its
/// attribute_map. Where a file has both, transformers' counts, as there.
ConfigKey alias_keys(std::vector<std::pair<std::string, std::string>> aliases);

/// An id; null means none, which is -1 in the field.
ConfigKey id_key(const std::string& name, std::int64_t TransformerConfig::*field);
/// The same of pad_token_id.
ConfigKey pad_token_key();

/// Sets the labels of a classification head. Drops names that only repeat a label's number.
void set_labels(TransformerConfig& config, std::vector<std::string> names);

/// id2label or num_labels, and problem_type.
ConfigKey label_keys();

/// All keys of a family, in the order in which they are written.
class ConfigKeys {
 public:
  ConfigKeys(const char* family, std::vector<ConfigKey> keys) : family_(family), keys_(std::move(keys)) {}

  /// Applies `file`, a config.json, to `base`. Throws Error naming `source` and the key that is missing, has
  /// another type or asks for something that the family does not support.
  TransformerConfig read(const TransformerConfig& base, const nlohmann::json& file,
                         const std::string& source) const;

  /// Keys of `file`, which read() takes, that say something to neither the family nor the zoo.
  std::vector<std::string> unknown(const TransformerConfig& base, const nlohmann::json& file) const;

  /// Throws Error naming each field that the keys cannot express: it would be read back as another value.
  nlohmann::json write(const TransformerConfig& base, const TransformerConfig& config) const;

  /// Sets the fields that have an element for each layer to the family's default for config.num_layers.
  void set_layers(TransformerConfig& config) const;

  /// A message of TransformerConfig::validate() with the names of the file's keys in place of our fields'.
  std::string in_own_names(std::string message) const;

  /// The key that sets the field; null if none does.
  const ConfigKey* find(const ConfigKey::Field& field) const;

 private:
  nlohmann::json in_family_names(const nlohmann::json& json) const;

  const char* family_;  // name of the family in messages
  std::vector<ConfigKey> keys_;
};

}  // namespace zoo
