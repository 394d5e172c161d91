#include "data/base/mapped_file.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/descriptor.h"
#include "data/base/error.h"

namespace zoo {
namespace {

// A mapped file. Never freed, so that a signal handler can visit all of them.
struct Mapping {
  std::atomic<std::uintptr_t> begin = 0;  // 0: not in use
  std::size_t size = 0;
  std::string path;
  Mapping* next = nullptr;

  bool contains(std::uintptr_t address) const {
    const std::uintptr_t first = begin;
    return first != 0 && address >= first && address - first < size;
  }
};

std::atomic<Mapping*> all_mappings = nullptr;
std::mutex mappings_change;

Mapping* mapping_of(std::uintptr_t address) {
  Mapping* mapping = all_mappings;
  while (mapping != nullptr && !mapping->contains(address)) mapping = mapping->next;
  return mapping;
}

std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

void remember(std::uintptr_t begin, std::size_t size, const std::string& path) {
  const std::lock_guard lock(mappings_change);
  Mapping* mapping = all_mappings;
  while (mapping != nullptr && mapping->begin != 0) mapping = mapping->next;
  const bool is_new = mapping == nullptr;
  if (is_new) mapping = new Mapping{.next = all_mappings};
  mapping->size = size;
  mapping->path = path;
  mapping->begin = begin;
  if (is_new) all_mappings = mapping;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: open() must not wait for a writer of a named pipe, which is refused below.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor < 0) throw Error("cannot open ", path, ": ", std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    throw Error("cannot read ", path, ": not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) throw Error("cannot map ", path, ": ", std::strerror(errno));
  data_ = static_cast<std::byte*>(address);
  remember(address_of(data_), size_, path.string());
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  const std::lock_guard lock(mappings_change);
  mapping_of(address_of(data_))->begin = 0;
  ::munmap(data_, size_);
}

void MappedFile::give_back(const void* data, std::size_t size) {
  const std::lock_guard lock(mappings_change);
  const std::uintptr_t begin = address_of(data);
  const Mapping* file = mapping_of(begin);
  if (file == nullptr || begin + size > file->begin + file->size) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = (begin + page - 1) / page * page, last = (begin + size) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

const char* MappedFile::path_at(const void* address) noexcept {
  const Mapping* mapping = mapping_of(address_of(address));
  return mapping == nullptr ? nullptr : mapping->path.c_str();
}

void MappedFile::prefer_large_pages([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t size) {
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = address_of(data) / page * page;
  ::madvise(reinterpret_cast<void*>(first), address_of(data) + size - first, MADV_HUGEPAGE);
#endif
}

}  // namespace zoo
