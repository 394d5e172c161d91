#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/base/error.h"
#include "models/layers/transformer_config.h"

namespace zoo {

using TokenIds = std::vector<std::int64_t>;

/// Sequences that a model is reading token by token: what it keeps of them between the steps. Row b's first
/// token stands at position 0, whatever the other rows hold.
class DecodingSession {
 public:
  virtual ~DecodingSession() = default;

  /// Which logits read() shall give: kLast, [B, V] of the token after each row's last one; kAll, [B, T, V] of
  /// the token after each one read, T the longest of `tokens`; what lies behind a shorter row's tokens has no
  /// meaning.
  enum class Logits { kLast, kAll };

  /// Reads `tokens`[b], at least one of them, behind what row b has read before. float32 in CPU memory, or on
  /// the model's device; valid until the next call. Throws Error where a row would grow beyond the capacity.
  virtual at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted = Logits::kLast) = 0;

  /// Called once, before anything is read: hidden() is wanted. Throws Error where a decoder has no such
  /// states to show.
  virtual void keep_hidden() { throw Error("this decoder does not show its hidden states"); }

  /// The hidden states [B, T, C] of the tokens that the last read() was given, behind the final norm; what
  /// lies behind a shorter row's tokens has no meaning. Where logits are, float32; valid until the next call.
  virtual at::Tensor hidden() const { return {}; }

  /// Row b becomes what row rows[b] was. Rows may repeat (beams, samples of one prompt) or be left out (a row
  /// that has ended); none at all is refused.
  virtual void select(const std::vector<std::int64_t>& rows) = 0;

  /// Forgets all but the first `length` tokens of a row; of 0, the row can be read anew. An encoder-decoder
  /// keeps its source.
  virtual void rewind(std::int64_t row, std::int64_t length) = 0;

  virtual std::int64_t rows() const = 0;
  virtual std::int64_t length(std::int64_t row) const = 0;  // tokens that it has read
};

/// A decoder, or an encoder-decoder with its language model head, as decoding needs it: of modules, or with
/// weights packed for inference.
class DecodingModel {
 public:
  virtual ~DecodingModel() = default;

  virtual const TransformerConfig& config() const = 0;

  /// Empty rows with room for `capacity` tokens each.
  virtual std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t capacity) = 0;

  /// The same for an encoder-decoder: the encoder reads the sources, one for each row; the decoder has yet to
  /// read its start token.
  virtual std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>& sources,
                                                 std::int64_t capacity) = 0;
};

}  // namespace zoo
