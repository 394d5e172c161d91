#include <utility>

#include <ATen/ops/from_blob.h>

#include "models/inference/packed_stack.h"

// Disentangled attention of a PackedStack: scores from distances (models/layers/attention/disentangled.h).

namespace zoo::inference {

// Projects the distance vectors to queries and keys with each layer's packed weights, always as float32.
void PackedStack::pack_distances(TransformerStackImpl& stack) {
  const at::Tensor vectors =
      options_.rows_of(stack.distance_vectors->weight).all().to(at::kFloat).contiguous();
  const PackedNorm norm = norm_of(stack.distance_norm);
  Workspace workspace;
  const Pass pass{.x = vectors.mutable_data_ptr<float>(), .rows = size(vectors.size(0))};
  reserve(pass, workspace);
  const auto observe = std::exchange(options_.observe, nullptr);  // these rows do not come from a text
  for (Layer& layer : layers_) {
    auto* projected = workspace.projected.as<float>();
    run_team([&](const Team& team) {
      const Run run{team, pass, workspace, kernels::inference_kernels()};
      project(run, pass.x, norm, layer.qkv, projected, false);
    });
    const at::Tensor parts =  // [2 k, queries, keys and values, H, D]
        at::from_blob(projected, {vectors.size(0), 3, config_.num_heads, config_.head_size()}, at::kFloat);
    for (std::int64_t head = 0; head < config_.num_heads; ++head) {
      const auto packed = [&](std::int64_t part) {
        const at::Tensor weight = parts.select(1, part).select(1, head).contiguous();
        return PackedLinear(weight, WeightRows(weight), at::Tensor(), PackOptions());
      };
      layer.distance_queries.push_back(packed(0));
      layer.distance_keys.push_back(packed(1));
    }
  }
  options_.observe = observe;
}

// [count, count], the scores of each query for all positions, query by query.
const float* PackedStack::distance_scores(const Run& run, const Layer& layer, std::size_t head,
                                          const SequenceRows& rows) const {
  const std::size_t row = 3 * heads_ * head_dim_, count = rows.count;
  const std::size_t vectors = layer.distance_keys[head].weight().outputs;
  Memory& memory = run.workspace.pair_scores[run.team.rank()];
  memory.grow_to((2 * vectors + count) * count * sizeof(float));
  float* to_position = memory.as<float>();
  float* to_content = to_position + count * vectors;
  float* scores = to_content + count * vectors;
  auto* queries = run.workspace.projected.as<float>() + rows.first_row * row + head * head_dim_;
  const auto multiply = [&](float* input, const PackedLinear& linear, float* result) {
    run.kernels.multiply({.weight = &linear.weight(),
                          .rows = {.type = WeightType::kFloat32,
                                   .data = reinterpret_cast<std::byte*>(input),
                                   .row_bytes = row * sizeof(float)},
                          .row_count = count,
                          .result = result,
                          .result_row = vectors},
                         0, vectors);
  };
  multiply(queries, layer.distance_keys[head], to_position);
  multiply(queries + heads_ * head_dim_, layer.distance_queries[head], to_content);
  const auto scale = static_cast<float>(config_.score_scale());
  const std::int32_t* places = positions_.rows_by_distance();
  for (std::size_t t = 0; t < count; ++t) {
    for (std::size_t s = 0; s < count; ++s) {
      const auto place =
          static_cast<std::size_t>(places[static_cast<std::ptrdiff_t>(s) - static_cast<std::ptrdiff_t>(t)]);
      scores[t * count + s] = scale * (to_position[t * vectors + place] + to_content[s * vectors + place]);
    }
  }
  return scores;
}

}  // namespace zoo::inference
