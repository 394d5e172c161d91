#include "models/layers/attention/key_value_cache.h"

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

namespace zoo {

KeyValueCache::KeyValueCache(const TransformerConfig& config, std::int64_t batch, std::int64_t capacity,
                             const at::TensorOptions& options)
    : capacity_(capacity) {
  const std::vector<std::int64_t> sizes{batch, config.kv_heads(), capacity, config.head_size()};
  const bool two_stacks = config.shape == Shape::kEncoderDecoder;
  const std::int64_t layers = two_stacks ? config.decoder_layers() : config.num_layers;
  layers_.reserve(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i)
    layers_.push_back({at::empty(sizes, options), at::empty(sizes, options)});
  if (two_stacks || config.cross_attention) memory_.resize(layers_.size());
}

KeyValueCache::KeyValueCache(std::vector<View> layers, std::vector<View> memory)
    : layers_(std::move(layers)), memory_(std::move(memory)), concatenates_(true) {
  memory_.resize(layers_.size());
  if (layers_.front().keys.defined()) length_ = layers_.front().keys.size(2);
  capacity_ = length_;
}

KeyValueCache::View KeyValueCache::append(std::int64_t layer, const at::Tensor& keys,
                                          const at::Tensor& values) {
  View& all = layers_.at(static_cast<std::size_t>(layer));
  if (concatenates_) {
    if (!all.keys.defined()) return all = {keys, values};
    return all = {at::cat({all.keys, keys}, 2), at::cat({all.values, values}, 2)};
  }
  if (fixed_) {
    all.keys.index_copy_(2, fixed_->index, keys);
    all.values.index_copy_(2, fixed_->index, values);
    return {all.keys.slice(2, 0, fixed_->seen), all.values.slice(2, 0, fixed_->seen)};
  }
  const std::int64_t end = length_ + keys.size(2);
  TORCH_CHECK(end <= capacity_, "the key/value cache holds ", capacity_, " positions, ", end, " are needed");
  all.keys.slice(2, length_, end).copy_(keys);
  all.values.slice(2, length_, end).copy_(values);
  return {all.keys.slice(2, 0, end), all.values.slice(2, 0, end)};
}

void KeyValueCache::truncate(std::int64_t length) {
  TORCH_CHECK(length >= 0 && length <= length_, "cannot cut a cache of ", length_, " positions to ", length);
  length_ = length;
}

void KeyValueCache::clear_until(std::int64_t seen) {
  for (View& layer : layers_) {
    layer.keys.slice(2, length_, seen).zero_();
    layer.values.slice(2, length_, seen).zero_();
  }
}

void KeyValueCache::replace(std::int64_t batch, const std::function<at::Tensor(const at::Tensor&)>& change) {
  ++moves_;
  for (View& layer : layers_) {
    for (at::Tensor* all : {&layer.keys, &layer.values}) {
      at::Tensor changed = at::empty({batch, all->size(1), capacity_, all->size(3)}, all->options());
      changed.slice(2, 0, length_).copy_(change(*all));
      *all = std::move(changed);
    }
  }
}

void KeyValueCache::select(const at::Tensor& rows, bool memory) {
  replace(rows.size(0),
          [&](const at::Tensor& all) { return all.slice(2, 0, length_).index_select(0, rows); });
  for (View& layer : memory_) {
    if (!memory || !layer.keys.defined()) continue;
    layer = {layer.keys.index_select(0, rows), layer.values.index_select(0, rows)};
  }
}

void KeyValueCache::rearrange(const at::Tensor& positions) {
  TORCH_CHECK(positions.size(1) <= capacity_, "the key/value cache holds ", capacity_, " positions, ",
              positions.size(1), " are needed");
  length_ = positions.size(1);
  const at::Tensor index = positions.unsqueeze(1).unsqueeze(-1);  // [B, 1, length, 1]
  replace(positions.size(0), [&](const at::Tensor& all) {
    return all.gather(2, index.expand({-1, all.size(1), -1, all.size(3)}));
  });
}

void KeyValueCache::reserve(std::int64_t capacity) {
  if (capacity <= capacity_) return;
  capacity_ = std::max(capacity, 2 * capacity_);
  replace(layers_.front().keys.size(0), [&](const at::Tensor& all) { return all.slice(2, 0, length_); });
}

std::int64_t KeyValueCache::bytes() const {
  std::int64_t sum = 0;
  for (const auto* views : {&layers_, &memory_})
    for (const View& view : *views)
      if (view.keys.defined()) sum += static_cast<std::int64_t>(view.keys.nbytes() + view.values.nbytes());
  return sum;
}

}  // namespace zoo
