#include "models/inference/packed_stack.h"

#include "models/kernels/spinning.h"
#include "models/layers/config_fields.h"

namespace zoo::inference {

std::vector<std::string> PackedStack::missing(const TransformerConfig& config) {
  std::vector<std::string> features = missing_features(config);
  if (pointwise(gate_of(config.activation)) == kernels::Pointwise::kNone)
    features.push_back("activation = " + std::string(name_of(config.activation)));
  return features;
}

PackedStack::PackedNorm PackedStack::norm_of(const Norm& norm) const {
  if (!norm) return {};
  const bool plus_one = config_.norm == NormKind::kRmsNormPlusOne;
  return {floats_of(plus_one ? norm->weight + 1 : norm->weight), floats_of(norm->bias)};
}

PackedStack::SublayerNorms PackedStack::sublayer_norms(const Norm& norm, const Norm& end_norm) const {
  switch (config_.norm_placement) {
    case NormPlacement::kPost: return {.after = norm_of(norm)};
    case NormPlacement::kBranchEnd: return {.branch_end = norm_of(norm)};
    default: return {.before = norm_of(norm), .branch_end = norm_of(end_norm)};
  }
}

PackedStack::PackedStack(TransformerStackImpl& stack, const PackOptions& options)
    : config_(stack.config()), options_(options), positions_(stack.config()) {
  keep_spin_watch();
  for (const auto& module : *stack.blocks) {
    auto& block = *module->as<BlockImpl>();
    Layer& layer = layers_.emplace_back();
    const auto pack = [&](Linear& linear) { return PackedLinear(*linear, options); };
    layer.qkv = pack(block.attention->qkv);
    layer.out = pack(block.attention->out);
    layer.attention_norms = sublayer_norms(block.attention_norm, block.attention_end_norm);
    layer.query_norm = norm_of(block.attention->query_norm);
    layer.key_norm = norm_of(block.attention->key_norm);
    if (config_.cross_attention) {
      layer.cross_q = pack(block.cross_attention->q);
      layer.cross_kv = pack(block.cross_attention->kv);
      layer.cross_out = pack(block.cross_attention->out);
      layer.cross_norms = sublayer_norms(block.cross_attention_norm, nullptr);
    }
    if (block.experts) {
      layer.experts = pack_experts(*block.experts, options);
    } else {
      layer.up = pack(block.feed_forward->up);
      layer.down = pack(block.feed_forward->down);
    }
    layer.feed_forward_norms =
        sublayer_norms(block.feed_forward_norm ? block.feed_forward_norm : block.attention_norm,
                       block.feed_forward_end_norm);
  }
  final_norm_ = norm_of(stack.final_norm);
  const auto keep_table = [&](const Embedding& table) {
    if (table) positions_.add_bias_table(options.rows_of(table->weight).all().to(at::kFloat));
  };
  keep_table(stack.position_bias);
  for (const auto& module : *stack.blocks) keep_table(module->as<BlockImpl>()->attention->position_bias);
  if (stack.distance_vectors) pack_distances(stack);
}

CacheShape PackedStack::cache_shape(std::size_t slots, std::size_t capacity) const {
  CacheShape shape{.layers = size(config_.num_layers),
                   .slots = slots,
                   .heads = kv_heads_,
                   .head_dim = head_dim_,
                   .capacity = capacity,
                   .type = options_.cache};
  if (config_.sliding_window == 0) return shape;
  shape.window = size(config_.sliding_window);
  for (std::int64_t layer = 0; layer < config_.num_layers; ++layer)
    shape.has_window.push_back(config_.has_window(layer));
  return shape;
}

std::size_t PackedStack::bytes() const {
  std::size_t sum = 0;
  for (const Layer& layer : layers_) {
    for (const PackedLinear* linear :
         {&layer.qkv, &layer.out, &layer.cross_q, &layer.cross_kv, &layer.cross_out, &layer.up, &layer.down,
          &layer.experts.router, &layer.experts.shared_up, &layer.experts.shared_down,
          &layer.experts.shared_gate})
      sum += linear->bytes();
    for (const std::vector<PackedLinear>* several :
         {&layer.experts.up, &layer.experts.down, &layer.distance_queries, &layer.distance_keys})
      for (const PackedLinear& each : *several) sum += each.bytes();
  }
  return sum;
}

void Workspace::reserve_inputs(std::size_t rows, std::size_t widest) {
  // float32 is the widest type; there are at most a scale for each group and a sum for each run.
  prepared.grow_to(rows * (widest + kernels::kGroup) * sizeof(float));
  scales.grow_to(rows * (widest / kernels::kGroup + 1) * sizeof(float));
  sums.grow_to(rows * (widest / kernels::kRun + 2) * sizeof(std::int32_t));
}

void PackedStack::reserve(const Pass& pass, Workspace& workspace) const {
  const std::size_t heads = heads_ * head_dim_, all_heads = heads + 2 * kv_heads_ * head_dim_;
  const std::size_t inner = size(config_.feed_forward_size());
  const std::size_t widest = std::max({inner, heads, width_});
  workspace.reserve_inputs(pass.rows, widest);
  workspace.projected.grow_to(pass.rows * all_heads * sizeof(float));
  workspace.attended.grow_to(pass.rows * heads * sizeof(float));
  const Layer& layer = layers_.front();
  if (config_.sublayer_order != SublayerOrder::kSequential || config_.residual_scale != 1 ||
      !layer.attention_norms.branch_end.empty() || !layer.feed_forward_norms.branch_end.empty())
    workspace.branch.grow_to(pass.rows * width_ * sizeof(float));
  workspace.inner.grow_to(pass.rows * inner * (is_gated(config_.activation) ? 2 : 1) * sizeof(float));
  if (config_.num_experts > 0) reserve_experts(pass.rows, workspace);
  std::size_t positions = 0;
  workspace.adapter_rank = 0;
  for (const SequenceRows& rows : pass.sequences) {
    if (rows.adapter != nullptr)
      workspace.adapter_rank = std::max(workspace.adapter_rank, rows.adapter->rank);
    positions = std::max(positions, rows.end());
    if (pass.memory_lengths != nullptr) positions = std::max(positions, (*pass.memory_lengths)[rows.source]);
  }
  if (workspace.adapter_rank > 0) {
    workspace.adapted.grow_to(pass.rows * widest * sizeof(float));
    workspace.adapted_inner.grow_to(pass.rows * workspace.adapter_rank * sizeof(float));
  }
  const std::size_t whole = kernels::panel_count(positions) * kernels::kPanelOutputs;
  workspace.scratch.resize(team_size());
  workspace.head_caches.resize(team_size());
  workspace.pair_scores.resize(team_size());
  for (Memory& scratch : workspace.scratch)
    scratch.grow_to(kernels::attention_scratch_bytes(head_dim_, positions));
  if (pass.cache != nullptr) return;
  for (Memory& cache : workspace.head_caches)
    cache.grow_to(kernels::key_bytes(options_.cache, head_dim_, whole) +
                  kernels::value_bytes(options_.cache, head_dim_, whole));
}

void PackedStack::run(const Pass& pass, Workspace& workspace) {
  std::size_t positions = 0;
  for (const SequenceRows& rows : pass.sequences) positions = std::max(positions, rows.end());
  positions_.grow_to(positions);
  reserve(pass, workspace);
  for (const SequenceRows& rows : pass.sequences)
    check_longrope(config_.rope_scaling, rows.past, rows.final_length());
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  run_team([&](const Team& team) {
    const Run run{team, pass, workspace, kernels};
    for (std::size_t i = 0; i < size(config_.num_layers); ++i) layer(run, i);
    if (!final_norm_.empty()) normalize(run, pass.x, width_, final_norm_);
  });
}

void PackedStack::project_head(const float* hidden, std::size_t rows, const PackedLinear& head, float* result,
                               Workspace& workspace) const {
  const Pass pass{.x = nullptr, .rows = rows};
  workspace.reserve_inputs(rows, width_);
  workspace.adapter_rank = 0;
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  run_team([&](const Team& team) {
    const Run run{team, pass, workspace, kernels};
    project(run, hidden, {}, head, result, false);
  });
}

void PackedStack::layer(const Run& run, std::size_t index) const {
  const Layer& layer = layers_[index % layers_.size()];
  const bool parallel = config_.sublayer_order != SublayerOrder::kSequential;
  float *x = run.pass.x, *branch = run.workspace.branch.as<float>();
  const bool scaled = config_.residual_scale != 1;
  float* attended = parallel || scaled || !layer.attention_norms.branch_end.empty() ? branch : x;
  attention(run, index, attended);
  if (!parallel) finish(run, layer.attention_norms, attended);
  if (config_.cross_attention) {
    project(run, x, layer.cross_norms.before, layer.cross_q, run.workspace.projected.as<float>(), false,
            &layer.cross_out);
    attend_to_memory(run, index);
    project(run, run.workspace.attended.as<float>(), {}, layer.cross_out, x, true, &layer.up);
    finish(run, layer.cross_norms, x);
  }
  float* fed = scaled || !layer.feed_forward_norms.branch_end.empty() ? branch : x;
  const PackedLinear* next =
      index + 1 < size(config_.num_layers) ? &layers_[(index + 1) % layers_.size()].qkv : nullptr;
  if (layer.experts.empty()) {
    feed_forward(run, {layer.up, layer.down, run.pass.x, layer.feed_forward_norms.before}, fed, next);
  } else {
    mix_experts(run, layer, fed);
  }
  finish(run, layer.feed_forward_norms, fed);
  if (parallel) add_branch(run, {});
}

void PackedStack::attention(const Run& run, std::size_t index, float* result) const {
  const Layer& layer = layers_[index % layers_.size()];
  auto* projected = run.workspace.projected.as<float>();
  project(run, run.pass.x, layer.attention_norms.before, layer.qkv, projected, false, &layer.out);
  if (config_.query_key_norm == QueryKeyNorm::kWhole) {
    const std::size_t row = layer.qkv.weight().outputs;
    normalize(run, projected, row, layer.query_norm);
    normalize(run, projected + layer.query_norm.weight.size(), row, layer.key_norm);
  }
  attend(run, index);
  const PackedLinear* next = config_.cross_attention ? &layer.cross_q
                             : layer.experts.empty() ? &layer.up
                                                     : &layer.experts.router;
  project(run, run.workspace.attended.as<float>(), {}, layer.out, result, result == run.pass.x, next);
}

void PackedStack::finish(const Run& run, const SublayerNorms& norms, float* result) const {
  if (result != run.pass.x) add_branch(run, norms.branch_end);
  if (!norms.after.empty()) normalize(run, run.pass.x, width_, norms.after);
}

void PackedStack::add_branch(const Run& run, const PackedNorm& norm) const {
  auto* branch = run.workspace.branch.as<float>();
  if (!norm.empty()) normalize(run, branch, width_, norm);
  const Team::Part part = run.team.part_of(run.pass.rows);
  const auto scale = static_cast<float>(config_.residual_scale);
  for (std::size_t i = part.first * width_; i < part.last * width_; ++i) run.pass.x[i] += scale * branch[i];
  run.team.wait();
}

// Rows of this width, normalised if there is a norm.
kernels::Preparation PackedStack::normalized(const float* x, const PackedNorm& norm,
                                             std::size_t width) const {
  kernels::Preparation what{.input = x, .input_row = width, .width = width};
  if (norm.empty()) return what;
  what.norm =
      config_.norm == NormKind::kLayerNorm ? kernels::Normalization::kLayer : kernels::Normalization::kRms;
  what.norm_weight = norm.weight.data();
  what.norm_bias = norm.bias.empty() ? nullptr : norm.bias.data();
  what.norm_eps = static_cast<float>(config_.layer_norm_eps);
  return what;
}

void PackedStack::normalize(const Run& run, float* rows, std::size_t row, const PackedNorm& norm) const {
  const Team::Part part = run.team.part_of(run.pass.rows);
  normalize_rows(run.kernels, rows, row, part.first, part.last, norm);
  run.team.wait();
}

void PackedStack::normalize_rows(const kernels::InferenceKernels& kernels, float* rows, std::size_t row,
                                 std::size_t first, std::size_t last, const PackedNorm& norm) const {
  const kernels::PreparedRows in_place{.type = WeightType::kFloat32,
                                       .data = reinterpret_cast<std::byte*>(rows),
                                       .row_bytes = row * sizeof(float)};
  kernels::Preparation what = normalized(rows, norm, norm.weight.size());
  what.input_row = row;
  kernels.prepare(what, in_place, first, last);
}

void PackedStack::multiply(const Run& run, const PackedLinear& linear, kernels::PackedProduct product,
                           const kernels::Preparation& input, const PackedLinear* next) const {
  product.weight = &linear.weight();
  product.bias = linear.bias();
  product.row_count = run.pass.rows;
  const Team::Part part = outputs_of(run.team, linear.weight());
  const bool adapts = run.workspace.adapter_rank > 0;
  // An adapter's term comes before the function.
  const kernels::Pointwise f = adapts ? product.pointwise : kernels::Pointwise::kNone;
  if (adapts) product.pointwise = kernels::Pointwise::kNone;
  run.kernels.multiply(product, part.first, part.last);
  if (adapts) add_terms(run, linear, product, input, part);
  for (std::size_t i = 0; f != kernels::Pointwise::kNone && i < product.row_count; ++i)
    run.kernels.apply(f, product.result + i * product.result_row + part.first, part.last - part.first);
  run.team.wait(ahead(run.team, next, product.row_count));
}

kernels::PreparedRows PackedStack::prepare(const Run& run, const PackedLinear& next,
                                           kernels::Preparation what, std::size_t rows) const {
  const auto observed = [&](const kernels::PreparedRows& prepared) {
    if (options_.observe && run.team.rank() == 0) options_.observe(next.weight(), prepared, rows);
    return prepared;
  };
  const WeightType type = next.weight().type;
  const bool as_it_is = type == WeightType::kFloat32 && what.norm == kernels::Normalization::kNone &&
                        what.gate == kernels::Pointwise::kNone;
  if (as_it_is) {
    auto* data = reinterpret_cast<std::byte*>(const_cast<float*>(what.input));
    return observed({.type = type, .data = data, .row_bytes = what.input_row * sizeof(float)});
  }
  const kernels::PreparedRows prepared{.type = type,
                                       .data = run.workspace.prepared.data(),
                                       .row_bytes = run.kernels.row_bytes(type, what.width),
                                       .scales = run.workspace.scales.as<float>(),
                                       .sums = run.workspace.sums.as<std::int32_t>()};
  const Team::Part part = run.team.part_of(rows);
  run.kernels.prepare(what, prepared, part.first, part.last);
  run.team.wait(ahead(run.team, &next, rows));
  return observed(prepared);
}

void PackedStack::project(const Run& run, const float* input, const PackedNorm& norm,
                          const PackedLinear& linear, float* result, bool adds,
                          const PackedLinear* next) const {
  const kernels::Preparation what = normalized(input, norm, linear.weight().inputs);
  multiply(run, linear,
           {.rows = prepare(run, linear, what, run.pass.rows),
            .result = result,
            .result_row = linear.weight().outputs,
            .adds = adds},
           what, next);
}

void PackedStack::feed_forward(const Run& run, const Network& network, float* result,
                               const PackedLinear* next) const {
  const bool gated = is_gated(config_.activation);
  const kernels::Pointwise f = pointwise(gate_of(config_.activation));
  auto* inner = run.workspace.inner.as<float>();
  const std::size_t up = network.up.weight().outputs;
  const kernels::Preparation read = normalized(network.input, network.norm, width_);
  multiply(run, network.up,
           {.rows = prepare(run, network.up, read, run.pass.rows),
            .result = inner,
            .result_row = up,
            .pointwise = gated ? kernels::Pointwise::kNone : f},
           read, &network.down);
  const kernels::Preparation what{.input = inner,
                                  .input_row = up,
                                  .width = network.down.weight().inputs,
                                  .gate = gated ? f : kernels::Pointwise::kNone};
  multiply(run, network.down,
           {.rows = prepare(run, network.down, what, run.pass.rows),
            .result = result,
            .result_row = width_,
            .adds = result == run.pass.x},
           what, next);
}

}  // namespace zoo::inference
