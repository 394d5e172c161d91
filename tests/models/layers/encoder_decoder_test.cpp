
#include "models/layers/stack.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::largest_difference;
using zoo::test::relative_error;

namespace {

TransformerConfig two_stacks() {
  TransformerConfig config = test::small_config();
  config.shape = Shape::kEncoderDecoder;
  config.position = PositionKind::kT5Buckets;
  config.relative_buckets = 8;
  config.relative_max_distance = 16;
  config.num_layers = 2;
  config.num_decoder_layers = 3;
  return config;
}

EncoderDecoderStack random_stack(const TransformerConfig& config, std::uint64_t seed) {
  at::manual_seed(seed);
  EncoderDecoderStack stack(config);
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : stack->parameters()) parameter.normal_(0.0, 0.4);
  stack->eval();
  return stack;
}

at::Tensor mask_of(const std::vector<std::int64_t>& values, std::int64_t length) {
  return at::tensor(values, at::kLong).view({-1, length});
}

}  // namespace

TEST_CASE("a block with cross-attention adds it between self-attention and feed-forward") {
  TransformerConfig config = test::small_config();
  config.cross_attention = true;
  config.norm_placement = GENERATE(NormPlacement::kPre, NormPlacement::kPost);
  at::manual_seed(1);
  Block block(config);
  {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : block->parameters()) parameter.normal_(0.0, 0.4);
  }
  const at::Tensor x = at::randn({2, 4, 12}), memory = at::randn({2, 3, 12});
  const CrossAttentionContext cross{.memory = memory};
  const auto self = [&](const at::Tensor& y) { return block->attention->forward(y, {}); };
  const auto other = [&](const at::Tensor& y) { return block->cross_attention->forward(y, cross); };
  at::Tensor y = x;
  if (config.norm_placement == NormPlacement::kPre) {
    y = y + self(block->attention_norm->branch(y).normed);
    y = y + other(block->cross_attention_norm->branch(y).normed);
    y = y + block->feed_forward(block->feed_forward_norm->branch(y).normed);
  } else {
    y = block->attention_norm(y + self(y));
    y = block->cross_attention_norm(y + other(y));
    y = block->feed_forward_norm(y + block->feed_forward(y));
  }
  CHECK(at::equal(block->forward(x, {}, cross), y));
}

TEST_CASE("the decoder attends to what the encoder gives, each with depths of its own") {
  TransformerConfig config = two_stacks();
  config.norm_placement = GENERATE(NormPlacement::kPre, NormPlacement::kPost);
  EncoderDecoderStack stack = random_stack(config, 2);
  REQUIRE(stack->encoder->blocks->size() == 2);
  REQUIRE(stack->decoder->blocks->size() == 3);
  const at::Tensor source = at::randn({2, 5, 12}), target = at::randn({2, 4, 12});
  const at::Tensor mask = mask_of({1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, 5);
  const EncoderDecoderOutput output = stack(EncoderDecoderInputs{.encoder_embeddings = source,
                                                                 .decoder_embeddings = target,
                                                                 .attention_mask = mask,
                                                                 .output_hidden_states = true,
                                                                 .output_attentions = true});
  const StackOutput encoded =
      stack->encoder(StackInputs{.embeddings = source, .attention_mask = mask, .output_attentions = true});
  CHECK(at::equal(output.encoder.hidden, encoded.hidden));
  const StackOutput decoded = stack->decoder(StackInputs{
      .embeddings = target, .memory = encoded.hidden, .memory_mask = mask, .output_attentions = true});
  CHECK(at::equal(output.decoder.hidden, decoded.hidden));
  CHECK(output.encoder.hidden_states.size() == 3);
  CHECK(output.decoder.hidden_states.size() == 4);
  REQUIRE(output.decoder.cross_attentions.size() == 3);
  CHECK(output.encoder.cross_attentions.empty());
  for (const at::Tensor& weights : output.decoder.cross_attentions) {
    REQUIRE(weights.sizes() == at::IntArrayRef({2, 2, 4, 5}));
    CHECK(largest_difference(weights.sum(-1), at::ones({2, 2, 4})) < 1e-5);
    CHECK(weights[1].slice(-1, 3).abs().max().item<double>() == 0);
  }
}

TEST_CASE("a memory that is given stands for the encoder") {
  EncoderDecoderStack stack = random_stack(two_stacks(), 3);
  const at::Tensor source = at::randn({1, 5, 12}), target = at::randn({1, 4, 12});
  const auto whole = stack(EncoderDecoderInputs{.encoder_embeddings = source, .decoder_embeddings = target});
  const auto half = stack(EncoderDecoderInputs{.decoder_embeddings = target, .memory = whole.encoder.hidden});
  CHECK(at::equal(half.decoder.hidden, whole.decoder.hidden));
}

TEST_CASE("decoding with the cache equals the whole, and reads the memory once") {
  TransformerConfig config = two_stacks();
  config.position = GENERATE(PositionKind::kT5Buckets, PositionKind::kAlibi, PositionKind::kShaw);
  config.num_kv_heads = GENERATE(1, 2);
  EncoderDecoderStack stack = random_stack(config, 4);
  const at::NoGradGuard no_grad;
  const at::Tensor source = at::randn({2, 5, 12}), target = at::randn({2, 6, 12});
  const at::Tensor mask = mask_of({1, 1, 1, 1, 1, 0, 0, 1, 1, 1}, 5);
  const auto whole = stack(EncoderDecoderInputs{
      .encoder_embeddings = source, .decoder_embeddings = target, .attention_mask = mask});
  KeyValueCache cache(config, 2, 6, at::TensorOptions());
  const std::int64_t before = cache.bytes();
  at::Tensor memory = whole.encoder.hidden;
  std::vector<at::Tensor> parts;
  for (const auto& [from, to] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {1, 4}, {4, 6}}) {
    parts.push_back(stack(EncoderDecoderInputs{.decoder_embeddings = target.slice(1, from, to),
                                               .attention_mask = mask,
                                               .memory = memory,
                                               .cache = &cache})
                        .decoder.hidden);
    memory = at::randn_like(memory);  // its keys and values are known by now
  }
  CHECK(relative_error(at::cat(parts, 1), whole.decoder.hidden) < 1e-5);
  // Three layers: keys and values of 2 rows, Hkv heads, 5 positions, 6 numbers of 4 bytes.
  CHECK(cache.bytes() - before == 3 * 2 * 2 * config.kv_heads() * 5 * 6 * 4);
}

