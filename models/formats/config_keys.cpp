#include "models/formats/config_keys.h"

#include <algorithm>
#include <regex>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/lines.h"

namespace zoo::embedded {
extern const std::string_view kForeignKeys;  // foreign_keys.json
}

namespace zoo {
namespace {

using nlohmann::json;

// The first name of each activation is written.
constexpr std::pair<const char*, Activation> kActivations[]{{"gelu_new", Activation::kGeluTanh},
                                                            {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                                            {"gelu_python_tanh", Activation::kGeluTanh},
                                                            {"gelu_fast", Activation::kGeluTanh},
                                                            {"gelu_accurate", Activation::kGeluTanh},
                                                            {"gelu", Activation::kGelu},
                                                            {"gelu_python", Activation::kGelu},
                                                            {"relu", Activation::kRelu},
                                                            {"silu", Activation::kSilu},
                                                            {"swish", Activation::kSilu},
                                                            {"tanh", Activation::kTanh},
                                                            {"relu2", Activation::kRelu2}};
constexpr std::pair<const char*, ProblemType> kProblems[]{
    {"regression", ProblemType::kRegression},
    {"single_label_classification", ProblemType::kSingleLabel},
    {"multi_label_classification", ProblemType::kMultiLabel}};

// "LABEL_0", …: labels of a model without label names.
std::string plain_label(std::int64_t id) { return "LABEL_" + std::to_string(id); }

void read_labels(const ConfigReader& reader, TransformerConfig& config) {
  std::vector<std::string> names = reader.get_names("id2label");
  if (names.empty()) {
    config.num_labels = reader.get_int("num_labels", 2);
  } else {
    set_labels(config, std::move(names));
  }
  const std::string name = reader.get_string("problem_type", "");
  if (name.empty()) return;
  for (const auto& [theirs, ours] : kProblems)
    if (name == theirs) config.problem_type = ours;
  if (config.problem_type == ProblemType::kByLabels)
    reader.refuse("problem_type",
                  "expected regression, single_label_classification or multi_label_classification");
}

void write_labels(const TransformerConfig& config, json& json) {
  if (config.num_labels != 2 || !config.label_names.empty()) {
    for (std::int64_t id = 0; id < config.num_labels; ++id) {
      const std::string label =
          config.label_names.empty() ? plain_label(id) : config.label_names[static_cast<std::size_t>(id)];
      json["id2label"][std::to_string(id)] = label;
      json["label2id"][label] = id;
    }
  }
  for (const auto& [theirs, ours] : kProblems)
    if (config.problem_type == ours) json["problem_type"] = theirs;
}

// One overload for each type of ConfigKey::Field.
void read_field(const ConfigReader& reader, const char* key, std::int64_t& field) {
  field = reader.get_int(key, field);
}
void read_field(const ConfigReader& reader, const char* key, double& field) {
  field = reader.get_double(key, field);
}
void read_field(const ConfigReader& reader, const char* key, bool& field) {
  field = reader.get_bool(key, field);
}
void read_field(const ConfigReader& reader, const char* key, Activation& field) {
  if (!reader.has(key)) return;
  const std::optional<Activation> named = activation_named(reader.get_string(key, ""));
  if (!named) reader.refuse(key, "expected " + activation_names());
  field = *named;
}

json written(const TransformerConfig& config, const ConfigKey::Field& field) {
  return std::visit(
      [&](auto member) -> json {
        if constexpr (std::is_same_v<decltype(member), Activation TransformerConfig::*>) {
          return activation_name(config.*member);
        } else {
          return config.*member;
        }
      },
      field);
}

// The name of a number: the first of the fields that differ when it has another value.
std::string_view field_name(const ConfigKey::Field& field) {
  TransformerConfig other;
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(other.*member)>;
        if constexpr (std::is_same_v<Value, std::int64_t> || std::is_same_v<Value, double>)
          other.*member += 1;
      },
      field);
  const auto before = fields_of({}), after = fields_of(other);
  const auto [first, _] = std::mismatch(before.begin(), before.end(), after.begin());
  return first == before.end() ? "" : first->first;
}

// "neutral", the keys that change the numbers of some architecture, and "of_no_numbers", those of which no
// architecture's numbers depend: about the file, training, generation and the program that runs the model.
const nlohmann::ordered_json& foreign_keys() {
  static const auto all = nlohmann::ordered_json::parse(embedded::kForeignKeys, nullptr, true, true);
  return all;
}

}  // namespace

