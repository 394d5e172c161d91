#include "models/inference/packed_stack.h"

#include <algorithm>

#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>

#include "models/layers/attention/relative_positions.h"

namespace zoo::inference {
namespace {

bool has_relative_bias(const TransformerConfig& config) {
  return config.position == PositionKind::kT5Buckets || config.position == PositionKind::kAlibi;
}

}  // namespace

bool PackedStack::supports(const TransformerStackImpl& stack) {
  const TransformerConfig& config = stack.config();
  return config.attention == AttentionKind::kFull && config.position != PositionKind::kShaw &&
         pointwise(gate_of(config.activation)) != kernels::Pointwise::kNone &&
         stack.block(0).attention->qkv->weight.is_cpu();
}

PackedStack::PackedNorm PackedStack::norm_of(const Norm& norm) {
  return norm ? PackedNorm{floats_of(norm->weight), floats_of(norm->bias)} : PackedNorm{};
}

PackedStack::PackedStack(TransformerStackImpl& stack, const PackOptions& options)
    : config_(stack.config()), options_(options) {
  const TransformerConfig& config = config_;
  TORCH_CHECK(supports(stack), "there are no packed kernels for ", name_of(config.attention),
              " attention with ", name_of(config.position), " positions and ", name_of(config.activation));
  // An encoder has no cache to shrink.
  if (config.shape == Shape::kEncoder && options.cache == WeightType::kInt8)
    options_.cache = options.weights == WeightType::kFloat32 ? WeightType::kFloat32 : WeightType::kBfloat16;
  for (const auto& module : *stack.blocks) {
    auto& block = *module->as<BlockImpl>();
    Layer& layer = layers_.emplace_back();
    const auto pack = [&](Linear& linear) { return PackedLinear(*linear, options.weights, options.release); };
    layer.qkv = pack(block.attention->qkv);
    layer.out = pack(block.attention->out);
    layer.attention_norm = norm_of(block.attention_norm);
    if (config.cross_attention) {
      layer.cross_q = pack(block.cross_attention->q);
      layer.cross_kv = pack(block.cross_attention->kv);
      layer.cross_out = pack(block.cross_attention->out);
      layer.cross_norm = norm_of(block.cross_attention_norm);
    }
    layer.up = pack(block.feed_forward->up);
    layer.down = pack(block.feed_forward->down);
    layer.feed_forward_norm = norm_of(block.feed_forward_norm);
  }
  final_norm_ = norm_of(stack.final_norm);
  if (stack.position_bias) position_bias_ = stack.position_bias->weight.detach().to(at::kFloat);
}

CacheShape PackedStack::cache_shape(std::size_t slots, std::size_t capacity) const {
  return {.layers = size(config_.num_layers),
          .slots = slots,
          .heads = size(config_.kv_heads()),
          .head_dim = size(config_.head_size()),
          .capacity = capacity,
          .type = options_.cache};
}

std::size_t PackedStack::bytes() const {
  std::size_t sum = 0;
  for (const Layer& layer : layers_) {
    for (const PackedLinear* linear :
         {&layer.qkv, &layer.out, &layer.cross_q, &layer.cross_kv, &layer.cross_out, &layer.up, &layer.down})
      sum += linear->bytes();
  }
  return sum;
}

// Makes angles and biases that depend only on positions, for twice as many as asked for, so that a growing
// sequence does not need new ones at each step.
void PackedStack::prepare_tables(std::size_t positions) {
  if (positions <= positions_) return;
  const bool rotary = config_.position == PositionKind::kRotary;
  if (!rotary && !has_relative_bias(config_)) return;
  positions_ = 2 * positions;
  const auto count = static_cast<std::int64_t>(positions_);
  if (rotary) {
    const RotaryTable table =
        RotaryTable::make(at::arange(count), config_.head_size(), config_.rope_theta, config_.rope_scaling);
    const std::int64_t half = config_.head_size() / 2;
    cos_ = floats_of(table.cos.slice(-1, 0, half));
    sin_ = floats_of(table.sin.slice(-1, 0, half));
    return;
  }
  const at::Tensor distances = at::arange(1 - count, count);
  if (config_.position == PositionKind::kAlibi) {
    bias_ = floats_of(alibi_bias(distances, config_.num_heads));
    return;
  }
  const BucketOptions options{.buckets = config_.relative_buckets,
                              .max_distance = config_.relative_max_distance,
                              .bidirectional = config_.shape == Shape::kEncoder};
  bias_ = floats_of(at::embedding(position_bias_, t5_buckets(distances, options)).t());
}

void PackedStack::reserve(const Pass& pass, Workspace& workspace) const {
  const std::size_t heads = size(config_.num_heads * config_.head_size());
  const std::size_t all_heads = heads + 2 * size(config_.kv_heads() * config_.head_size());
  const std::size_t inner = size(config_.feed_forward_size());
  const std::size_t widest = std::max({inner, heads, size(config_.hidden_size)});
  // float32 is the widest type; there is at most one scale per group.
  workspace.prepared.grow_to(pass.rows * (widest + kernels::kGroup) * sizeof(float));
  workspace.scales.grow_to(pass.rows * (widest / kernels::kGroup + 1) * sizeof(float));
  workspace.sums.grow_to(pass.rows * (widest / kernels::kGroup + 1) * sizeof(std::int32_t));
  workspace.projected.grow_to(pass.rows * all_heads * sizeof(float));
  workspace.attended.grow_to(pass.rows * heads * sizeof(float));
  workspace.inner.grow_to(pass.rows * inner * (is_gated(config_.activation) ? 2 : 1) * sizeof(float));
  std::size_t positions = 0;
  for (const SequenceRows& rows : pass.sequences) {
    positions = std::max(positions, rows.past + rows.count);
    if (pass.memory_lengths != nullptr) positions = std::max(positions, (*pass.memory_lengths)[rows.source]);
  }
  const std::size_t head_dim = size(config_.head_size());
  const std::size_t whole = kernels::panel_count(positions) * kernels::kPanelOutputs;
  workspace.scratch.resize(team_size());
  workspace.head_caches.resize(team_size());
  for (Memory& scratch : workspace.scratch)
    scratch.grow_to(kernels::attention_scratch_bytes(head_dim, positions));
  if (pass.cache != nullptr) return;
  for (Memory& cache : workspace.head_caches) {
    cache.grow_to(kernels::key_bytes(options_.cache, head_dim, whole) +
                  kernels::value_bytes(options_.cache, head_dim, whole));
  }
}

void PackedStack::run(const Pass& pass, Workspace& workspace) {
  std::size_t positions = 0;
  for (const SequenceRows& rows : pass.sequences) positions = std::max(positions, rows.past + rows.count);
  prepare_tables(positions);
  reserve(pass, workspace);
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  run_team([&](const Team& team) {
    const Run run{team, pass, workspace, kernels};
    for (std::size_t i = 0; i < size(config_.num_layers); ++i) layer(run, i);
    if (!final_norm_.weight.empty()) sublayer_norm(run, final_norm_);
  });
}

void PackedStack::layer(const Run& run, std::size_t index) const {
  const Layer& layer = layers_[index % layers_.size()];
  const bool pre = config_.norm_placement == NormPlacement::kPre;
  float* x = run.pass.x;
  const std::size_t width = size(config_.hidden_size);
  auto* projected = run.workspace.projected.as<float>();
  const auto* attended = run.workspace.attended.as<float>();
  const std::size_t heads = size(config_.num_heads * config_.head_size());
  const PackedLinear* behind =
      index + 1 < size(config_.num_layers) ? &layers_[(index + 1) % layers_.size()].qkv : nullptr;
  project(run, x, width, pre ? &layer.attention_norm : nullptr, layer.qkv, projected, false, &layer.out);
  attend(run, index);
  project(run, attended, heads, nullptr, layer.out, x, true,
          config_.cross_attention ? &layer.cross_q : &layer.up);
  if (!pre) sublayer_norm(run, layer.attention_norm);
  if (config_.cross_attention) {
    project(run, x, width, pre ? &layer.cross_norm : nullptr, layer.cross_q, projected, false,
            &layer.cross_out);
    attend_to_memory(run, index);
    project(run, attended, heads, nullptr, layer.cross_out, x, true, &layer.up);
    if (!pre) sublayer_norm(run, layer.cross_norm);
  }
  feed_forward(run, layer, behind);
  if (!pre) sublayer_norm(run, layer.feed_forward_norm);
}

kernels::Preparation PackedStack::normalized(const float* x, const PackedNorm& norm) const {
  return {.input = x,
          .input_row = norm.weight.size(),
          .width = norm.weight.size(),
          .norm = config_.norm == NormKind::kRmsNorm ? kernels::Normalization::kRms
                                                     : kernels::Normalization::kLayer,
          .norm_weight = norm.weight.data(),
          .norm_bias = norm.bias.empty() ? nullptr : norm.bias.data(),
          .norm_eps = static_cast<float>(config_.layer_norm_eps)};
}

void PackedStack::sublayer_norm(const Run& run, const PackedNorm& norm) const {
  const kernels::PreparedRows in_place{.type = WeightType::kFloat32,
                                       .data = reinterpret_cast<std::byte*>(run.pass.x),
                                       .row_bytes = norm.weight.size() * sizeof(float)};
  const Team::Part part = run.team.part_of(run.pass.rows);
  run.kernels.prepare(normalized(run.pass.x, norm), in_place, part.first, part.last);
  run.team.wait();
}

namespace {

void multiply(const Team& team, const kernels::InferenceKernels& kernels,
              const kernels::PackedProduct& product, const PackedLinear* next) {
  const Team::Part part = outputs_of(team, *product.weight);
  kernels.multiply(product, part.first, part.last);
  team.wait(ahead(team, next, product.row_count));
}

}  // namespace

kernels::PreparedRows PackedStack::prepare(const Run& run, const PackedLinear& next,
                                           kernels::Preparation what) const {
  const WeightType type = kernels::prepared_type(next.weight().type, run.pass.rows);
  const bool as_it_is = type == WeightType::kFloat32 && what.norm == kernels::Normalization::kNone &&
                        what.gate == kernels::Pointwise::kNone;
  if (as_it_is) {
    auto* data = reinterpret_cast<std::byte*>(const_cast<float*>(what.input));
    return {.type = type, .data = data, .row_bytes = what.input_row * sizeof(float)};
  }
  const kernels::PreparedRows prepared{.type = type,
                                       .data = run.workspace.prepared.data(),
                                       .row_bytes = kernels::prepared_row_bytes(type, what.width),
                                       .scales = run.workspace.scales.as<float>(),
                                       .sums = run.workspace.sums.as<std::int32_t>()};
  const Team::Part part = run.team.part_of(run.pass.rows);
  run.kernels.prepare(what, prepared, part.first, part.last);
  run.team.wait(ahead(run.team, &next, run.pass.rows));
  return prepared;
}

void PackedStack::project(const Run& run, const float* input, std::size_t input_row, const PackedNorm* norm,
                          const PackedLinear& linear, float* result, bool adds,
                          const PackedLinear* next) const {
  const std::size_t inputs = linear.weight().inputs;
  const kernels::PreparedRows rows = prepare(
      run, linear,
      norm != nullptr ? normalized(input, *norm)
                      : kernels::Preparation{.input = input, .input_row = input_row, .width = inputs});
  multiply(run.team, run.kernels,
           {.weight = &linear.weight(),
            .rows = rows,
            .row_count = run.pass.rows,
            .result = result,
            .result_row = linear.weight().outputs,
            .bias = linear.bias(),
            .adds = adds},
           next);
}

void PackedStack::feed_forward(const Run& run, const Layer& layer, const PackedLinear* next) const {
  const bool pre = config_.norm_placement == NormPlacement::kPre, gated = is_gated(config_.activation);
  const kernels::Pointwise f = pointwise(gate_of(config_.activation));
  auto* inner = run.workspace.inner.as<float>();
  const std::size_t width = size(config_.hidden_size), up = layer.up.weight().outputs;
  const kernels::PreparedRows rows =
      prepare(run, layer.up,
              pre ? normalized(run.pass.x, layer.feed_forward_norm)
                  : kernels::Preparation{.input = run.pass.x, .input_row = width, .width = width});
  multiply(run.team, run.kernels,
           {.weight = &layer.up.weight(),
            .rows = rows,
            .row_count = run.pass.rows,
            .result = inner,
            .result_row = up,
            .bias = layer.up.bias(),
            .pointwise = gated ? kernels::Pointwise::kNone : f},
           &layer.down);
  const kernels::Preparation what{.input = inner,
                                  .input_row = up,
                                  .width = layer.down.weight().inputs,
                                  .gate = gated ? f : kernels::Pointwise::kNone};
  multiply(run.team, run.kernels,
           {.weight = &layer.down.weight(),
            .rows = prepare(run, layer.down, what),
            .row_count = run.pass.rows,
            .result = run.pass.x,
            .result_row = width,
            .bias = layer.down.bias(),
            .adds = true},
           next);
}

}  // namespace zoo::inference
