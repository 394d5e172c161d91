#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zoo {

/// Counts the work that the normalizers, expressions and decoders of a tokenizer do for one text, which a
/// strange tokenizer.json could make endless: sequences that multiply the text, or search it with costly
/// expressions. It counts for the thread that makes it, as long as it lives.
class TextWork {
 public:
  /// For a text of so many bytes.
  explicit TextWork(std::size_t bytes);
  ~TextWork();
  TextWork(const TextWork&) = delete;
  TextWork& operator=(const TextWork&) = delete;

  /// The one of this thread; null if nothing is counted.
  static TextWork* current();

  /// Names what runs, for messages. The name must outlive it.
  void begin(std::string_view name) { name_ = name; }

  /// Bytes that a text may have after what runs.
  std::size_t most_bytes() const;
  /// A text of so many bytes was written. Throws Error naming what runs if it is too long, or the texts of
  /// all steps together.
  void wrote(std::size_t bytes);
  /// An expression took so many ticks of ICU, some ten thousand steps each. Throws Error.
  void searched(std::int32_t ticks);

 private:
  std::size_t given_, written_ = 0;
  std::int32_t ticks_ = 0;
  std::string_view name_ = "the tokenizer";
  TextWork* outer_;
};

}  // namespace zoo