TEST_CASE("padding of the source changes nothing, on either side") {
  TransformerConfig config = two_stacks();
  config.position = GENERATE(PositionKind::kT5Buckets, PositionKind::kAlibi, PositionKind::kShaw);
  EncoderDecoderStack stack = random_stack(config, 5);
  const at::Tensor source = at::randn({1, 4, 12}), target = at::randn({1, 3, 12}),
                   padding = at::randn({1, 2, 12});
  const auto run = [&](const at::Tensor& embeddings, const at::Tensor& mask) {
    return stack(EncoderDecoderInputs{
                     .encoder_embeddings = embeddings, .decoder_embeddings = target, .attention_mask = mask})
        .decoder.hidden;
  };
  const at::Tensor alone = run(source, at::Tensor());
  CHECK(relative_error(run(at::cat({padding, source}, 1), mask_of({0, 0, 1, 1, 1, 1}, 6)), alone) < 1e-5);
  CHECK(relative_error(run(at::cat({source, padding}, 1), mask_of({1, 1, 1, 1, 0, 0}, 6)), alone) < 1e-5);
  CHECK(relative_error(run(at::cat({source, padding}, 1), at::Tensor()), alone) > 1e-3);
}

TEST_CASE("a memory that is hidden as a whole adds zeros") {
  TransformerConfig config = test::small_config();
  at::manual_seed(6);
  CrossAttention attention(config);
  const at::Tensor memory = at::randn({2, 3, 12});
  const AttentionMask mask =
      make_attention_mask(mask_of({0, 0, 0, 1, 1, 1}, 3), {.queries = 4, .keys = 3}, at::kFloat, at::kCPU);
  at::Tensor weights;
  const at::Tensor output =
      attention(at::randn({2, 4, 12}),
                CrossAttentionContext{
                    .memory = memory, .mask = mask, .weights = GENERATE(false, true) ? &weights : nullptr});
  CHECK(largest_difference(output[0], attention->out->bias.expand({4, 12})) < 1e-6);
  CHECK(largest_difference(output[1], attention->out->bias.expand({4, 12})) > 1e-3);
}

TEST_CASE("no position of the decoder sees a later one of its own sequence, and all see the source") {
  TransformerConfig config = two_stacks();
  config.position = GENERATE(PositionKind::kT5Buckets, PositionKind::kAlibi, PositionKind::kShaw);
  EncoderDecoderStack stack = random_stack(config, 7);
  const at::Tensor source = at::randn({1, 5, 12}), target = at::randn({1, 6, 12});
  at::Tensor later = target.clone(), last = source.clone();
  later[0][3].copy_(at::randn({12}));
  last[0][4].copy_(at::randn({12}));
  const auto run = [&](const at::Tensor& from, const at::Tensor& to) {
    return stack(EncoderDecoderInputs{.encoder_embeddings = from, .decoder_embeddings = to}).decoder.hidden;
  };
  const at::Tensor before = run(source, target);
  CHECK(at::equal(run(source, later).slice(1, 0, 3), before.slice(1, 0, 3)));
  CHECK(largest_difference(run(source, later).slice(1, 3), before.slice(1, 3)) > 1e-3);
  CHECK(largest_difference(run(last, target)[0][0], before[0][0]) > 1e-4);
}

TEST_CASE("a stack and its memory must fit") {
  EncoderDecoderStack stack = random_stack(two_stacks(), 8);
  const at::Tensor x = at::randn({2, 3, 12});
  using Catch::Contains;
  CHECK_THAT(test::c10_error_of([&] { stack->decoder(StackInputs{.embeddings = x}); }),
             Contains("with cross-attention was given no memory"));
  CHECK_THAT(test::c10_error_of([&] { stack->encoder(StackInputs{.embeddings = x, .memory = x}); }),
             Contains("without cross-attention was given a memory"));
  CHECK_THAT(test::c10_error_of([&] {
               stack->decoder(StackInputs{.embeddings = x, .memory = at::randn({1, 3, 12})});
             }),
             Contains("memory must be [2, length, 12], got [1, 3, 12]"));
  CHECK_THAT(test::c10_error_of([] { EncoderDecoderStack{test::small_config()}; }), Contains("shape of one"));
}
