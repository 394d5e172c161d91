#include "models/checkpoint/tied_weights.h"

#include <algorithm>

#include "models/checkpoint/weights.h"

namespace zoo {

TransformerConfig with_own_projection(const Family& family, TransformerConfig config,
                                      const WeightFiles& files) {
  if (!config.tie_word_embeddings && !config.tie_prediction_bias) return config;
  TransformerConfig untied = config;
  untied.tie_word_embeddings = untied.tie_prediction_bias = false;
  const WeightTable tied = family.weight_table(config), own = family.weight_table(untied);
  const StoredNames names(tied, files);
  bool own_weight = !config.tie_word_embeddings, shares_bias = false;
  for (const auto& pair : tied.tied) {
    const auto is_copy = [&](const WeightName& name) { return name.theirs.front() == pair.first; };
    if (std::ranges::none_of(own.names, is_copy)) continue;
    const std::string copy = names.stored(pair.first), original = names.stored(pair.second);
    // If the files have only a copy, other rules of transformers decide the tie.
    const bool both = files.contains(copy) && files.contains(original) && original.ends_with(pair.second);
    const bool differs = both && !files.equal(copy, original);
    if (pair.first.ends_with(".bias")) {
      shares_bias = !differs;
    } else {
      own_weight = own_weight || differs;
    }
  }
  if (!own_weight) return config;
  untied.tie_prediction_bias = shares_bias;
  return untied;
}

}  // namespace zoo
