#include "models/inference/memory.h"

#include <cstdint>
#include <utility>

#include <c10/util/Exception.h>
#include <sys/mman.h>

namespace zoo::inference {

namespace {
constexpr std::size_t kHugePage = std::size_t{2} << 20;
}

Memory::Memory(std::size_t bytes, Pages pages) : size_(bytes) {
  if (bytes == 0) return;
  const bool huge = pages == Pages::kHuge && bytes >= kHugePage;
  mapped_ = huge ? bytes + kHugePage : bytes;
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    TORCH_CHECK(false, "the system has no ", bytes, " bytes of memory to give");
  }
  data_ = static_cast<std::byte*>(mapping_);
  if (!huge) return;
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(mapping_);
  data_ += (kHugePage - begin % kHugePage) % kHugePage;
#ifdef MADV_HUGEPAGE
  // A wish: without it the pages are small. What does not fill a large page shall not have one.
  madvise(data_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
}

Memory::~Memory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

Memory::Memory(Memory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void Memory::grow_to(std::size_t bytes) {
  if (bytes <= size_) return;
  *this = Memory();
  *this = Memory(bytes);
}

}  // namespace zoo::inference
