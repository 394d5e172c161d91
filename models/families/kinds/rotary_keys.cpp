#include "models/families/kinds/rotary_keys.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/families/kinds/shared.h"

namespace zoo {
namespace {

using C = TransformerConfig;

// transformers computes the values of absent keys.
RopeScaling read_yarn(const ConfigReader& reader, std::int64_t max_positions, std::int64_t original) {
  RopeScaling scaling{.kind = RopeScalingKind::kYarn, .original_max_positions = original};
  scaling.factor = reader.get_double(
      "factor", static_cast<double>(max_positions) / static_cast<double>(scaling.original_max_positions));
  const auto magnitude = [&](double weight) {
    return scaling.factor <= 1 ? 1.0 : 0.1 * weight * std::log(scaling.factor) + 1.0;
  };
  const double mscale = reader.get_double("mscale", 0), of_all = reader.get_double("mscale_all_dim", 0);
  const bool both = mscale != 0 && of_all != 0;
  scaling.attention_factor =
      reader.get_double("attention_factor", both ? magnitude(mscale) / magnitude(of_all) : magnitude(1.0));
  scaling.beta_fast = reader.get_double("beta_fast", scaling.beta_fast);
  scaling.beta_slow = reader.get_double("beta_slow", scaling.beta_slow);
  scaling.truncate = reader.get_bool("truncate", true);
  return scaling;
}

std::vector<double> read_factors(const ConfigReader& reader, const char* key) {
  if (!reader.has(key)) throw Error(reader.source(), ": the key '", key, "' is missing");
  std::vector<double> factors;
  const nlohmann::json& list = reader.at(key);
  for (const nlohmann::json& factor : list.is_array() ? list : nlohmann::json::array({nullptr})) {
    if (!factor.is_number()) reader.refuse(key, "expected a list of numbers");
    factors.push_back(factor.get<double>());
  }
  return factors;
}

RopeScaling read_longrope(const ConfigReader& reader, std::int64_t max_positions, std::int64_t original) {
  RopeScaling scaling{.kind = RopeScalingKind::kLongRope, .original_max_positions = original};
  if (original <= 1) reader.refuse("original_max_position_embeddings", "expected a number above 1");
  const double factor =
      reader.get_double("factor", static_cast<double>(max_positions) / static_cast<double>(original));
  const double by_length = std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original)));
  scaling.attention_factor = reader.get_double("attention_factor", factor <= 1 ? 1.0 : by_length);
  scaling.short_factors = read_factors(reader, "short_factor");
  scaling.long_factors = read_factors(reader, "long_factor");
  return scaling;
}

// `reader` is of the object that holds the scaling; `original` is the original context that the file names
// outside of it, or 0.
RopeScaling read_scaling(const ConfigReader& reader, std::int64_t max_positions, std::int64_t original) {
  RopeScaling scaling;
  // Older files say "type" for "rope_type".
  const char* type_key = reader.has("rope_type") ? "rope_type" : "type";
  const std::string type = reader.get_string(type_key, "default");
  if (type == "default") return scaling;
  // The key beside the scaling is preferred to the one inside.
  if (original <= 0) original = reader.get_int("original_max_position_embeddings", max_positions);
  // Older files of Phi-3 say su or yarn.
  if (type == "longrope" || type == "su" || (type == "yarn" && reader.has("short_factor")))
    return read_longrope(reader, max_positions, original);
  if (type == "yarn") return read_yarn(reader, max_positions, original);
  if (type != "linear" && type != "llama3" && type != "dynamic")
    reader.refuse(type_key, "expected default, linear, dynamic, llama3, yarn or longrope");
  if (!reader.has("factor")) throw Error(reader.source(), ": the key 'factor' is missing");
  for (const auto kind : {RopeScalingKind::kLinear, RopeScalingKind::kDynamic, RopeScalingKind::kLlama3})
    if (type == name_of(kind)) scaling.kind = kind;
  scaling.factor = reader.get_double("factor", 1.0);
  if (type == "dynamic") scaling.original_max_positions = max_positions;
  if (type != "llama3") return scaling;
  for (const char* key : {"low_freq_factor", "high_freq_factor"})
    if (!reader.has(key)) throw Error(reader.source(), ": the key '", key, "' is missing");
  scaling.low_frequency_factor = reader.get_double("low_freq_factor", 1.0);
  scaling.high_frequency_factor = reader.get_double("high_freq_factor", 4.0);
  scaling.original_max_positions = original;
  return scaling;
}

void read_rope(const ConfigReader& reader, TransformerConfig& config, std::int64_t original) {
  config.rope_theta = reader.get_double("rope_theta", config.rope_theta);
  // Where both stand, transformers 5 prefers the older one.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!reader.has(key)) continue;
    const nlohmann::json& object = reader.at(key);
    if (!object.is_object()) reader.refuse(key, "expected an object");
    if (object.empty()) continue;
    const ConfigReader inner(object, reader.source() + ": " + key);
    for (const char* type : {"full_attention", "sliding_attention"})
      if (inner.has(type)) inner.refuse(type, "expected one rope_type for all layers");
    config.rope_theta = inner.get_double("rope_theta", config.rope_theta);
    config.rope_scaling = read_scaling(inner, config.max_positions,
                                       reader.get_int("original_max_position_embeddings", original));
    return;
  }
}

