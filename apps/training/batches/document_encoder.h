#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "data/examples/record_file.h"
#include "data/tokens/encode_parts.h"

namespace zoo {

/// The columns of a file of documents; wikitext's has rows without a text.
inline const Columns kDocuments{.required = {"text"}, .skips_empty = true};

/// Bytes of the validation split of a large text, if they are less than its tenth: enough to evaluate on.
inline constexpr std::size_t kMostHeldOut = std::size_t{16} << 20;

/// The ids of a .jsonl file of documents, one `text` a line: those of each text, then the tokenizer's end
/// token. Works in parts, so that a file may be larger than the memory.
class DocumentEncoder {
 public:
  /// `file` is the file's whole text. Throws Error if the tokenizer has no end token.
  DocumentEncoder(std::string_view file, std::string name, const Tokenizer& tokenizer,
                  FileColumns names = {});

  /// The texts of a file's first `bytes`, below one another: enough to train a tokenizer on.
  static std::string sample(std::string_view file, const std::string& name, FileColumns names = {},
                            std::size_t bytes = 64'000'000);

  /// The rows of a table with columns (.csv, .tsv) as a .jsonl file of documents.
  static std::string lines_of_table(std::string_view table, const std::string& name, FileColumns& names);

  /// For parts of the file; refers to this object. Throws Error naming file and line as parse_records() does.
  TextEncoder encoder();
  /// Throws what the encoder would throw for rows that cannot be read.
  void check(std::string_view part) const;

  /// Where the last tenth of a file begins, at a line, or its last 16 megabytes if these are less.
  static std::size_t validation_begin(std::string_view file);

  /// Bytes of the texts encoded so far.
  std::size_t text_bytes() const { return text_bytes_; }
  /// With the keys that were not read and the empty rows, so far.
  const FileColumns& names() const { return names_; }

 private:
  template <class Read> auto with_lines(std::string_view part, Read read) const;
  TokenIds encode(std::string_view part);

  std::string_view file_;
  std::string name_;
  const Tokenizer& tokenizer_;
  TokenId end_;
  FileColumns names_;
  std::mutex mutex_;
  std::atomic<std::size_t> text_bytes_ = 0;
};

}  // namespace zoo
