#pragma once

#include <optional>
#include <string>

#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// The inputs of `tzoo forward`, each a JSON text as its flag has it.
struct ForwardTexts {
  std::string input_ids;
  std::optional<std::string> attention_mask, token_type_ids, decoder_input_ids, labels;
};

/// The tensors on `device`, with everything asked for that a model can show. Labels have the form of the
/// head: rows of ids beside input_ids, one number or row of numbers a sequence, or [start, end]. Throws Error
/// naming the flag and what it expects.
ModelInputs read_forward_inputs(const ForwardTexts& texts, const LoadedModel& loaded,
                                const c10::Device& device);

}  // namespace zoo
