#include <filesystem>

#include <dlfcn.h>

#include "tests/support/catch.h"

// LibTorch's libraries export a std::filesystem of their own; that of 2.11 for CUDA crashes in remove_all().
TEST_CASE("the standard library is libstdc++'s, not what LibTorch's libraries export", "[linking]") {
  std::uintmax_t (*remove_all)(const std::filesystem::path&, std::error_code&) = &std::filesystem::remove_all;
  Dl_info found{};
  REQUIRE(dladdr(reinterpret_cast<void*>(remove_all), &found) != 0);
  CHECK(std::filesystem::path(found.dli_fname).filename().string().starts_with("libstdc++"));
}
