#pragma once

#include <functional>
#include <string>
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
  /// Sets fields of the configuration, or throws Error for a value that the family does not have. A key that
  /// is absent leaves the fields as they are.
  std::function<void(const ConfigReader& reader, TransformerConfig& config)> read;
  /// Adds the key to `json`; empty: it is never written.
  std::function<void(const TransformerConfig& config, nlohmann::json& json)> write;
  /// Fields that it sets, as far as they have one of these types.
  std::vector<Field> fields = {};
};

/// A key that sets `fields`, all to the same value, and is written from the first of them.
ConfigKey optional_key(const std::string& name, std::vector<ConfigKey::Field> fields);
ConfigKey optional_key(const std::string& name, ConfigKey::Field field);

/// The same, but an absent key is an error; `older_name` may stand for it.
ConfigKey required_key(const std::string& name, std::int64_t TransformerConfig::*field,
                       const std::string& older_name = "");

/// Written only when the field differs from `absent`, since Hugging Face's class has no such key.
ConfigKey own_key(const std::string& name, std::vector<ConfigKey::Field> fields, bool absent);

/// The name of an elementwise activation ("gelu", "gelu_new", "relu", "silu", …). kGate: of the gate of a
/// gated linear unit.
enum class ActivationUse { kElementwise, kGate };
ConfigKey activation_key(const std::string& name, ActivationUse use = ActivationUse::kElementwise);

/// A key that may only say `value`: any other is refused. An absent one is taken for `value`.
ConfigKey expected_key(const std::string& name, const nlohmann::json& value);

/// pad_token_id: null says that there is none.
ConfigKey pad_token_key();

/// Names the labels of a head that classifies. Names that say no more than a label's number are dropped.
void set_labels(TransformerConfig& config, std::vector<std::string> names);

/// id2label or num_labels, and problem_type.
ConfigKey label_keys();

/// All keys of a family, in the order in which they are written.
class ConfigKeys {
 public:
  ConfigKeys(const char* family, std::vector<ConfigKey> keys) : family_(family), keys_(std::move(keys)) {}

  /// `base` with what `json` says. Throws Error naming `source` and the key that is missing, has another type
  /// or asks for what the family does not have.
  TransformerConfig read(const TransformerConfig& base, const nlohmann::json& json,
                         const std::string& source) const;

  /// Throws Error naming each field that would be read back as another value: the keys cannot say it.
  nlohmann::json write(const TransformerConfig& base, const TransformerConfig& config) const;

  /// The key that sets the field; null if none does.
  const ConfigKey* find(const ConfigKey::Field& field) const;

 private:
  const char* family_;  // as messages call it
  std::vector<ConfigKey> keys_;
};

}  // namespace zoo
