#include "data/base/field_error.h"

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

}  // namespace zoo
