#include "tokenizer/stream_decoder.h"

#include <algorithm>

#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// More than the bytes of a character: more pending ids never become valid.
constexpr std::size_t kMaxPending = 16;

// The size of `text` without an incomplete character at its end, or sentencepiece's U+FFFD for it.
std::size_t settled_size(std::string_view text) {
  std::size_t size = text.size() - incomplete_utf8_tail(text);
  while (text.substr(0, size).ends_with(kReplacementCharacter)) size -= kReplacementCharacter.size();
  return size;
}

}  // namespace

std::string StreamDecoder::push(TokenId id) {
  window_.push_back(id);
  std::optional<std::string> after;
  try {
    after = after_context();
  } catch (...) {
    window_.pop_back();
    throw;
  }
  const bool give_up = window_.size() - context_ > kMaxPending;
  if (!after && !give_up) return {};
  const std::string text = after ? *after : tokenizer_.decode(pending());
  const std::size_t size = give_up ? text.size() : settled_size(text);
  const std::size_t begin = std::min(shown_, size);
  const std::string result = replace_invalid_utf8(std::string_view(text).substr(begin, size - begin));
  shown_ = size;
  if (size == text.size()) shift_window(give_up);
  return result;
}

// A decoder may treat the start of a text differently (sentencepiece drops its space), so new ids are decoded
// after a context with text: the ids shown last or, if these have no text (a control token), the ones before.
void StreamDecoder::shift_window(bool give_up) {
  const TokenIds pending = this->pending();
  if (context_ == 0 && shown_ == 0) {
    // Nothing was shown so far: all ids become the context, each once.
    const bool repeated = std::ranges::count(window_, window_.back()) > 1;
    if (repeated) window_.pop_back();
    return;
  }
  shown_ = 0;
  const std::string own_text = tokenizer_.decode(pending);
  const bool keeps_context = context_ > 0 && (own_text.empty() || give_up);
  if (keeps_context) {
    window_.resize(context_);
    return;
  }
  window_ = pending;
  context_ = pending.size();
  context_text_ = own_text;
}

TokenIds StreamDecoder::pending() const {
  return {window_.begin() + static_cast<std::ptrdiff_t>(context_), window_.end()};
}

// With byte fallback an incomplete character makes U+FFFD of all byte tokens before it, the context's too.
std::optional<std::string> StreamDecoder::after_context() const {
  std::string text = tokenizer_.decode(window_);
  if (!text.starts_with(context_text_) && text.find(kReplacementCharacter) < context_text_.size())
    return std::nullopt;
  return text.erase(0, std::min(context_text_.size(), text.size()));
}

std::string StreamDecoder::finish() {
  const std::optional<std::string> after = after_context();
  std::string text = after ? *after : tokenizer_.decode(pending());
  text.erase(0, std::min(shown_, text.size()));
  window_.clear();
  context_text_.clear();
  context_ = shown_ = 0;
  return replace_invalid_utf8(text);
}

}  // namespace zoo
