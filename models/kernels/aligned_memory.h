#pragma once

#include <cstddef>
#include <new>

namespace zoo::kernels {

/// Uninitialised memory for `size` elements, aligned to a vector or to more. Inlined for the reason in
/// vector.h.
template <class Element, std::size_t Alignment = 64> class AlignedMemory {
 public:
  __attribute__((always_inline)) explicit AlignedMemory(std::size_t size)
      : data_(static_cast<Element*>(::operator new(size * sizeof(Element), kAlignment))) {}
  __attribute__((always_inline)) ~AlignedMemory() { ::operator delete(data_, kAlignment); }
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;

  __attribute__((always_inline)) Element* get() const { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{Alignment};
  Element* data_;
};

}  // namespace zoo::kernels
