#include <random>

#include "data/base/atomic_file.h"
#include "models/formats/safetensors.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/write_bytes.h"

using namespace zoo;

namespace {

// Opens the file and touches every byte of every tensor. Whether it was good.
bool read_all(const std::filesystem::path& path) {
  try {
    const SafetensorsFile file(path);
    for (const std::string& name : file.names()) {
      const at::Tensor copy = file.tensor(name).contiguous().clone();
      REQUIRE(copy.sizes() == at::IntArrayRef(file.entry(name).shape));
    }
    return true;
  } catch (const Error& error) {
    REQUIRE(std::string(error.what()).find(path.filename().string()) != std::string::npos);
    return false;
  }
}

// One to three of: another byte, a byte more, a byte less, an end cut off, a digit of the header changed.
std::string damaged_safetensors(std::string bytes, std::mt19937& random, std::size_t header_end) {
  const auto below = [&](std::size_t bound) { return random() % bound; };
  for (std::size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = below(below(2) == 0 ? bytes.size() : std::min(header_end, bytes.size()));
    switch (below(5)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<char>(random()));
        break;
      case 2: bytes.erase(at, 1); break;
      case 3: bytes.resize(at); break;
      default: {
        const std::size_t digit = bytes.find_first_of("0123456789", at);
        if (digit != std::string::npos) bytes[digit] = static_cast<char>('0' + below(10));
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("a damaged_safetensors safetensors file loads or is refused, and never does harm") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "fuzz.safetensors";
  write_safetensors(path, {{"a", at::arange(6, at::kFloat).view({2, 3})},
                           {"b", at::ones({5}, at::kByte)},
                           {"c", at::ones({1, 0, 2})},
                           {"d", at::ones({3}, at::kBFloat16)},
                           {"e", at::tensor(1.5, at::kDouble).squeeze()}});
  const std::string whole = read_file(path);
  REQUIRE(read_all(path));
  std::size_t header = 0;
  for (std::size_t i = 8; i-- > 0;) header = header << 8 | static_cast<unsigned char>(whole[i]);

  SECTION("cut off anywhere") {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      test::write_bytes(path, whole.substr(0, size));
      CAPTURE(size);
      REQUIRE_FALSE(read_all(path));
    }
  }
  SECTION("changed anywhere") {
    std::mt19937 random(20240607);
    int refused = 0;
    constexpr int kFiles = 3000;
    for (int i = 0; i < kFiles; ++i) {
      test::write_bytes(path, damaged_safetensors(whole, random, 8 + header));
      CAPTURE(i);
      if (!read_all(path)) ++refused;
    }
    // Most damage is to the header; what is left loads with other names or values.
    CHECK(refused > kFiles / 2);
    CHECK(refused < kFiles);
  }
}
