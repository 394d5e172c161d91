#include "apps/verbs/shell/roff.h"

#include <array>
#include <cstdio>
#include <utility>

#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

constexpr std::array<std::pair<char32_t, const char*>, 7> kSpecial{{{U'\\', "\\(rs"},
                                                                    {U'-', "\\-"},
                                                                    {U'\'', "\\(aq"},
                                                                    {U'`', "\\(ga"},
                                                                    {U'^', "\\(ha"},
                                                                    {U'~', "\\(ti"},
                                                                    {U'"', "\\(dq"}}};

std::string escaped(char32_t letter) {
  for (const auto& [special, text] : kSpecial) {
    if (special == letter) return text;
  }
  if (letter < 0x80) return {static_cast<char>(letter)};
  // By code point: groff reads bytes as Latin 1.
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "\\[u%04X]", static_cast<unsigned>(letter));
  return text.data();
}

}  // namespace

std::string roff(std::string_view text) {
  // A leading dot would make the line a request.
  std::string result = text.starts_with('.') ? "\\&" : "";
  for (std::size_t at = 0; at < text.size();) result += escaped(next_code_point(text, at));
  return result;
}

}  // namespace zoo
