#pragma once

#include <optional>
#include <string>

#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// Inputs of `tzoo forward`: the JSON text of each flag.
struct ForwardTexts {
  std::string input_ids;
  std::optional<std::string> attention_mask, token_type_ids, decoder_input_ids, labels, next_sentence_label;
};

/// Input tensors on `device`; requests every output that the model can return. Labels depend on the head:
/// rows of ids parallel to input_ids, one number or row of numbers per sequence, or [start, end]. Throws
/// Error naming the flag and the expected value.
ModelInputs read_forward_inputs(const ForwardTexts& texts, const LoadedModel& loaded,
                                const c10::Device& device);

}  // namespace zoo
