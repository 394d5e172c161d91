// The normalization table of a sentencepiece model, used as `tokenizers` uses it (its Precompiled
// normalizer).
#include <optional>

#include "data/base/error.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/text/charsmap.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
  return count;
}

// The new characters stand for the old ones one by one; those too many are added, those missing are removed
// with the last.
void put(std::string_view replacement, std::size_t num_old, TextRewriter& out) {
  const std::size_t num_new = count_characters(replacement);
  std::size_t i = 0;
  for (std::size_t at = 0; at < replacement.size(); ++i) {
    const char32_t c = next_code_point(replacement, at);
    if (i >= num_old) {
      out.add(c);
    } else {
      out.replace(c, i + 1 == num_new && num_old > num_new ? num_old - num_new : 0);
    }
  }
  if (num_new == 0) out.skip(num_old);
}

void normalize(const Charsmap& map, AlignedText& text) {
  constexpr std::size_t kShort =
      6;  // bytes of a cluster from which on its characters are looked at one by one
  TextRewriter out(text);
  const std::string_view old = text.text;
  const auto is_ascii = [old](std::size_t i) {
    return i == old.size() || static_cast<unsigned char>(old[i]) < 0x80;
  };
  for (std::size_t at = 0; at < old.size();) {
    std::size_t plain = at;
    while (plain < old.size() && is_ascii(plain) && is_ascii(plain + 1) &&
           map.keeps(static_cast<unsigned char>(old[plain]))) {
      ++plain;
    }
    out.keep(plain - at);
    at = plain;
    if (at == old.size()) break;
    const std::size_t end = grapheme_end(old, at);
    const std::string_view cluster = old.substr(at, end - at);
    if (cluster.size() < kShort) {
      if (const auto replacement = map.shortest(cluster)) {
        put(*replacement, count_characters(cluster), out);
        at = end;
        continue;
      }
    }
    while (at < end) {
      const std::size_t begin = at;
      const char32_t c = next_code_point(old, at);
      if (const auto replacement = map.shortest(old.substr(begin, at - begin))) {
        put(*replacement, 1, out);
      } else {
        out.replace(c);
      }
    }
  }
  out.finish();
}

}  // namespace

Normalizer precompiled_normalizer(std::string_view charsmap) {
  if (charsmap.empty()) return [](AlignedText&) {};
  return [map = Charsmap(charsmap)](AlignedText& text) { normalize(map, text); };
}

}  // namespace zoo