// As transformers 4 writes it, which 5 reads too.
void write_rope(const TransformerConfig& config, nlohmann::json& json) {
  const RopeScaling& scaling = config.rope_scaling;
  json["rope_theta"] = config.rope_theta;
  nlohmann::json& written = json["rope_scaling"] = nullptr;
  if (scaling.kind == RopeScalingKind::kNone) return;
  written["rope_type"] = name_of(scaling.kind);
  if (scaling.kind != RopeScalingKind::kLongRope) written["factor"] = scaling.factor;
  if (scaling.kind == RopeScalingKind::kLinear || scaling.kind == RopeScalingKind::kDynamic) return;
  written["original_max_position_embeddings"] = scaling.original_max_positions;
  if (scaling.kind == RopeScalingKind::kLlama3) {
    written["low_freq_factor"] = scaling.low_frequency_factor;
    written["high_freq_factor"] = scaling.high_frequency_factor;
    return;
  }
  written["attention_factor"] = scaling.attention_factor;
  if (scaling.kind == RopeScalingKind::kYarn) {
    written["beta_fast"] = scaling.beta_fast;
    written["beta_slow"] = scaling.beta_slow;
    written["truncate"] = scaling.truncate;
  } else {
    json["original_max_position_embeddings"] = scaling.original_max_positions;
    written["short_factor"] = scaling.short_factors;
    written["long_factor"] = scaling.long_factors;
  }
}

}  // namespace

ConfigKey rope_key(std::int64_t original) {
  const auto read = [original](const ConfigReader& reader, C& config) {
    read_rope(reader, config, original);
  };
  return {"rope_theta", read, write_rope, {&C::rope_theta}};
}

bool read_ropes_by_layer(const ConfigReader& reader, TransformerConfig& config) {
  const char *key = "rope_parameters", *full = "full_attention", *local = "sliding_attention";
  if (!reader.has(key) || !reader.at(key).is_object()) return false;
  const ConfigReader both(reader.at(key), reader.source() + ": " + key);
  const auto of_type = [&](const char* type, C part) {
    const nlohmann::json wrapped{{key, both.at(type)}};
    read_rope(ConfigReader(wrapped, both.source() + ": " + type), part, 0);
    return part;
  };
  if (!both.has(full) && !both.has(local)) return false;
  if (both.has(full)) config = of_type(full, config);
  config.rope_scaling.truncate = true;  // transformers 5 reads it beside the objects, where none writes it
  if (!both.has(local)) return true;
  C part = config;
  part.rope_theta = config.window_rope_theta;
  part.rope_scaling = {};
  part = of_type(local, part);
  if (part.rope_scaling.kind != RopeScalingKind::kNone) both.refuse(local, "expected a rope_type of default");
  config.window_rope_theta = part.rope_theta;
  return true;
}

ConfigKey partial_rotary_key(const std::string& name, double absent) {
  const auto read = [name, absent](const ConfigReader& reader, C& config) {
    if (config.num_heads <= 0) reader.refuse("num_attention_heads", "expected a positive number");
    double share = reader.get_double(name.c_str(), absent);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      if (!reader.has(key)) continue;
      const ConfigReader inner(reader.at(key), reader.source() + ": " + key);
      share = inner.get_double("partial_rotary_factor", share);
      break;
    }
    if (!(share > 0 && share <= 1)) reader.refuse(name.c_str(), "expected a number in (0, 1]");
    config.rotary_dim = static_cast<std::int64_t>(static_cast<double>(config.head_size()) * share);
    if (share < 1 && (config.rotary_dim == 0 || config.rotary_dim % 2 != 0))
      throw Error(reader.source(), ": a share of ", share, " ('", name,
                  "', or partial_rotary_factor in rope_parameters) of the ", config.head_size(),
                  " dimensions of a head (hidden_size / num_attention_heads) is ", config.rotary_dim,
                  ", expected an even number");
  };
  const auto write = [name](const C& config, nlohmann::json& json) {
    const double share = static_cast<double>(config.rotary_size()) / static_cast<double>(config.head_size());
    json[name] = share;
    if (!json["rope_scaling"].is_null()) json["rope_scaling"]["partial_rotary_factor"] = share;
  };
  return {name, read, write};
}

std::vector<ConfigKey> rope_keys() {
  const auto refuse_part = [](const ConfigReader& reader, C& config) {
    if (config.rotary_dim == config.head_size()) return;
    for (const char* key : {"rope_scaling", "rope_parameters"})
      if (reader.has(key)) reader.refuse(key, "expected a partial_rotary_factor of 1");
    reader.refuse("partial_rotary_factor", "expected 1");
  };
  ConfigKey whole = then_read(partial_rotary_key("partial_rotary_factor", 1.0), refuse_part);
  whole.write = {};
  return {rope_key(), whole};
}

}  // namespace zoo
