#include "models/tasks/search/passages.h"

#include <algorithm>

#include "data/base/error.h"
#include "data/base/mapped_file.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

constexpr std::string_view kBlanks = " \t\r\f\v\n";

// Where the paragraph that begins at `at` ends: before a line without text.
std::size_t paragraph_end(std::string_view text, std::size_t at) {
  while ((at = text.find('\n', at)) != text.npos) {
    const std::size_t next = std::min(text.find_first_not_of(kBlanks, at), text.size());
    if (text.substr(at + 1, next - at - 1).find('\n') != text.npos) break;
    at = next;
  }
  return std::min(at, text.size());
}

// Bytes of the first part of a paragraph.
std::size_t part_size(std::string_view paragraph, std::size_t most_bytes) {
  const std::size_t parts = (paragraph.size() + most_bytes - 1) / most_bytes;
  if (parts <= 1) return paragraph.size();
  std::size_t end = (paragraph.size() + parts - 1) / parts;
  for (const char separator : {'\n', ' '}) {
    const std::size_t found = paragraph.rfind(separator, end);
    if (found != paragraph.npos && found > end / 2) return found;
  }
  while (end > 1 && continues_character(paragraph[end])) --end;
  return next_character(paragraph, end);
}

}  // namespace

void each_passage(std::string_view text, const TakePassage& take, std::size_t most_bytes) {
  std::int64_t line = 1;
  std::size_t counted = 0, end = 0;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBlanks, at)) != text.npos;) {
    if (at >= end) end = paragraph_end(text, at);
    const std::string_view before = text.substr(counted, at - counted);
    line += std::ranges::count(before, '\n');
    counted = at;
    const std::string_view part = text.substr(at, part_size(text.substr(at, end - at), most_bytes));
    if (!take(line, part.substr(0, part.find_last_not_of(kBlanks) + 1))) return;
    at += part.size();
  }
}

void read_passages(const std::filesystem::path& file, const TakePassage& take) {
  const MappedFile mapped(file);
  std::string_view text(reinterpret_cast<const char*>(mapped.data()), mapped.bytes().size());
  require_utf8(text, file.string());
  if (text.find('\0') != text.npos) throw Error(file, ": expected text, found a NUL byte");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  each_passage(text, take);
}

}  // namespace zoo
