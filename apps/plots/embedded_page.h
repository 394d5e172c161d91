#pragma once

#include <string_view>

namespace zoo::embedded {

// attention_page.html, .css and .js of this folder, embedded in the program.
extern const std::string_view kPageHtml, kPageStyle, kPageScript;

}  // namespace zoo::embedded
