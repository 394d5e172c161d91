#include "tokenizer/pipeline/normalizer.h"

#include <algorithm>

#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/charsmap.h"
#include "tokenizer/text/text_work.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// Calls f(character, rewriter) for every character; f writes the result.
template <class Function> void rewrite(AlignedText& text, Function f) {
  TextRewriter rewriter(text);
  for (std::size_t at = 0; at < text.text.size();) f(next_code_point(text.text, at), rewriter);
  rewriter.finish();
}

// Replaces each character by f(character); for kNoCharacter its bytes go to the character before it.
template <class Function> void filter(AlignedText& text, Function f) {
  TextRewriter rewriter(text);
  char32_t held = kNoCharacter;
  std::size_t removed = 0;
  for (std::size_t at = 0; at < text.text.size();) {
    const char32_t c = f(next_code_point(text.text, at));
    if (c == kNoCharacter) {
      ++removed;
      continue;
    }
    if (held == kNoCharacter) {
      rewriter.skip(removed);
    } else {
      rewriter.replace(held, removed);
    }
    held = c;
    removed = 0;
  }
  if (held != kNoCharacter) rewriter.replace(held, removed);
  rewriter.finish();
}

void space_ideographs(AlignedText& text) {
  rewrite(text, [](char32_t c, TextRewriter& out) {
    if (!is_cjk_ideograph(c)) return out.replace(c);
    out.replace(' ');
    out.add(c);
    out.add(' ');
  });
}

}  // namespace

char32_t cleaned(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return ' ';
  if (c == 0 || c == 0xFFFD || is_control(c)) return kNoCharacter;
  return is_white_space(c) ? ' ' : c;
}

Normalizer normal_form(NormalForm form) {
  return [form](AlignedText& text) { to_normal_form(text, form); };
}

Normalizer bert_normalizer(const BertNormalizerOptions& options) {
  return [options](AlignedText& text) {
    if (options.clean_text) filter(text, cleaned);
    if (options.handle_chinese_chars) space_ideographs(text);
    if (options.strips_accents()) {
      to_normal_form(text, NormalForm::nfd);
      filter(text, [](char32_t c) { return is_nonspacing_mark(c) ? kNoCharacter : c; });
    }
    if (options.lowercase) lowercase_all(text);
  };
}

void lowercase_all(AlignedText& text) {
  rewrite(text, [](char32_t c, TextRewriter& out) {
    const std::u32string lower = lowercase(c);
    for (std::size_t i = 0; i < lower.size(); ++i) i == 0 ? out.replace(lower[i]) : out.add(lower[i]);
  });
}

void remove_accents(AlignedText& text) {
  filter(text, [](char32_t c) { return is_combining_mark(c) ? kNoCharacter : c; });
}

Normalizer strip_normalizer(bool left, bool right) {
  return [left, right](AlignedText& text) {
    const std::string_view old = text.text;
    const std::size_t begin = left ? skip_spaces(old, 0) : 0;
    const std::size_t end = right ? std::max(begin, skip_spaces_back(old, old.size())) : old.size();
    TextRewriter rewriter(text);
    rewriter.skip(count_characters(old.substr(0, begin)));
    rewriter.keep(end - begin);
    rewriter.finish();
  };
}

Normalizer replace_normalizer(TextPattern pattern, std::string content) {
  return [pattern = std::move(pattern), content = std::move(content)](AlignedText& text) {
    std::vector<ByteRange> matches;
    pattern.find(text.text, matches);
    if (matches.empty()) return;
    TextRewriter rewriter(text);
    std::size_t done = 0;
    for (const ByteRange match : matches) {
      rewriter.keep(match.begin - done);
      for (std::size_t at = match.begin; at < match.end; at = character_end(text.text, at)) rewriter.skip(1);
      for (std::size_t at = 0; at < content.size();) rewriter.add(next_code_point(content, at));
      done = match.end;
    }
    rewriter.keep(text.text.size() - done);
    rewriter.finish();
  };
}

Normalizer prepend_normalizer(std::string prefix) {
  return [prefix = std::move(prefix)](AlignedText& text) {
    if (text.text.empty()) return;
    if (TextWork* work = TextWork::current()) work->wrote(text.text.size() + prefix.size());
    if (text.tracks()) text.source.insert(text.source.begin(), prefix.size(), ByteRange(text.source.front()));
    text.text.insert(0, prefix);
  };
}

void apply_nmt_rules(AlignedText& text) {
  filter(text, [](char32_t c) -> char32_t {
    const bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    if (space) return ' ';
    const bool control = (c >= 0x1 && c < 0x20) || c == 0x7F || c == 0x8F || c == 0x9F;
    return control ? kNoCharacter : c;
  });
}

void map_to_byte_level(AlignedText& text) {
  AlignedText mapped;
  mapped.begin = text.begin;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    append_utf8(mapped.text, byte_level_character(static_cast<unsigned char>(text.text[i])));
    if (text.tracks()) mapped.source.resize(mapped.text.size(), text.source[i]);
  }
  if (TextWork* work = TextWork::current()) work->wrote(mapped.text.size());
  text = std::move(mapped);
}

Normalizer precompiled_normalizer(std::string_view charsmap) {
  if (charsmap.empty()) return [](AlignedText&) {};
  return [map = Charsmap(charsmap)](AlignedText& text) { map.rewrite(text); };
}

Normalizer named_normalizer(std::string name, Normalizer normalizer) {
  return [name = std::move(name), normalizer = std::move(normalizer)](AlignedText& text) {
    if (TextWork* work = TextWork::current()) work->begin(name);
    normalizer(text);
  };
}

}  // namespace zoo
