#pragma once

/// @file
/// Use:
///
///     zoo::ModuleDecoder decoder(model);  // or zoo::pack(model, {})
///     const auto session = decoder.begin(/*rows=*/1, /*capacity=*/100);
///     const at::Tensor logits = session->read({ids});  // [B, V], of the next token
///     session->rewind(/*row=*/0, /*length=*/2);        // keeps two tokens

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/base/error.h"
#include "models/layers/transformer_config.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// Throws Error, which begins with `where`, for an id outside the model's vocabulary.
inline void require_model_id(std::string_view where, std::int64_t id, std::int64_t vocab_size) {
  if (id < 0 || id >= vocab_size)
    throw Error(where, "the id ", id, " is outside the model's vocabulary of ", vocab_size, " ids");
}

/// Element rows[b] of `all` for each row b.
template <class T> std::vector<T> selected(const std::vector<T>& all, const std::vector<std::int64_t>& rows) {
  std::vector<T> some;
  for (const std::int64_t row : rows) some.push_back(all.at(static_cast<std::size_t>(row)));
  return some;
}

/// There is no memory for the tokens that read() gives to a row. Nothing was read; the other rows can go on.
struct RowMemoryError : std::runtime_error {
  RowMemoryError(std::size_t number, const std::string& message) : std::runtime_error(message), row(number) {}
  std::size_t row;
};

/// Sequences that a model reads token by token, and their state between steps (KV cache). Row b's first token
/// has position 0, whatever the other rows hold.
class DecodingSession {
 public:
  virtual ~DecodingSession() = default;

  /// Logits that read() returns. kLast: [B, V], of the token after each row's last one. kAll: [B, T, V], of
  /// the token after each one read, T the longest of `tokens`; entries after a shorter row have no meaning.
  enum class Logits { kLast, kAll };

  /// Reads `tokens`[b], at least one, after the tokens that row b has read. Returns float32 in CPU memory or
  /// on the model's device, valid until the next call. Throws Error if a row would exceed the capacity.
  virtual at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted = Logits::kLast) = 0;

  /// Replaces row b by row rows[b]. Rows may repeat (beams, samples of one prompt) or be left out (ended
  /// rows); an empty list is refused.
  virtual void select(const std::vector<std::int64_t>& rows) = 0;

  /// Adds an empty row after the others, with the same capacity. Throws Error if the session cannot, for
  /// example an encoder-decoder's, whose rows need a source.
  virtual void add_row() { throw Error("this session takes no further rows"); }

  /// Drops all but the first `length` tokens of a row, or all of them if the session no longer has what a
  /// window shows the next token: length() tells how many are left; read the others again. Sources stay.
  virtual void rewind(std::int64_t row, std::int64_t length) = 0;

  /// The adapter that an empty row is read with: its number in the model, 0 for none. Rows with different
  /// adapters share each pass. Throws Error if the model has none of this number.
  virtual void adapt(std::int64_t /*row*/, std::size_t adapter) {
    if (adapter != 0) throw Error("this model has no adapters that rows can choose");
  }

  /// Gives an empty row the longest beginning of `tokens` that the session still holds from any of its rows,
  /// among them those that were left out; never all tokens. Returns its length: read the following ones. The
  /// results have the same bits as if the row had read all of them. 0 if the session holds none or cannot.
  virtual std::int64_t reuse(std::int64_t /*row*/, const TokenIds& /*tokens*/) { return 0; }

  /// For a session that has read nothing: keeps for reuse() what rows that were left out have read, in their
  /// own room and in up to `bytes` more; the oldest go first.
  virtual void hold(std::size_t /*bytes*/) {}

  /// Writes what hold() keeps as bytes. load() reads them into a session of another process that has read
  /// nothing: of the same model, the same number format of the KV cache, and the same instruction set. The
  /// number of rows and their room may differ. Both throw Error if the session cannot hold.
  using Write = std::function<void(const void* bytes, std::size_t size)>;
  virtual void save(const Write&) const { throw Error("this session holds nothing of rows that have ended"); }
  virtual void load(std::span<const std::byte>) {
    throw Error("this session holds nothing of rows that have ended");
  }

  /// For a session that has read nothing: takes over what the model's last session with this call has read,
  /// and leaves it, and what this one reads, to the next. The model then holds that memory.
  virtual void keep() {}

  virtual std::int64_t rows() const = 0;
  virtual std::int64_t length(std::int64_t row) const = 0;  // tokens that it has read
};

/// Decoding's interface to a decoder or encoder-decoder with its language model head, of modules or packed.
class DecodingModel {
 public:
  virtual ~DecodingModel() = default;

  virtual const TransformerConfig& config() const = 0;

  /// Initial capacity of a row in tokens; longer rows double it.
  static constexpr std::int64_t kFirstCapacity = 4096;

  /// Starts empty rows with room for `capacity` tokens each.
  virtual std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t capacity) = 0;

  /// The same for an encoder-decoder, whose encoder reads a source per row, and the decoder nothing yet.
  virtual std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>& sources,
                                                 std::int64_t capacity) = 0;
};

}  // namespace zoo
