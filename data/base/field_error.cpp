#include "data/base/field_error.h"

#include <sstream>
#include <utility>

namespace zoo {
namespace {

std::string written(std::string text, const std::function<std::string(const std::string&)>& name) {
  for (std::size_t begin = 0; (begin = text.find(Field::kBegin, begin)) != text.npos;) {
    const std::size_t end = text.find(Field::kEnd, begin);
    if (end == text.npos) break;  // a control character of a text that the message quotes
    const std::string field = name(text.substr(begin + 1, end - begin - 1));
    text.replace(begin, end + 1 - begin, field);
    begin += field.size();
  }
  return text;
}

std::string quoted(const std::string& name) { return "'" + name + "'"; }

}  // namespace

FieldError::FieldError(const Marked& marked) : Error(written(marked.text, quoted)), marked_(marked.text) {
  const std::size_t begin = marked_.find(Field::kBegin) + 1;
  field_ = marked_.substr(begin, marked_.find(Field::kEnd) - begin);
}

std::string FieldError::message(const std::function<std::string(const std::string&)>& name) const {
  return written(marked_, name);
}

std::string words_of(const FieldRange& range) {
  std::ostringstream words;
  words.precision(9);
  const char* before = "";
  const auto add = [&](const char* what, std::optional<double> bound) {
    if (bound) words << std::exchange(before, " and ") << what << *bound;
  };
  add("at least ", range.least);
  add("above ", range.above);
  add("at most ", range.most);
  return words.str();
}

void require_in(const FieldRange& range, std::string_view field, std::optional<double> value) {
  if (value && !range.holds(*value))
    throw FieldError(Field{field}, ": expected ", words_of(range), ", got ", *value);
}

}  // namespace zoo
