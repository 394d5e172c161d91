#pragma once

#include <cstddef>
#include <memory>

namespace zoo::inference {

struct MemoryBlock;

/// Zeroed memory that begins at a cache line. Pages are taken from the system when they are first touched;
/// kHuge asks for large ones, which spare the processor its address translation. What is large stands side by
/// side in blocks, so that no matrix has an end on small pages or a large page for itself alone.
class Memory {
 public:
  enum class Pages { kNormal, kHuge };

  Memory() = default;
  /// Throws c10::Error naming the size when the system refuses.
  explicit Memory(std::size_t bytes, Pages pages = Pages::kNormal);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  std::size_t size() const { return size_; }

  /// At least `bytes`; what was in it is lost when it grows.
  void grow_to(std::size_t bytes);

 private:
  std::shared_ptr<MemoryBlock> block_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace zoo::inference
