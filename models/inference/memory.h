#pragma once

#include <cstddef>
#include <memory>

namespace zoo::inference {

struct MemoryBlock;

/// Zeroed memory, aligned to cache lines. The system allocates pages when they are first touched; kHuge asks
/// for large pages, which save address translation. Large parts share blocks, so that no matrix ends on small
/// pages or wastes most of a large page on its end.
class Memory {
 public:
  enum class Pages { kNormal, kHuge };

  Memory() = default;
  /// Throws c10::Error naming the size if the system refuses.
  explicit Memory(std::size_t bytes, Pages pages = Pages::kNormal);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  std::byte* data() const { return data_; }
  template <class T> T* as() const { return reinterpret_cast<T*>(data_); }
  std::size_t size() const { return size_; }

  /// Grows to at least `bytes`; growing loses the contents.
  void grow_to(std::size_t bytes);

  /// Gives complete pages among these bytes of normal pages back: they read as zeros until they are written.
  static void give_back(std::byte* data, std::size_t bytes);

 private:
  std::shared_ptr<MemoryBlock> block_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace zoo::inference
