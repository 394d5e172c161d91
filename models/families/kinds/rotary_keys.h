#pragma once

#include <string>
#include <vector>

#include "models/formats/config_keys.h"

namespace zoo {

/// rope_theta and the scaling of rotary positions, as transformers 4 and 5 write them: the base is
/// `rope_theta` at the top or inside `rope_parameters`; the scaling is `rope_scaling`, or `rope_parameters`
/// with a rope_type of default, linear, dynamic, llama3, yarn or longrope. `original` is the original context
/// of longrope in files that do not name it beside the scaling; 0: as the scaling says.
ConfigKey rope_key(std::int64_t original = 0);

/// The same for families whose heads rotate whole: another partial_rotary_factor than 1 is refused.
std::vector<ConfigKey> rope_keys();

/// Reads rope_parameters with an object for each type of layer, full_attention and sliding_attention, as
/// transformers 5 writes them. False, and nothing read, if they are not there. The second has no scaling.
bool read_ropes_by_layer(const ConfigReader& reader, TransformerConfig& config);

/// The share of a head's dimensions that rotate, at the top under `name` or as partial_rotary_factor inside
/// `rope_parameters`; `absent` without either.
ConfigKey partial_rotary_key(const std::string& name, double absent);

}  // namespace zoo
