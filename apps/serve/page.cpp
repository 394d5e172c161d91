#include "apps/serve/page.h"

#include "apps/plots/embedded_page.h"
#include "data/base/base64.h"
#include "data/corpora/sha256.h"

namespace zoo {
namespace {

// As a policy names an inline script or style: by the SHA-256 of its text.
std::string source_of(std::string_view text) {
  const std::string digits = sha256(text);
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return "'sha256-" + encode_base64(bytes) + "'";
}

}  // namespace

const std::string& front_page() {
  static const std::string page = embedded::whole_page(embedded::kServePage);
  return page;
}

const std::string& front_page_policy() {
  static const std::string policy = "default-src 'none'; script-src " +
                                    source_of(embedded::kServePage.script) + "; style-src " +
                                    source_of(embedded::kServePage.style) +
                                    "; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                                    "frame-ancestors 'none'";
  return policy;
}

}  // namespace zoo
