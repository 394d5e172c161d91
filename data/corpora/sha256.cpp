#include "data/corpora/sha256.h"

#include <array>

#include <openssl/evp.h>

#include "data/base/error.h"

namespace zoo {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw Error("libcrypto cannot compute SHA-256");
  return hexadecimal({digest.data(), digest.size()});
}

std::string hexadecimal(std::basic_string_view<unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace zoo
