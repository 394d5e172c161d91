#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "data/tokens/encode_parts.h"

namespace zoo {

/// A text that is encoded where a block of it is wanted, so that training on a large one begins at once and
/// keeps none of its ids.
class TextBlocks {
 public:
  /// `encoder` keeps what it and the text need. `check`, if any, reads each part of the text meanwhile on a
  /// thread of its own, and throws for one that cannot be encoded. `name` is for messages.
  TextBlocks(std::string_view text, TextEncoder encoder, std::string name,
             std::function<void(std::string_view part)> check = nullptr);
  ~TextBlocks();
  TextBlocks(const TextBlocks&) = delete;
  TextBlocks& operator=(const TextBlocks&) = delete;

  std::size_t bytes() const { return text_.size(); }

  /// The ids that follow one another from near a byte on, any token of the text being the first of as many
  /// blocks as it has bytes, about. After the text's end its beginning follows. Throws what the encoder
  /// throws, and what `check` has thrown.
  void read(std::size_t byte, std::span<std::int64_t> ids) const;

 private:
  std::string_view text_;
  TextEncoder encoder_;
  std::string name_;
  std::exception_ptr fault_;
  std::atomic<bool> is_faulty_ = false, ends_ = false;
  std::thread checking_;
};

}  // namespace zoo
