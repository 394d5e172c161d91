#include "data/base/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/error.h"

namespace zoo {
namespace {

// The mapped files: address and size.
struct Mappings {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> sizes;
};

Mappings& mappings() {
  static Mappings all;
  return all;
}

std::uintptr_t address_of(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: open() does not wait for a writer of a named pipe, which is refused below.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw Error("cannot open ", path, ": ", std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error("cannot read ", path, ": not a regular file");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
    const int error = errno;
    if (address == MAP_FAILED) {
      ::close(descriptor);
      throw Error("cannot map ", path, ": ", std::strerror(error));
    }
    data_ = static_cast<std::byte*>(address);
    const std::lock_guard lock(mappings().mutex);
    mappings().sizes[address_of(data_)] = size_;
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  const std::lock_guard lock(mappings().mutex);
  mappings().sizes.erase(address_of(data_));
  ::munmap(data_, size_);
}

void MappedFile::give_back(const void* data, std::size_t size) {
  const std::lock_guard lock(mappings().mutex);
  const std::uintptr_t begin = address_of(data);
  auto file = mappings().sizes.upper_bound(begin);
  if (file == mappings().sizes.begin()) return;
  --file;
  if (begin + size > file->first + file->second) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = (begin + page - 1) / page * page, last = (begin + size) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

void MappedFile::prefer_large_pages([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t size) {
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = address_of(data) / page * page;
  ::madvise(reinterpret_cast<void*>(first), address_of(data) + size - first, MADV_HUGEPAGE);
#endif
}

}  // namespace zoo
