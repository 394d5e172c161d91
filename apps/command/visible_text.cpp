#include "apps/command/visible_text.h"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <streambuf>
#include <utility>

#include <unistd.h>

#include "apps/command/output.h"

namespace zoo {
namespace {

constexpr char kBeforeUpperControls = '\xC2';  // U+0080 to U+009F are C2 80 to C2 9F in UTF-8

std::string code_of(char letter) { return format_text("\\x%02x", static_cast<unsigned char>(letter)); }

bool is_lower_control(char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F; }

bool ends_upper_control(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return byte >= 0x80 && byte < 0xA0;
}

std::string visible(std::string_view text, bool keeps_lines) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == kBeforeUpperControls && i + 1 < text.size() && ends_upper_control(text[i + 1])) {
      shown += code_of(text[++i]);
    } else if (is_lower_control(letter) && !(keeps_lines && (letter == '\n' || letter == '\t'))) {
      shown += code_of(letter);
    } else {
      shown += letter;
    }
  }
  return shown;
}

// Forwards visible lines. Holds back the first byte of a possible control character.
class VisibleBuffer : public std::streambuf {
 public:
  std::streambuf* target = nullptr;

 private:
  int overflow(int character) override {
    if (character == traits_type::eof()) return 0;
    const char letter = traits_type::to_char_type(character);
    return xsputn(&letter, 1) == 1 ? character : traits_type::eof();
  }

  std::streamsize xsputn(const char* text, std::streamsize size) override {
    std::string all = std::exchange(held_, std::string()) + std::string(text, static_cast<std::size_t>(size));
    if (all.ends_with(kBeforeUpperControls)) {
      held_ = kBeforeUpperControls;
      all.pop_back();
    }
    const std::string shown = visible_lines(all);
    const auto count = static_cast<std::streamsize>(shown.size());
    return target->sputn(shown.data(), count) == count ? size : 0;
  }

  int sync() override { return target->pubsync(); }

  std::string held_;
};

VisibleBuffer& visible_buffer() {
  static VisibleBuffer buffer;
  return buffer;
}

}  // namespace

std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    // Close the quotes, add an escaped quote, open them again.
    if (letter == '\'') quoted += "'\\'";
    quoted += letter;
  }
  return quoted + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "%+,-./:=@_";
  const auto is_plain = [&](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 || kPlain.find(static_cast<char>(c)) != kPlain.npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_plain) ? std::string(text)
                                                                          : single_quoted(text);
}

std::string visible_text(std::string_view text) { return visible(text, /*keeps_lines=*/false); }

std::string visible_lines(std::string_view text) { return visible(text, /*keeps_lines=*/true); }

std::string written_text(std::string_view text) {
  return ::isatty(STDOUT_FILENO) == 1 ? visible_lines(text) : std::string(text);
}

VisibleErrors::VisibleErrors() { visible_buffer().target = std::cerr.rdbuf(&visible_buffer()); }
VisibleErrors::~VisibleErrors() { std::cerr.rdbuf(visible_buffer().target); }

std::ostream& raw_standard_error() {
  if (visible_buffer().target == nullptr) return std::cerr;
  static std::ostream raw(visible_buffer().target);
  return raw;
}

}  // namespace zoo
