#pragma once

#include <string>
#include <string_view>

namespace zoo::embedded {

/// A page's HTML with marks for its style and its script, which CMake joins from several files.
struct PageParts {
  std::string_view html, style, script;
};

extern const PageParts kAttentionPage, kServePage;

/// The self-contained page, with script and style inserted unchanged.
std::string whole_page(const PageParts& parts);

/// `text` with the first `mark` replaced.
std::string replaced(std::string_view text, std::string_view mark, std::string_view by);

}  // namespace zoo::embedded
