#pragma once

#include <string>

#include "models/checkpoint/checkpoint.h"
#include "models/inference/save_packed.h"

namespace zoo {

/// Passages of a corpus or a text file (resolve_dataset), of an encoder lines, evenly spread over it, as the
/// checkpoint's tokenizer encodes them: about 32,768 tokens in all. Throws Error if there is no tokenizer,
/// the text is not to be had or the tokenizer's ids do not fit the model.
CalibrationText calibration_text(const CheckpointConfig& checkpoint, const std::string& text);

}  // namespace zoo
