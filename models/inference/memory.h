#pragma once

#include <cstddef>

namespace zoo::inference {

/// Zeroed memory that begins at a page. Pages are taken from the system when they are first touched; kHuge
/// asks for large ones, which spare the processor most of its address translation.
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
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace zoo::inference
