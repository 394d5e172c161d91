#include "tokenizer/text/text_pattern.h"

#include <unicode/regex.h>
#include <unicode/utext.h>

#include "data/base/error.h"

namespace zoo {

struct TextPattern::Regex {
  std::unique_ptr<icu::RegexPattern> pattern;
};

namespace {

void require(UErrorCode status) {
  if (U_FAILURE(status)) throw Error("a regular expression cannot be matched: ", u_errorName(status));
}

}  // namespace

TextPattern TextPattern::literal(std::string text) {
  TextPattern pattern;
  pattern.text_ = std::move(text);
  return pattern;
}

TextPattern TextPattern::regex(const std::string& expression) {
  // As in the engine of `tokenizers`: ^ and $ match at line ends, and only \n ends a line.
  constexpr std::uint32_t kFlags = UREGEX_MULTILINE | UREGEX_UNIX_LINES;
  UErrorCode status = U_ZERO_ERROR;
  UParseError where;
  auto compiled = std::make_shared<Regex>();
  compiled->pattern.reset(
      icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(expression), kFlags, where, status));
  if (U_FAILURE(status)) {
    throw Error("not a regular expression that ICU reads: ", u_errorName(status), " at character ",
                where.offset);
  }
  TextPattern pattern;
  pattern.regex_ = std::move(compiled);
  return pattern;
}

void TextPattern::find(std::string_view text, std::vector<ByteRange>& matches) const {
  if (regex_ == nullptr) {
    if (text_.empty()) return;
    for (std::size_t at = 0; (at = text.find(text_, at)) != text.npos; at += text_.size()) {
      matches.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + text_.size())});
    }
    return;
  }
  UErrorCode status = U_ZERO_ERROR;
  UText utext = UTEXT_INITIALIZER;
  utext_openUTF8(&utext, text.data(), static_cast<std::int64_t>(text.size()), &status);
  const std::unique_ptr<icu::RegexMatcher> matcher(regex_->pattern->matcher(status));
  require(status);
  matcher->reset(&utext);
  while (matcher->find(status)) {
    matches.push_back({static_cast<std::uint32_t>(matcher->start64(status)),
                       static_cast<std::uint32_t>(matcher->end64(status))});
  }
  utext_close(&utext);
  require(status);
}

}  // namespace zoo
