#pragma once

#include <string_view>

namespace zoo::embedded {

// The files attention_page.html, .css and .js of this folder, built into the program.
extern const std::string_view kPageHtml, kPageStyle, kPageScript;

}  // namespace zoo::embedded
