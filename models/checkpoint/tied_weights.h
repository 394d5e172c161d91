#pragma once

#include "models/family.h"
#include "models/formats/weight_files.h"

namespace zoo {

/// The configuration with the output projection of the files: as in transformers, a projection whose numbers
/// differ from the tied embedding's becomes untied, and so does its bias.
TransformerConfig with_own_projection(const Family& family, TransformerConfig config,
                                      const WeightFiles& files);

}  // namespace zoo
