#pragma once

#include <string>

#include "models/formats/weight_files.h"
#include "models/formats/weight_table.h"

namespace zoo {

/// True if both tensors have the same type, shape and numbers. Compares parts of them, whose pages it gives
/// back, so that memory holds neither as a whole.
bool same_numbers(const WeightFiles& files, const std::string& a, const std::string& b);

/// True if the files hold other numbers for an output projection than for the embedding that it is tied to.
/// `untied` is the family's table without the tie.
bool has_own_projection(const WeightTable& tied, const WeightTable& untied, const WeightFiles& files);

}  // namespace zoo
