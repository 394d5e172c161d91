#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/layers/transformer_config.h"

namespace zoo {

/// The keys and values of the positions already seen, so that decoding computes each once. Memory for
/// `capacity` positions is taken at the start; a step writes in place and reads views. An encoder-decoder's
/// cache keeps the memory's keys and values too, which never change.
class KeyValueCache {
 public:
  struct View {
    at::Tensor keys, values;  // [B, Hkv, S, D]
  };

  KeyValueCache(const TransformerConfig& config, std::int64_t batch, std::int64_t capacity,
                const at::TensorOptions& options);

  /// Writes keys and values [B, Hkv, T, D] of `layer` behind the positions seen so far and returns all of
  /// them. Throws c10::Error when they do not fit the capacity.
  View append(std::int64_t layer, const at::Tensor& keys, const at::Tensor& values);

  /// Keys and values of the memory for the layer's cross-attention: undefined until its first step sets them.
  View& memory(std::int64_t layer) { return memory_.at(static_cast<std::size_t>(layer)); }

  /// Positions seen: what every layer holds. advance() is called once for a step, after its last layer.
  std::int64_t length() const { return length_; }
  void advance(std::int64_t positions) { length_ += positions; }
  void truncate(std::int64_t length);

  /// Row b becomes what row rows[b] was, of the memory's keys and values too where `memory` says so. rows [B]
  /// int64, on the cache's device.
  void select(const at::Tensor& rows, bool memory);

  /// Position i of row b becomes what position positions[b, i] was; positions [B, length] int64, on the
  /// cache's device.
  void rearrange(const at::Tensor& positions);

  /// Makes room for `capacity` positions where there is less.
  void reserve(std::int64_t capacity);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t bytes() const;

 private:
  // Each layer's keys and values become what `change` makes of them: one layer at a time, so that there are
  // never two caches.
  void replace(std::int64_t batch, const std::function<at::Tensor(const at::Tensor&)>& change);

  std::vector<View> layers_, memory_;
  std::int64_t length_ = 0, capacity_;
};

}  // namespace zoo
