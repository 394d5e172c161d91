#include "data/corpora/sha256.h"

#include <array>
#include <initializer_list>
#include <memory>

#include <openssl/evp.h>

#include "data/base/error.h"

namespace zoo {
namespace {

std::string digest(const EVP_MD* kind, std::initializer_list<std::string_view> parts) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool good = EVP_DigestInit_ex(context.get(), kind, nullptr) == 1;
  for (const std::string_view part : parts)
    good = good && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (!good || EVP_DigestFinal_ex(context.get(), bytes.data(), &size) != 1)
    throw Error("libcrypto cannot compute a hash");
  return hexadecimal({bytes.data(), size});
}

}  // namespace

std::string sha256(std::string_view bytes) { return digest(EVP_sha256(), {bytes}); }

std::string git_hash(std::string_view content) {
  return digest(EVP_sha1(), {"blob " + std::to_string(content.size()) + '\0', content});
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
