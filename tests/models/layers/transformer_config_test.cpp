
#include "models/layers/stack.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;

namespace {

std::string fault_of(const TransformerConfig& config) {
  return test::c10_error_of([&] { config.validate(); });
}

}  // namespace

TEST_CASE("a configuration's derived sizes follow from the given ones unless they are given too") {
  TransformerConfig config = test::small_config();
  config.intermediate_size = 0;
  CHECK(config.kv_heads() == 2);
  CHECK(config.head_size() == 6);
  CHECK(config.feed_forward_size() == 48);
  config.num_kv_heads = 1;
  config.head_dim = 5;
  config.intermediate_size = 7;
  CHECK(config.kv_heads() == 1);
  CHECK(config.head_size() == 5);
  CHECK(config.feed_forward_size() == 7);
  CHECK(fault_of(config).empty());
}

TEST_CASE("each field out of range is named with its value") {
  struct Case {
    void (*spoil)(TransformerConfig&);
    const char* message;
  };
  const std::vector<Case> cases{
      {[](auto& c) { c.vocab_size = 0; }, "vocab_size must be positive, got 0"},
      {[](auto& c) { c.hidden_size = -8; }, "hidden_size must be positive, got -8"},
      {[](auto& c) { c.num_layers = 0; }, "num_layers must be positive, got 0"},
      {[](auto& c) { c.num_heads = 0; }, "num_heads must be positive, got 0"},
      {[](auto& c) { c.num_heads = 0, c.position = PositionKind::kRotary; },
       "num_heads must be positive, got 0"},
      {[](auto& c) { c.max_positions = 0; }, "max_positions must be positive, got 0"},
      {[](auto& c) { c.num_heads = 5; }, "hidden_size (12) must be a multiple of num_heads (5)"},
      {[](auto& c) { c.num_heads = 4, c.num_kv_heads = 3; },
       "num_heads (4) must be a multiple of num_kv_heads (3)"},
      {[](auto& c) { c.num_kv_heads = -1; }, "num_kv_heads must not be negative, got -1"},
      {[](auto& c) { c.head_dim = -1; }, "head_dim must not be negative, got -1"},
      {[](auto& c) { c.intermediate_size = -1; }, "intermediate_size must not be negative, got -1"},
      {[](auto& c) { c.position = PositionKind::kRotary, c.head_dim = 3; }, "even head_dim, got 3"},
      {[](auto& c) { c.position = PositionKind::kRotary, c.rope_theta = 0; },
       "rope_theta must be positive, got 0"},
      {[](auto& c) { c.dropout = 1.0; }, "dropout must be in [0, 1), got 1"},
      {[](auto& c) { c.attention_dropout = -0.5; }, "attention_dropout must be in [0, 1), got -0.5"},
      {[](auto& c) { c.embedding_dropout = std::nan(""); }, "embedding_dropout must be in [0, 1), got nan"},
      {[](auto& c) { c.classifier_dropout = 1; }, "classifier_dropout must be in [0, 1), got 1"},
      {[](auto& c) { c.token_dropout = -1; }, "token_dropout must be in [0, 1), got -1"},
      {[](auto& c) { c.answer_dropout = 3; }, "answer_dropout must be in [0, 1), got 3"},
      {[](auto& c) { c.type_vocab_size = -2; }, "type_vocab_size must not be negative, got -2"},
      {[](auto& c) { c.embedding_size = -4; }, "embedding_size must not be negative, got -4"},
      {[](auto& c) { c.num_labels = 0; }, "num_labels must be positive, got 0"},
      {[](auto& c) { c.label_names = {"one"}; }, "label_names as num_labels (2), got 1"},
      {[](auto& c) { c.pad_token_id = 13; }, "pad_token_id must be in [0, 13), got 13"},
      {[](auto& c) { c.pad_token_id = -2; }, "pad_token_id must be in [0, 13), got -2"},
      {[](auto& c) { c.position_count = PositionCount::kNotPadding; }, "need a pad_token_id"},
      {[](auto& c) {
         c.position_count = PositionCount::kNotPadding;
         c.pad_token_id = 7;
         c.max_positions = 8;
       },
       "max_positions (8) must be more than pad_token_id + 1 (8)"},
      {[](auto& c) { c.layer_norm_eps = 0; }, "layer_norm_eps must be positive, got 0"},
      {[](auto& c) { c.initializer_range = -1; }, "initializer_range must be positive, got -1"},
      {[](auto& c) { c.activation_dropout = 1; }, "activation_dropout must be in [0, 1), got 1"},
      {[](auto& c) { c.final_dropout = -1; }, "final_dropout must be in [0, 1), got -1"},
      {[](auto& c) { c.attention_scale = -2; }, "attention_scale must not be negative, got -2"},
      {[](auto& c) { c.num_decoder_layers = -1; }, "num_decoder_layers must be in [0, 100000], got -1"},
      {[](auto& c) { c.position = PositionKind::kT5Buckets, c.relative_buckets = 3; },
       "relative_buckets must be at least 4, got 3"},
      {[](auto& c) { c.position = PositionKind::kT5Buckets, c.relative_max_distance = 16; },
       "relative_max_distance must be more than 16 for 32 buckets, got 16"},
      {[](auto& c) { c.position = PositionKind::kShaw, c.relative_max_distance = 0; },
       "relative_max_distance must be positive, got 0"},
      {[](auto& c) { c.position = PositionKind::kRotary, c.rope_scaling.factor = 0; },
       "factor of rope_scaling must be positive, got 0"},
      {[](auto& c) {
         c.position = PositionKind::kRotary;
         c.rope_scaling = {.kind = RopeScalingKind::kLlama3, .low_frequency_factor = 4};
       },
       "0 < low_freq_factor < high_freq_factor and a positive number of original positions, got 4, 4"},
  };
  for (const Case& one : cases) {
    TransformerConfig config = test::small_config();
    REQUIRE(fault_of(config).empty());
    one.spoil(config);
    CHECK_THAT(fault_of(config), Contains(one.message));
  }
}

TEST_CASE("all faults of a configuration are told at once") {
  TransformerConfig config = test::small_config();
  config.vocab_size = -3;
  config.num_heads = 5;
  config.dropout = 2;
  CHECK_THAT(fault_of(config), Contains("vocab_size") && Contains("num_heads (5)") && Contains("dropout"));
}

TEST_CASE("the stack refuses what it does not have") {
  struct Case {
    void (*choose)(TransformerConfig&);
    const char* message;
  };
  const std::vector<Case> cases{
      {[](auto& c) {
         c.attention = AttentionKind::kLinformer;
         c.attention_projection = 4;
       },
       "only an encoder has it"},
      {[](auto& c) {
         c.shape = Shape::kEncoder;
         c.cross_attention = true;
       },
       "only a decoder has cross-attention"},
      {[](auto& c) { c.shape = Shape::kEncoderDecoder; }, "an encoder or a decoder"},
      {[](auto& c) { c.num_layers = 0; }, "num_layers must be positive"},
  };
  for (const Case& one : cases) {
    TransformerConfig config = test::small_config();
    one.choose(config);
    CHECK_THAT(test::c10_error_of([&] { TransformerStack stack(config); }), Contains(one.message));
  }
}
