#pragma once

/// @file
/// Use:
///
///     zoo::StreamDecoder decoder(tokenizer);
///     for (const zoo::TokenId id : ids) std::cout << decoder.push(id);
///     std::cout << decoder.finish() << "\n";

#include <optional>
#include <string>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// Decodes tokens one at a time, each at the same cost. push() and finish() return valid UTF-8: an incomplete
/// character is held back, and bytes that never become a character are U+FFFD. The concatenation is decode()
/// of all ids, except for invalid bytes.
class StreamDecoder {
 public:
  /// The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// The text that `id` completes; may be empty. Throws as Tokenizer::decode does.
  std::string push(TokenId id);

  /// Returns the text that was held back and resets the decoder.
  std::string finish();

 private:
  void shift_window(bool give_up);
  TokenIds pending() const;
  // The text of the pending ids; nothing while they have none without changing the context's.
  std::optional<std::string> after_context() const;

  const Tokenizer& tokenizer_;
  TokenIds window_;          // context ids, whose text is shown already, then pending ids
  std::size_t context_ = 0;  // number of context ids in the window
  std::string context_text_;
  std::size_t shown_ = 0;  // bytes of the pending ids' text that are shown already
};

}  // namespace zoo
