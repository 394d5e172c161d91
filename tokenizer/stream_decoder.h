#pragma once

#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// Text of tokens that arrive one at a time, for showing it while a model generates. What push() and finish()
/// return is always UTF-8: a character whose bytes are not all there is held back, and bytes that never
/// become one are U+FFFD. All of it put together is decode() of all the ids, invalid bytes aside. The cost of
/// a token does not grow with the text before it.
class StreamDecoder {
 public:
  /// The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// The text that can be shown now that `id` is known; may be empty. Throws as Tokenizer::decode does.
  std::string push(TokenId id);

  /// What was still held back. The decoder is then as new.
  std::string finish();

 private:
  void shift_window(bool give_up);

  const Tokenizer& tokenizer_;
  std::vector<TokenId> window_;    // the context, whose text is shown already, then the pending ids
  std::size_t context_ = 0;        // how many ids of the window are context
  std::size_t context_bytes_ = 0;  // size of the context's own text
  std::size_t shown_ = 0;          // bytes of the pending ids' text that are shown already
};

}  // namespace zoo
