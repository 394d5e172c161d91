#include "models/checkpoint/weight_layout.h"

#include <ATen/ops/cat.h>

namespace zoo {
namespace {

// Rows [queries; keys; values] of all heads to rows ordered by head.
at::Tensor by_head(const at::Tensor& tensor, const WeightName& name) {
  std::vector<at::Tensor> parts = tensor.split_with_sizes(name.rows, 0);
  for (at::Tensor& part : parts) part = part.unflatten(0, {name.groups, -1});
  return at::cat(parts, 1).flatten(0, 1);
}

// Rows of each head whose rotating ones are [rows, columns], with these transposed: [pairs, 2] from
// interleaved pairs to halves, [2, pairs] back.
at::Tensor with_turned_pairs(const at::Tensor& tensor, const WeightName& name, std::int64_t rows,
                             std::int64_t columns) {
  const at::Tensor heads = tensor.unflatten(0, {name.groups, -1});
  const at::Tensor turned = heads.slice(1, 0, 2 * name.pairs).unflatten(1, {rows, columns}).transpose(1, 2);
  return at::cat({turned.flatten(1, 2), heads.slice(1, 2 * name.pairs)}, 1).flatten(0, 1);
}

// Rows of each head, with its halves swapped.
at::Tensor swapped_halves(const at::Tensor& tensor, const WeightName& name) {
  return tensor.unflatten(0, {-1, 2, name.pairs}).flip(1).flatten(0, 2);
}

at::Tensor from_heads(const at::Tensor& tensor, const WeightName& name) {
  std::vector<std::int64_t> rows = name.rows;
  for (std::int64_t& count : rows) count /= name.groups;
  std::vector<at::Tensor> parts = tensor.unflatten(0, {name.groups, -1}).split_with_sizes(rows, 1);
  for (at::Tensor& part : parts) part = part.flatten(0, 1);
  return at::cat(parts, 0);
}

}  // namespace

std::vector<std::int64_t> rows_of_names(const WeightName& name, std::int64_t total) {
  if (!name.rows.empty() && name.layout != WeightLayout::kByHead) return name.rows;
  return std::vector<std::int64_t>(name.theirs.size(), total / static_cast<std::int64_t>(name.theirs.size()));
}

at::Tensor from_stored_layout(const WeightName& name, std::vector<at::Tensor> parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (name.layout == WeightLayout::kTransposed) parts[i] = parts[i].t();
    if (name.layout == WeightLayout::kRotaryPairs && i < 2)
      parts[i] = with_turned_pairs(parts[i], name, name.pairs, 2);
    if (name.layout == WeightLayout::kRotaryReversed && i < 2) parts[i] = swapped_halves(parts[i], name);
  }
  const at::Tensor weight = parts.size() == 1 ? parts[0] : at::cat(parts, 0);
  return name.layout == WeightLayout::kByHead ? from_heads(weight, name) : weight;
}

std::vector<at::Tensor> to_stored_layout(const WeightName& name, const at::Tensor& tensor) {
  std::vector<at::Tensor> parts = tensor.split_with_sizes(rows_of_names(name, tensor.size(0)), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (name.layout == WeightLayout::kTransposed) parts[i] = parts[i].t();
    if (name.layout == WeightLayout::kByHead) parts[i] = by_head(parts[i], name);
    if (name.layout == WeightLayout::kRotaryPairs && i < 2)
      parts[i] = with_turned_pairs(parts[i], name, 2, name.pairs);
    if (name.layout == WeightLayout::kRotaryReversed && i < 2) parts[i] = swapped_halves(parts[i], name);
  }
  return parts;
}

}  // namespace zoo
