#pragma once

#include "models/family.h"
#include "models/formats/weight_files.h"

namespace zoo {

/// The configuration with the output projection that the files hold: as in transformers, one with other
/// numbers than the embedding that it is tied to stays a projection of its own, and so does its bias.
TransformerConfig with_own_projection(const Family& family, TransformerConfig config,
                                      const WeightFiles& files);

}  // namespace zoo
