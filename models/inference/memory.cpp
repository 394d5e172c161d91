#include "models/inference/memory.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

namespace zoo::inference {

// Memory mapped from the system, handed out in consecutive parts.
struct MemoryBlock {
  // `data` is null if the system refuses.
  explicit MemoryBlock(std::size_t bytes, int flags = 0) : mapped(bytes) {
    void* got = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (got != MAP_FAILED) data = mapping = static_cast<std::byte*>(got);
  }
  ~MemoryBlock() {
    if (mapping != nullptr) munmap(mapping, mapped);
  }
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  std::size_t left() const { return static_cast<std::size_t>(mapping + mapped - data) - used; }

  std::byte* mapping = nullptr;
  std::size_t mapped;
  std::byte* data = nullptr;  // start of the first part
  std::size_t used = 0;
};

namespace {

constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20, kBlock = std::size_t{1} << 30;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

void free_pages(std::uintptr_t first, std::uintptr_t last) {
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

// Block of `bytes` in large pages, if the system grants them.
std::shared_ptr<MemoryBlock> block_of_huge_pages(std::size_t bytes) {
  const std::size_t least = round_up(bytes, kHugePage) + kHugePage;
  auto block = std::make_shared<MemoryBlock>(std::max(least, kBlock), MAP_NORESERVE);
  if (block->data == nullptr) block = std::make_shared<MemoryBlock>(least);  // when address space is scarce
  if (block->data == nullptr) return block;
  const auto begin = reinterpret_cast<std::uintptr_t>(block->mapping);
  block->data += round_up(begin, kHugePage) - begin;
#ifdef MADV_HUGEPAGE
  madvise(block->data, block->left() / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return block;
}

}  // namespace

Memory::Memory(std::size_t bytes, Pages pages) : size_(bytes) {
  if (bytes == 0) return;
  if (pages == Pages::kNormal) {
    block_ = std::make_shared<MemoryBlock>(bytes, MAP_NORESERVE);  // of a cache most is never touched
    data_ = block_->data;
  } else {
    static std::mutex mutex;
    static std::weak_ptr<MemoryBlock> open;  // that new parts come from, while any of its parts is in use
    const std::lock_guard lock(mutex);
    block_ = open.lock();
    if (block_ == nullptr || block_->left() < bytes) {
      block_ = block_of_huge_pages(bytes);
      if (block_->data != nullptr) open = block_;
    }
    if (block_->data != nullptr) data_ = block_->data + block_->used;
    block_->used += round_up(bytes, kLine);
  }
  TORCH_CHECK(data_ != nullptr, "the system has no ", bytes, " bytes of memory to give");
}

Memory::~Memory() {
  if (data_ == nullptr || block_.use_count() == 1) return;  // the last part frees the block
  // Frees the pages that only this part uses; others still have parts of the block.
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  free_pages(round_up(begin, kHugePage), (begin + size_) / kHugePage * kHugePage);
}

Memory::Memory(Memory&& other) noexcept
    : block_(std::move(other.block_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void Memory::give_back(std::byte* data, std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  free_pages(round_up(begin, page), (begin + bytes) / page * page);
}

void Memory::grow_to(std::size_t bytes) {
  if (bytes <= size_) return;
  *this = Memory();
  *this = Memory(bytes);
}

}  // namespace zoo::inference
