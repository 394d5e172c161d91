#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/layers/transformer_config.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// How tokens become entities: the strategies of transformers' token classification pipeline.
enum class Aggregation {
  kNone,     ///< each token by itself, with its whole label
  kSimple,   ///< tokens with labels of one kind
  kFirst,    ///< words, with the label of their first token
  kAverage,  ///< words, with the label of their tokens' mean scores
  kMax,      ///< words, with the label of their surest token
};

/// "none", "simple", "first", "average", "max": in the order of the enum.
const std::vector<std::string>& aggregation_names();

struct LabelledSpan {
  std::string label;  // "B-PER" of a single token, else "PER"
  float score = 0.0F;
  ByteRange range;  // of the text
};

/// Name of a label; "LABEL_0" and so on if the model has none.
std::string label_name(const TransformerConfig& config, std::int64_t label);

/// The entities of a text, in order; those labelled "O" are left out. scores [T, num_labels] are
/// probabilities.
std::vector<LabelledSpan> entities_of(const TransformerConfig& config, const Tokenizer& tokenizer,
                                      const std::string& text, const Encoding& encoding,
                                      const at::Tensor& scores, Aggregation aggregation);

}  // namespace zoo
