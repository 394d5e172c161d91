#pragma once

#include <map>

#include "models/inference/packed_linear.h"

namespace zoo::inference {

/// Low-rank terms of a stack's weights (LoRA: Hu et al., 2022), in float32 whatever the weights are. A pass
/// adds them to the products of the sequences that have them, W x + B (A x), so that sequences with different
/// adapters, and without, share each pass over the packed weights.
struct PackedAdapter {
  struct Term {
    PackedLinear a, b;  // [r, in]; [out, r] times the scale
  };
  std::map<const PackedLinear*, Term> terms;  // by the stack's weight
  std::size_t rank = 0;                       // the largest

  /// Null if the weight has none.
  const Term* find(const PackedLinear& weight) const {
    const auto found = terms.find(&weight);
    return found == terms.end() ? nullptr : &found->second;
  }
};

}  // namespace zoo::inference