std::optional<Activation> activation_named(const std::string& name) {
  for (const auto& [theirs, ours] : kActivations)
    if (name == theirs) return ours;
  return std::nullopt;
}

std::string activation_name(Activation activation) {
  for (const auto& [theirs, ours] : kActivations)
    if (activation == ours) return theirs;
  throw Error("config.json has no name for an activation of ", name_of(activation));
}

std::string activation_names() {
  std::vector<std::string> names;
  for (const auto& [theirs, ours] : kActivations) names.emplace_back(theirs);
  return joined(names);
}

ConfigKey optional_key(const std::string& name, std::vector<ConfigKey::Field> fields) {
  const auto read = [name, fields](const ConfigReader& reader, TransformerConfig& config) {
    for (const auto& field : fields)
      std::visit([&](auto member) { read_field(reader, name.c_str(), config.*member); }, field);
  };
  const auto write = [name, first = fields.front()](const TransformerConfig& config, json& json) {
    json[name] = written(config, first);
  };
  return {name, read, write, fields};
}

ConfigKey optional_key(const std::string& name, ConfigKey::Field field) {
  return optional_key(name, std::vector<ConfigKey::Field>{field});
}

ConfigKey required_key(const std::string& name, std::int64_t TransformerConfig::*field,
                       const std::string& older_name) {
  ConfigKey key = optional_key(name, field);
  key.read = [name, field, older_name](const ConfigReader& reader, TransformerConfig& config) {
    const bool renamed = !older_name.empty() && !reader.has(name.c_str());
    if (renamed && !reader.has(older_name.c_str()))
      throw Error(reader.source(), ": the key '", name, "' (or '", older_name, "') is missing");
    config.*field = reader.require_int(renamed ? older_name.c_str() : name.c_str());
  };
  return key;
}

ConfigKey nullable_key(const std::string& name, ConfigKey::Field field) {
  ConfigKey key = optional_key(name, field);
  key.read = [name, field, read = key.read](const ConfigReader& reader, TransformerConfig& config) {
    if (!reader.is_null(name.c_str())) return read(reader, config);
    std::visit([&](auto member) { config.*member = {}; }, field);
  };
  key.write = [name, field](const TransformerConfig& config, json& json) {
    const nlohmann::json value = written(config, field);
    json[name] = value == 0 ? nlohmann::json() : value;
  };
  return key;
}

ConfigKey own_key(const std::string& name, std::vector<ConfigKey::Field> fields, bool absent) {
  ConfigKey key = optional_key(name, std::move(fields));
  key.write = [name, absent, first = key.fields.front()](const TransformerConfig& config, json& json) {
    const nlohmann::json value = written(config, first);
    if (value != absent) json[name] = value;
  };
  return key;
}

ConfigKey activation_key(const std::string& name, ActivationUse use) {
  ConfigKey key = optional_key(name, &TransformerConfig::activation);
  if (use == ActivationUse::kElementwise) return key;
  key.read = [name](const ConfigReader& reader, TransformerConfig& config) {
    if (!reader.has(name.c_str())) return;
    read_field(reader, name.c_str(), config.activation);
    const std::optional<Activation> unit = gated_unit(config.activation);
    if (!unit) reader.refuse(name.c_str(), "gates have the activations silu, gelu, gelu_new and relu");
    config.activation = *unit;
  };
  key.write = [name](const TransformerConfig& config, json& json) {
    json[name] = activation_name(gate_of(config.activation));
  };
  return key;
}

ConfigKey expected_key(const std::string& name, const json& value) {
  const auto read = [name, value](const ConfigReader& reader, TransformerConfig&) {
    if (!reader.is(name.c_str(), value)) reader.refuse(name.c_str(), "expected " + value.dump());
  };
  return {name, read, {}};
}

ConfigKey ignored_keys(const std::vector<std::string>& names) {
  const auto read = [names](const ConfigReader& reader, TransformerConfig&) {
    for (const std::string& name : names) reader.has(name.c_str());
  };
  return {names.front(), read, {}};
}

ConfigKey alias_keys(std::vector<std::pair<std::string, std::string>> aliases) {
  const auto nothing = [](const ConfigReader&, TransformerConfig&) {};  // renamed before keys are read
  return {.name = aliases.front().first, .read = nothing, .aliases = std::move(aliases)};
}

