#include "models/inference/memory.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include "tests/support/catch.h"

using zoo::inference::Memory;

namespace {

bool is_all(const Memory& memory, std::byte value) {
  return std::all_of(memory.data(), memory.data() + memory.size(), [&](std::byte b) { return b == value; });
}

}  // namespace

TEST_CASE("memory is zeroed, stands at a cache line, and parts of a block are apart") {
  const auto pages = GENERATE(Memory::Pages::kNormal, Memory::Pages::kHuge);
  std::vector<Memory> parts;
  for (const std::size_t bytes : {1U, 63U, 64U, 3'000'000U, 5'000'001U}) parts.emplace_back(bytes, pages);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK(reinterpret_cast<std::uintptr_t>(parts[i].data()) % 64 == 0);
    REQUIRE(is_all(parts[i], std::byte{0}));
    std::fill_n(parts[i].data(), parts[i].size(), std::byte(i + 1));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) REQUIRE(is_all(parts[i], std::byte(i + 1)));
}

TEST_CASE("what is freed of a block leaves its neighbours as they are") {
  constexpr std::size_t kBytes = 5'000'000;
  Memory before(kBytes, Memory::Pages::kHuge), gone(kBytes, Memory::Pages::kHuge),
      after(kBytes, Memory::Pages::kHuge);
  for (Memory* memory : {&before, &gone, &after}) std::fill_n(memory->data(), kBytes, std::byte{7});
  gone = Memory();
  CHECK(gone.size() == 0);
  CHECK(is_all(before, std::byte{7}));
  CHECK(is_all(after, std::byte{7}));
}

TEST_CASE("a block outlives the parts before one that was moved") {
  Memory kept;
  {
    Memory first(100, Memory::Pages::kHuge), second(100, Memory::Pages::kHuge);
    std::fill_n(second.data(), 100, std::byte{9});
    kept = std::move(second);
  }
  CHECK(is_all(kept, std::byte{9}));
}

TEST_CASE("memory that the system does not have is refused with its size, and the next is given") {
  const auto pages = GENERATE(Memory::Pages::kNormal, Memory::Pages::kHuge);
  constexpr std::size_t kTooMuch = std::size_t{1} << 60;
  CHECK_THROWS_WITH(Memory(kTooMuch, pages), Catch::Contains("no 1152921504606846976 bytes"));
  const Memory memory(100, pages);
  CHECK(is_all(memory, std::byte{0}));
}
