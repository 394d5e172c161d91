#include "tokenizer/text/text_pattern.h"

#include <unicode/regex.h>
#include <unicode/utext.h>

#include "data/base/error.h"
#include "tokenizer/text/text_work.h"

namespace zoo {

struct TextPattern::Regex {
  std::unique_ptr<icu::RegexPattern> pattern;
  std::string expression;  // as it was given
};

namespace {

// In ICU's unit, some ten thousand backtracking steps: a second for the matches of a text, and as long as
// ordinary expressions take for twenty times its bytes. Oniguruma has a limit, too.
constexpr std::size_t kTimeLimit = 1000, kBytesOfUnit = 500, kLongest = 1 << 30;

// Called by ICU after each tick; keeps the number.
UBool U_CALLCONV keep_ticks(const void* context, std::int32_t ticks) {
  *static_cast<std::int32_t*>(const_cast<void*>(context)) = ticks;
  return true;
}

ByteRange range_of(const icu::RegexMatcher& matcher, std::int32_t group, UErrorCode& status) {
  const std::int64_t begin = std::max<std::int64_t>(matcher.start64(group, status), 0),
                     end = std::max<std::int64_t>(matcher.end64(group, status), 0);
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

void require(UErrorCode status, const std::string& expression) {
  if (U_SUCCESS(status)) return;
  const bool is_limit = status == U_REGEX_TIME_OUT || status == U_REGEX_STACK_OVERFLOW;
  throw Error("the regular expression '", expression,
              "' cannot be matched: ", is_limit ? "the text takes too many steps" : u_errorName(status));
}

}  // namespace

TextPattern TextPattern::literal(std::string text) {
  TextPattern pattern;
  pattern.text_ = std::move(text);
  return pattern;
}

TextPattern TextPattern::regex(const std::string& expression, bool captures) {
  UErrorCode status = U_ZERO_ERROR;
  UParseError where;
  auto compiled = std::make_shared<Regex>();
  compiled->pattern.reset(icu::RegexPattern::compile(
      icu::UnicodeString::fromUTF8(icu_expression(expression, captures)), 0, where, status));
  if (U_FAILURE(status))
    throw Error("not a regular expression that is supported: ICU says ", u_errorName(status));
  compiled->expression = expression;
  TextPattern pattern;
  pattern.regex_ = std::move(compiled);
  return pattern;
}

void TextPattern::find(std::string_view text, std::vector<ByteRange>& matches) const {
  if (text.empty()) return;  // here, `tokenizers` finds not even an empty match
  if (regex_ == nullptr) {
    if (text_.empty()) return;
    for (std::size_t at = 0; (at = text.find(text_, at)) != text.npos; at += text_.size())
      matches.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + text_.size())});
    return;
  }
  std::int64_t last = -1;
  search(text, [&](const icu::RegexMatcher& matcher, UErrorCode& status) {
    const ByteRange match = range_of(matcher, 0, status);
    // `tokenizers` skips an empty match at the end of another one.
    if (match.begin < match.end || match.begin != last) matches.push_back(match);
    last = match.end;
  });
}

std::vector<std::vector<ByteRange>> TextPattern::captures(std::string_view text) const {
  std::vector<std::vector<ByteRange>> matches;
  search(text, [&](const icu::RegexMatcher& matcher, UErrorCode& status) {
    std::vector<ByteRange>& groups = matches.emplace_back();
    for (std::int32_t group = 0; group <= matcher.groupCount(); ++group)
      groups.push_back(range_of(matcher, group, status));
  });
  return matches;
}

template <class Found> void TextPattern::search(std::string_view text, Found found) const {
  UErrorCode status = U_ZERO_ERROR;
  UText utext = UTEXT_INITIALIZER;
  utext_openUTF8(&utext, text.data(), static_cast<std::int64_t>(text.size()), &status);
  const std::unique_ptr<icu::RegexMatcher> matcher(regex_->pattern->matcher(status));
  require(status, regex_->expression);
  matcher->setTimeLimit(
      static_cast<std::int32_t>(std::min(kTimeLimit + text.size() / kBytesOfUnit, kLongest)), status);
  std::int32_t ticks = 0;
  matcher->setMatchCallback(keep_ticks, &ticks, status);
  matcher->reset(&utext);
  while (matcher->find(status)) found(*matcher, status);
  utext_close(&utext);
  require(status, regex_->expression);
  if (TextWork* work = TextWork::current(); work != nullptr && ticks > 0) work->searched(ticks);
}

}  // namespace zoo
