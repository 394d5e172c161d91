#pragma once

#include <optional>

#include "models/graph/graph.h"
#include "models/model.h"

namespace zoo::graph {

// The passes of a model in evaluation mode, as exporters write them, in the model's type and on its device.
// Sizes are free: batch B, length T (of a source S), and P positions in caches. All throw Error naming the
// part of a pass that no graph can hold (see trace()), and as require_weights() does.

/// (input_ids, attention_mask) int64 [B, T], token_type_ids after them if `token_types` and the model has
/// segments, and of an encoder-decoder decoder_input_ids -> exported_outputs(). The batch is 1 if the head
/// reads the last token and the configuration does not say what padding is.
Graph forward_pass(Model& model, bool token_types);

/// What generation repeats. L layers of the decoder have caches past_key_values.i.key and .value, [B, Hkv, P,
/// D], each in this order; a step returns the longer ones, present.i.key and .value.
struct DecodingPasses {
  /// Of an encoder-decoder: (input_ids, attention_mask) [B, S] -> hidden states [B, S, C].
  std::optional<Graph> encode;
  /// Of an encoder-decoder: (decoder_input_ids [B, T], encoder_hidden_states [B, S, C],
  /// encoder_attention_mask [B, S]) -> logits [B, T, V], 2 L caches of the decoder, 2 L of the memory.
  std::optional<Graph> start;
  /// (input_ids [B, T], attention_mask [B, P + T], position_ids [B, T] if step_takes_positions(), 2 L caches)
  /// -> logits [B, 1, V] of the last token, 2 L caches. P may be 0. Of an encoder-decoder (decoder_input_ids
  /// [B, 1], encoder_attention_mask [B, S], 2 L caches, 2 L caches of the memory) -> the same.
  Graph step;
};

/// With `all_logits` a decoder's step gives logits [B, T, V] of all tokens. Throws Error also for positions
/// that turn cached keys: RopeScaling::depends_on_length().
DecodingPasses decoding_passes(Model& model, bool all_logits = false);

bool step_takes_positions(const TransformerConfig& config);

}  // namespace zoo::graph
