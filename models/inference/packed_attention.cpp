#include "models/inference/packed_stack.h"

// Attention of a PackedStack: self-attention over a sequence's cache, and cross-attention.

namespace zoo::inference {

void PackedStack::attend(const Run& run, std::size_t layer) const {
  const std::size_t group = heads_ / kv_heads_, sequences = run.pass.sequences.size();
  // The threads divide a prompt's query heads one by one where its groups would leave some threads idle.
  // Single queries of a group load their keys together.
  const bool divided =
      run.pass.cache != nullptr && run.pass.rows > sequences && sequences * kv_heads_ % run.team.size() != 0;
  const Team::Part part = run.team.part_of(sequences * kv_heads_);
  for (std::size_t job = part.first; job < part.last; ++job) {
    const SequenceRows& rows = run.pass.sequences[job / kv_heads_];
    const std::size_t head = job % kv_heads_;
    append_head(run, layer, rows, head);
    if (!divided) attend_heads(run, layer, rows, {head * group, (head + 1) * group});
  }
  if (divided) {
    run.team.wait();
    const Team::Part queries = run.team.part_of(sequences * heads_);
    for (std::size_t job = queries.first; job < queries.last; ++job)
      attend_heads(run, layer, run.pass.sequences[job / heads_], {job % heads_, job % heads_ + 1});
  }
  run.team.wait(ahead(run.team, &layers_[layer % layers_.size()].out, run.pass.rows));
}

// Memory of a head's keys and values: in the pass's cache, or in this thread's.
kernels::HeadCache PackedStack::head_cache(const Run& run, std::size_t layer, const SequenceRows& rows,
                                           std::size_t head) const {
  if (run.pass.cache != nullptr) return run.pass.cache->head(layer, rows.slot, head);
  const std::size_t whole = kernels::panel_count(rows.count) * kernels::kPanelOutputs;
  std::byte* own = run.workspace.head_caches[run.team.rank()].data();
  return {own, own + kernels::key_bytes(options_.cache, head_dim_, whole)};
}

// Normalises and rotates the queries and keys of a key/value head, and stores its keys and values.
void PackedStack::append_head(const Run& run, std::size_t layer, const SequenceRows& rows,
                              std::size_t head) const {
  const std::size_t group = heads_ / kv_heads_, row = (heads_ + 2 * kv_heads_) * head_dim_;
  const Layer& of_layer = layers_[layer % layers_.size()];
  const PackedPositions::Angles& angles =
      positions_.angles(rows.final_length(), config_.has_window(static_cast<std::int64_t>(layer)));
  float* first = run.workspace.projected.as<float>() + rows.first_row * row;
  float* queries = first + head * group * head_dim_;
  float* keys = first + (heads_ + head) * head_dim_;
  const float* values = first + (heads_ + kv_heads_ + head) * head_dim_;
  const kernels::HeadCache cache = head_cache(run, layer, rows, head);
  for (std::size_t t = 0; t < rows.count; ++t) {
    const std::size_t position = rows.past + t;
    if (config_.query_key_norm == QueryKeyNorm::kPerHead) {
      normalize_rows(run.kernels, queries + t * row, head_dim_, 0, group, of_layer.query_norm);
      normalize_rows(run.kernels, keys + t * row, head_dim_, 0, 1, of_layer.key_norm);
    }
    if (config_.rotates(static_cast<std::int64_t>(layer))) {
      const std::size_t pairs = size(config_.rotary_size() / 2);
      const float *cos = angles.cos.data() + position * pairs, *sin = angles.sin.data() + position * pairs;
      run.kernels.rotate({queries + t * row, head_dim_, group, pairs, cos, sin});
      run.kernels.rotate({keys + t * row, head_dim_, 1, pairs, cos, sin});
    }
    run.kernels.append(options_.cache, cache, head_dim_, position, keys + t * row, values + t * row);
  }
}

// Attention of query heads that share their keys.
void PackedStack::attend_heads(const Run& run, std::size_t layer, const SequenceRows& rows,
                               Team::Part query_heads) const {
  const std::size_t row = (heads_ + 2 * kv_heads_) * head_dim_;
  const Layer& of_layer = layers_[layer % layers_.size()];
  const bool window = config_.has_window(static_cast<std::int64_t>(layer));
  const bool causal = config_.shape == Shape::kDecoder;
  // An encoder's window reaches equally far to both sides.
  const std::size_t reach = window ? size(config_.sliding_window) / 2 : 0;
  const bool both_sides = window && !causal;
  kernels::Attention attention{
      .type = options_.cache,
      .cache = head_cache(run, layer, rows, query_heads.first / (heads_ / kv_heads_)),
      .head_dim = head_dim_,
      .query_row = row,
      .query_count = rows.count,
      .visible = causal       ? rows.past + 1
                 : both_sides ? reach + 1
                              : rows.count,
      .growth = causal || both_sides ? std::size_t{1} : 0,
      .window = both_sides ? 2 * reach + 1
                : window   ? size(config_.sliding_window)
                           : 0,
      .limit = causal ? 0 : rows.count,
      .scale = static_cast<float>(config_.score_scale()),
      .softcap = static_cast<float>(config_.attention_softcap),
      .result_row = heads_ * head_dim_,
      .scratch = run.workspace.scratch[run.team.rank()].data()};
  const bool disentangled = !of_layer.distance_keys.empty();  // and without groups
  const auto attend_from = [&](std::size_t head) {
    attention.queries = run.workspace.projected.as<float>() + rows.first_row * row + head * head_dim_;
    attention.bias =
        disentangled ? distance_scores(run, of_layer, head, rows) : positions_.biases(layer, head, rows.past);
    attention.result =
        run.workspace.attended.as<float>() + rows.first_row * heads_ * head_dim_ + head * head_dim_;
    run.kernels.attend(attention);
  };
  if (rows.count == 1) {  // the heads are the queries
    attention.query_row = attention.result_row = head_dim_;
    attention.query_count = query_heads.last - query_heads.first;
    attention.growth = 0;
    attention.bias_row = static_cast<std::ptrdiff_t>(positions_.bias_row());
    return attend_from(query_heads.first);
  }
  attention.bias_row = disentangled ? static_cast<std::ptrdiff_t>(rows.count) : -1;
  for (std::size_t head = query_heads.first; head < query_heads.last; ++head) attend_from(head);
}

void PackedStack::attend_to_memory(const Run& run, std::size_t layer) const {
  const std::size_t group = heads_ / kv_heads_, row = heads_ * head_dim_;
  const Team::Part part = run.team.part_of(run.pass.sequences.size() * heads_);
  for (std::size_t job = part.first; job < part.last; ++job) {
    const SequenceRows& rows = run.pass.sequences[job / heads_];
    const std::size_t head = job % heads_, begin = rows.first_row * row + head * head_dim_;
    run.kernels.attend({.type = options_.cache,
                        .cache = run.pass.memory->head(layer, rows.source, head / group),
                        .head_dim = head_dim_,
                        .queries = run.workspace.projected.as<float>() + begin,
                        .query_row = row,
                        .query_count = rows.count,
                        .visible = (*run.pass.memory_lengths)[rows.source],
                        .scale = static_cast<float>(config_.score_scale()),
                        .result = run.workspace.attended.as<float>() + begin,
                        .result_row = row,
                        .scratch = run.workspace.scratch[run.team.rank()].data()});
  }
  run.team.wait(ahead(run.team, &layers_[layer % layers_.size()].cross_out, run.pass.rows));
}

void PackedStack::append_memory(const Pass& pass, PackedCache& memory, Workspace& workspace) const {
  reserve(pass, workspace);
  const std::size_t row = 2 * kv_heads_ * head_dim_;
  // Not wider than the queries, keys and values of self-attention.
  const auto* projected = workspace.projected.as<float>();
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  run_team([&](const Team& team) {
    const Run run{team, pass, workspace, kernels};
    for (std::size_t i = 0; i < size(config_.num_layers); ++i) {
      project(run, pass.x, {}, layers_[i % layers_.size()].cross_kv, workspace.projected.as<float>(), false);
      const Team::Part part = team.part_of(pass.sequences.size() * kv_heads_);
      for (std::size_t job = part.first; job < part.last; ++job) {
        const SequenceRows& source = pass.sequences[job / kv_heads_];
        const std::size_t head = job % kv_heads_;
        const kernels::HeadCache cache = memory.head(i, source.slot, head);
        for (std::size_t t = 0; t < source.count; ++t) {
          const float* at = projected + (source.first_row + t) * row + head * head_dim_;
          run.kernels.append(options_.cache, cache, head_dim_, t, at, at + kv_heads_ * head_dim_);
        }
      }
      team.wait();
    }
  });
}

}  // namespace zoo::inference
