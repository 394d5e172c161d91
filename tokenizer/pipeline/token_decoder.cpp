#include "tokenizer/pipeline/pipeline.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/text_work.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  if (at == text.npos || from.empty()) return;
  std::string result;
  std::size_t done = 0;
  for (; at != text.npos; at = text.find(from, done)) {
    result.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = result.append(text, done);
}

std::string decode_bytes(const std::string& bytes) {
  if (!invalid_utf8_at(bytes)) return bytes;
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) text += kReplacementCharacter;
  return text;
}

}  // namespace

TokenDecoder word_piece_decoder(std::string prefix, bool cleanup) {
  return [prefix = std::move(prefix), cleanup](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 && token.starts_with(prefix)) {
        token.erase(0, prefix.size());
      } else if (i > 0) {
        token.insert(0, 1, ' ');
      }
      if (!cleanup) continue;
      token = clean_up_spaces(std::move(token));
      replace_all(token, " do not", " don't");  // a rule of this decoder only
    }
  };
}

std::string clean_up_spaces(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
  return text;
}

TokenDecoder byte_level_decoder(bool is_last) {
  return [is_last](std::vector<std::string>& tokens) {
    std::string bytes;
    for (const std::string& token : tokens) bytes += from_byte_level(token).value_or(token);
    tokens = {is_last ? bytes : replace_invalid_utf8(bytes)};
  };
}

TokenDecoder mark_decoder(std::string mark, bool first_is_bare, bool last_is_bare) {
  return [mark = std::move(mark), first_is_bare, last_is_bare](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool is_bare = (first_is_bare && i == 0) || (last_is_bare && i + 1 == tokens.size());
      replace_all(tokens[i], mark, is_bare ? "" : " ");
    }
  };
}

void join_fallback_bytes(std::vector<std::string>& tokens) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (!bytes.empty()) result.push_back(decode_bytes(bytes));
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = fallback_byte(token)) {
      bytes += static_cast<char>(*byte);
      continue;
    }
    flush();
    result.push_back(std::move(token));
  }
  flush();
  tokens = std::move(result);
}

void fuse_tokens(std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  tokens = {std::move(text)};
}

TokenDecoder replace_decoder(TextPattern pattern, std::string content) {
  return [pattern = std::move(pattern), content = std::move(content)](std::vector<std::string>& tokens) {
    std::vector<ByteRange> matches;
    for (std::string& token : tokens) {
      matches.clear();
      pattern.find(token, matches);
      if (matches.empty()) continue;
      TextWork* work = TextWork::current();
      const std::size_t most = work == nullptr ? SIZE_MAX : work->most_bytes();
      std::string changed;
      std::size_t done = 0;
      for (const ByteRange match : matches) {
        changed.append(token, done, match.begin - done).append(content);
        done = match.end;
        if (changed.size() > most) work->wrote(changed.size());
      }
      token = changed.append(token, done);
      if (work != nullptr) work->wrote(token.size());
    }
  };
}

TokenDecoder strip_decoder(char32_t character, std::size_t start, std::size_t stop) {
  return [text = utf8_of(character), start, stop](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::size_t i = 0; i < start && rest.starts_with(text); ++i) rest.remove_prefix(text.size());
      for (std::size_t i = 0; i < stop && rest.ends_with(text); ++i) rest.remove_suffix(text.size());
      token = std::string(rest);
    }
  };
}

}  // namespace zoo