ConfigKey id_key(const std::string& name, std::int64_t TransformerConfig::*field) {
  const auto read = [=](const ConfigReader& reader, TransformerConfig& config) {
    config.*field = reader.is_null(name.c_str()) ? -1 : reader.get_int(name.c_str(), config.*field);
  };
  const auto write = [=](const TransformerConfig& config, json& json) {
    json[name] = nullptr;
    if (config.*field >= 0) json[name] = config.*field;
  };
  return {name, read, write};
}

ConfigKey pad_token_key() { return id_key("pad_token_id", &TransformerConfig::pad_token_id); }

void set_labels(TransformerConfig& config, std::vector<std::string> names) {
  config.num_labels = static_cast<std::int64_t>(names.size());
  bool plain = true;
  for (std::int64_t id = 0; id < config.num_labels; ++id)
    plain = plain && names[static_cast<std::size_t>(id)] == plain_label(id);
  if (plain) names.clear();
  config.label_names = std::move(names);
}

ConfigKey label_keys() { return {"id2label", read_labels, write_labels}; }

json ConfigKeys::in_family_names(const json& file) const {
  json renamed = file;
  for (const ConfigKey& key : keys_) {
    for (const auto& [alias, own] : key.aliases) {
      const auto found = renamed.find(alias);
      if (found == renamed.end()) continue;
      if (!found->is_null()) renamed[own] = *found;
      renamed.erase(alias);
    }
  }
  return renamed;
}

TransformerConfig ConfigKeys::read(const TransformerConfig& base, const json& file,
                                   const std::string& source) const {
  const json json = in_family_names(file);
  const ConfigReader reader(json, source);
  TransformerConfig config = base;
  for (const ConfigKey& key : keys_) key.read(reader, config);
  // A key that the family has asked for is known; another must be absent, null or what changes nothing.
  for (const auto& [key, neutral] : foreign_keys()["neutral"].items())
    if (!reader.was_asked_for(key) && !reader.is(key.c_str(), neutral))
      reader.refuse(key.c_str(), "a key of other architectures, which may change the numbers of a " +
                                     std::string(family_));
  return config;
}

std::vector<std::string> ConfigKeys::unknown(const TransformerConfig& base, const json& file) const {
  const json json = in_family_names(file);
  const ConfigReader reader(json, family_);
  TransformerConfig config = base;
  for (const ConfigKey& key : keys_) key.read(reader, config);
  std::vector<std::string> unknown;
  const auto &neutral = foreign_keys()["neutral"], &others = foreign_keys()["of_no_numbers"];
  for (const auto& [key, value] : json.items())
    if (!reader.was_asked_for(key) && !neutral.contains(key) &&
        std::find(others.begin(), others.end(), key) == others.end())
      unknown.push_back(key);
  return unknown;
}

json ConfigKeys::write(const TransformerConfig& base, const TransformerConfig& config) const {
  json json;
  // Files hold the value where a field's 0 stands for a value that follows from other fields.
  const TransformerConfig resolved = config.resolved();
  for (const ConfigKey& key : keys_)
    if (key.write) key.write(resolved, json);
  const auto asked = fields_of(config), said = fields_of(read(base, json, "config.json"));
  std::vector<std::string> lost;
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (const auto& [name, value] = asked[i]; value != said[i].second)
      lost.push_back(std::string(name) + " = " + value + " (only " + said[i].second + ")");
  if (!lost.empty()) throw Error(family_, "'s config.json cannot say ", joined(lost));
  return json;
}

std::string ConfigKeys::in_own_names(std::string message) const {
  for (const ConfigKey& key : keys_) {
    for (const ConfigKey::Field& field : key.fields) {
      const std::string ours(field_name(field));
      if (!ours.empty()) message = std::regex_replace(message, std::regex("\\b" + ours + "\\b"), key.name);
    }
  }
  return message;
}

void ConfigKeys::set_layers(TransformerConfig& config) const {
  const nlohmann::json nothing = nlohmann::json::object();
  for (const ConfigKey& key : keys_)
    if (key.by_layer) key.read(ConfigReader(nothing, family_), config);
}

const ConfigKey* ConfigKeys::find(const ConfigKey::Field& field) const {
  for (const ConfigKey& key : keys_)
    if (std::find(key.fields.begin(), key.fields.end(), field) != key.fields.end()) return &key;
  return nullptr;
}

}  // namespace zoo
