#pragma once

/// @file
/// Use:
///
///     const at::NoGradGuard no_grad;
///     zoo::KeyValueCache cache(model.config(), /*batch=*/1, /*capacity=*/100, at::kFloat);
///     model.forward({.input_ids = prompt, .cache = &cache});
///     const auto output = model.forward({.input_ids = next, .cache = &cache});  // reads one token more

#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/layers/transformer_config.h"

namespace zoo {

/// Keys and values of past positions, so that decoding computes each once. The constructor allocates
/// `capacity` positions; a step writes in place and reads views. An encoder-decoder's cache also keeps the
/// keys and values of the memory, which never change.
class KeyValueCache {
 public:
  struct View {
    at::Tensor keys, values;  // [B, Hkv, S, D]
  };

  KeyValueCache(const TransformerConfig& config, std::int64_t batch, std::int64_t capacity,
                const at::TensorOptions& options);

  /// A cache of the given layers, which are empty where they are undefined, that grows by concatenation into
  /// new tensors: what a trace of a step can hold.
  explicit KeyValueCache(std::vector<View> layers, std::vector<View> memory = {});

  /// Appends keys and values [B, Hkv, T, D] of `layer` and returns those of all positions. Throws c10::Error
  /// if they exceed the capacity.
  View append(std::int64_t layer, const at::Tensor& keys, const at::Tensor& values);

  const std::vector<View>& layers() const { return layers_; }

  /// Cross-attention keys and values of the layer: undefined until its first step sets them.
  View& memory(std::int64_t layer) { return memory_.at(static_cast<std::size_t>(layer)); }

  /// Number of cached positions of every layer. A step calls advance() once, after its last layer.
  std::int64_t length() const { return fixed_ ? fixed_->seen - 1 : length_; }
  void advance(std::int64_t positions) {
    if (!fixed_) length_ += positions;
  }
  void truncate(std::int64_t length);

  /// Replaces row b by row rows[b] (beam search), in the memory's keys and values too if `memory`. rows [B]
  /// int64, on the cache's device.
  void select(const at::Tensor& rows, bool memory);

  /// Moves position positions[b, i] of row b to position i; positions [B, length] int64, on the cache's
  /// device.
  void rearrange(const at::Tensor& positions);

  /// Grows the capacity to at least `capacity` positions, and at least twofold.
  void reserve(std::int64_t capacity);

  /// A step whose kernels have the same addresses and sizes as those of the next one: append() writes its one
  /// position at `index` (int64 [1], on the cache's device) and returns the first `seen` positions, of which
  /// the caller's mask hides those without a token. Until unfix(), length() is seen - 1 and advance() does
  /// nothing.
  void fix(at::Tensor index, std::int64_t seen) { fixed_ = {std::move(index), seen}; }
  void unfix() { fixed_.reset(); }

  /// Zeroes the positions from length() to `seen`: a hidden position's weight is 0, but 0 times NaN is NaN.
  void clear_until(std::int64_t seen);

  /// How often keys and values have moved to other memory.
  std::int64_t moves() const { return moves_; }

  c10::Device device() const { return layers_.front().keys.device(); }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t bytes() const;

 private:
  // Replaces each layer's keys and values by change(them), one layer at a time, so that memory never holds
  // two caches.
  void replace(std::int64_t batch, const std::function<at::Tensor(const at::Tensor&)>& change);

  struct Fixed {
    at::Tensor index;
    std::int64_t seen;
  };

  std::vector<View> layers_, memory_;
  std::int64_t length_ = 0, capacity_, moves_ = 0;
  bool concatenates_ = false;
  std::optional<Fixed> fixed_;
};

}  // namespace zoo
