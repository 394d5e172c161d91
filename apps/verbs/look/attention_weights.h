#pragma once

#include <vector>

#include "apps/plots/attention_maps.h"
#include "models/tasks/look_texts.h"

namespace zoo {

/// Attention of a model on a text: self-attention of an encoder or decoder; for an encoder-decoder that of
/// both, and the decoder's attention to the encoder ("cross"). With `rollout` each self-attention's rollout
/// up to each layer instead, as maps of one head. Throws Error naming the flag for a too long text; Error for
/// a model without attention.
std::vector<AttentionMaps> attention_of(const TextModel& model, TextInputs read, bool rollout);

}  // namespace zoo
