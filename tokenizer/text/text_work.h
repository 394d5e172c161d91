#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zoo {

/// Bounds the work of normalizers, expressions and decoders for one text, which a malicious tokenizer.json
/// could multiply. Counts for the thread that creates it, while it lives.
class TextWork {
 public:
  /// For a text of this many bytes.
  explicit TextWork(std::size_t bytes);
  ~TextWork();
  TextWork(const TextWork&) = delete;
  TextWork& operator=(const TextWork&) = delete;

  /// This thread's counter; null if there is none.
  static TextWork* current();

  /// Names the running step, for messages. The name must outlive it.
  void begin(std::string_view name) { name_ = name; }

  /// Maximum bytes of the text after the running step.
  std::size_t most_bytes() const;
  /// Counts a text of this many bytes. Throws Error naming the step if it, or all steps' texts, are too long.
  void wrote(std::size_t bytes);
  /// Counts ICU's ticks, some ten thousand steps each. Throws Error if there are too many.
  void searched(std::int32_t ticks);

 private:
  std::size_t given_, written_ = 0;
  std::size_t ticks_ = 0;
  std::string_view name_ = "the tokenizer";
  TextWork* outer_;
};

}  // namespace zoo
