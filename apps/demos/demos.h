#pragma once

#include "apps/command/arguments.h"

namespace zoo {

/// `tzoo demo`: runs one demo, or all.
int run_demo(const Arguments& arguments);

// One source file per demo: demo_embeddings is in embeddings.cpp. Each returns the exit code; main prints
// exceptions. What else a file has is in a namespace of its name (demos::embeddings), since the same short
// names mean something else in the next.
int demo_embeddings(const Arguments& arguments);
int demo_ambiguous(const Arguments& arguments);
int demo_disagreement(const Arguments& arguments);
int demo_scaling_variance(const Arguments& arguments);
int demo_masking(const Arguments& arguments);
int demo_positions(const Arguments& arguments);
int demo_heads(const Arguments& arguments);
int demo_norms(const Arguments& arguments);
int demo_model_size(const Arguments& arguments);
int demo_feed_forwards(const Arguments& arguments);
int demo_efficient_attention(const Arguments& arguments);
int demo_rnn_vs_transformer(const Arguments& arguments);
int demo_explore_embeddings(const Arguments& arguments);
int demo_translate(const Arguments& arguments);
int demo_length_generalisation(const Arguments& arguments);
int demo_training_memory(const Arguments& arguments);

}  // namespace zoo
