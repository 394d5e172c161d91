#include "apps/serve/page.h"

namespace zoo {
namespace {

std::string escaped(const std::string& text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '&':
        html += "&amp;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

constexpr const char* kBegin = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tzoo serve</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}
code{font-size:.95em}</style></head><body>
<h1>tzoo serve</h1>
)";

constexpr const char* kEndpoints = R"(<h2>Endpoints</h2>
<p>OpenAI's API: <code>POST /v1/completions</code>, <code>/v1/chat/completions</code>, <code>/v1/embeddings</code>,
<code>GET /v1/models</code>. Beside it: <code>POST /tokenize</code>, <code>/detokenize</code>, <code>/fill-mask</code>,
<code>/classify</code>, <code>/answer</code>, <code>/translate</code>; <code>GET /health</code>, <code>/metrics</code>.</p>
</body></html>
)";

}  // namespace

std::string front_page(const std::vector<std::string>& models) {
  std::string page = kBegin;
  if (!models.empty()) page += "<h2>Models</h2>\n<ul>\n";
  for (const std::string& model : models) page += "<li><code>" + escaped(model) + "</code></li>\n";
  if (!models.empty()) page += "</ul>\n";
  return page + kEndpoints;
}

}  // namespace zoo
