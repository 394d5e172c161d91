#pragma once

#include <string>
#include <string_view>

namespace zoo::embedded {

/// A page's HTML with marks for its style and its script, which CMake joins from several files.
struct PageParts {
  std::string_view html, style, script;
};

extern const PageParts kAttentionPage, kServePage, kFilePage, kPageEngine, kGalleryPage;

/// `text` with the first `mark` replaced.
inline std::string replaced(std::string_view text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  return std::string(text.substr(0, at)).append(by).append(text.substr(at + mark.size()));
}

/// JSON inside a script element, where "</script" ends it and "<!--" begins a comment, even inside quotes.
inline std::string inside_script(const std::string& json) {
  std::string text;
  for (const char letter : json) letter == '<' ? text += "\\u003c" : text += letter;
  return text;
}

/// The self-contained page, with script and style inserted unchanged.
inline std::string whole_page(const PageParts& parts) {
  return replaced(replaced(parts.html, "/*STYLE*/", parts.style), "/*SCRIPT*/", parts.script);
}

}  // namespace zoo::embedded
