#pragma once

/// @file
/// Use:
///
///     const auto [family, preset] = zoo::find_preset("gpt2");
///     const auto model = zoo::build_model(family, preset.config, zoo::Head::kCausalLm, /*seed=*/1337);
///     for (const zoo::Family& each : zoo::families()) std::cout << each.model_type << "\n";

#include <string_view>

#include "models/family.h"

namespace zoo {

/// All families, in the order in which `tzoo models` shows them.
const std::vector<Family>& families();

/// The model_type of each family.
std::vector<std::string> family_names();

/// Throws Error with the nearest name if no family has this model_type.
const Family& find_family(std::string_view model_type);

/// Throws Error naming the available heads if the family lacks this one.
void check_head(const Family& family, Head head);

struct PresetEntry {
  const Family& family;
  const Preset& preset;
};

/// Throws Error with the nearest name if there is no such preset.
PresetEntry find_preset(const std::string& name);

std::vector<std::string> preset_names();

/// Builds a model of the family with weights initialised from `seed`. Throws c10::Error if the configuration
/// is invalid, Error if the family lacks the head.
std::shared_ptr<Model> build_model(const Family& family, const TransformerConfig& config, Head head,
                                   std::uint64_t seed);

/// The same on the meta device, for counting: takes no memory, whatever its size.
std::shared_ptr<Model> build_meta_model(const Family& family, const TransformerConfig& config, Head head);

}  // namespace zoo
