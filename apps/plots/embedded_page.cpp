#include "apps/plots/embedded_page.h"

namespace zoo::embedded {

std::string replaced(std::string_view text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  return std::string(text.substr(0, at)).append(by).append(text.substr(at + mark.size()));
}

std::string whole_page(const PageParts& parts) {
  return replaced(replaced(parts.html, "/*STYLE*/", parts.style), "/*SCRIPT*/", parts.script);
}

}  // namespace zoo::embedded
