#include "tokenizer/text/normal_form.h"

#include <algorithm>

#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// A character of the new text, and its TextRewriter::put argument: 0 replaces one old character, 1 none, -n 1
// + n.
struct Changed {
  char32_t character;
  int change = 0;
  int order = 0;  // the combining class
};

// Sorts marks by combining class; the changes move with them.
void sort_marks(std::vector<Changed>& text) {
  for (auto begin = text.begin(); begin != text.end();) {
    if (begin->order == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, text.end(), [](const Changed& c) { return c.order == 0; });
    std::stable_sort(begin, end, [](const Changed& a, const Changed& b) { return a.order < b.order; });
    begin = end;
  }
}

std::vector<Changed> decompose(const std::string& text, Decomposition kind) {
  std::vector<Changed> result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    int change = 0;
    for (const char32_t part : decomposed(next_code_point(text, at), kind)) {
      result.push_back({part, change, combining_class(part)});
      change = 1;
    }
  }
  sort_marks(result);
  return result;
}

// A mark joins the last starter unless a mark of the same or a higher class is between them.
std::vector<Changed> compose(const std::vector<Changed>& text) {
  std::vector<Changed> result;
  result.reserve(text.size());
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t starter = kNone;
  for (const Changed& next : text) {
    if (starter != kNone) {
      const bool adjacent = starter + 1 == result.size();
      const bool blocked = !adjacent && (next.order == 0 || result.back().order >= next.order);
      const char32_t pair = blocked ? 0 : composed(result[starter].character, next.character);
      if (pair != 0) {
        result[starter].character = pair;
        result[starter].change += next.change - 1;
        continue;
      }
    }
    if (next.order == 0) starter = result.size();
    result.push_back(next);
  }
  return result;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

void to_normal_form(AlignedText& text, NormalForm form) {
  if (is_ascii(text.text)) return;
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  std::vector<Changed> changed =
      decompose(text.text, compatible ? Decomposition::compatibility : Decomposition::canonical);
  if (composes) changed = compose(changed);
  TextRewriter rewriter(text);
  for (const Changed& c : changed) rewriter.put(c.character, c.change);
  rewriter.finish();
}

}  // namespace zoo
