#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/utf8.h"

namespace zoo {

/// A literal text or a regular expression to search for, with the results of `tokenizers`' engine.
class TextPattern {
 public:
  static TextPattern literal(std::string text);
  /// Throws Error "not a regular expression that is supported …". `captures`: keeps groups for captures().
  static TextPattern regex(const std::string& expression, bool captures = false);

  /// Appends the matches from left to right, without overlap; they may be empty. Throws Error naming the
  /// expression if it takes too many steps, and as TextWork::searched().
  void find(std::string_view text, std::vector<ByteRange>& matches) const;

  /// The matches of an expression, each with its groups; a group without a place is empty.
  std::vector<std::vector<ByteRange>> captures(std::string_view text) const;

 private:
  struct Regex;
  template <class Found> void search(std::string_view text, Found found) const;

  std::string text_;
  std::shared_ptr<const Regex> regex_;  // null for a literal
};

/// Translates a regular expression of Oniguruma, the engine of `tokenizers`, to an equivalent one for ICU:
/// each class becomes the set of its characters in Oniguruma's Unicode version, and each anchor is spelled
/// out. Throws Error naming the part without an equivalent, such as backreferences.
std::string icu_expression(std::string_view oniguruma, bool captures = false);

}  // namespace zoo
