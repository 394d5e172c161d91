#pragma once

/// @file
/// Use:
///
///     const zoo::MappedFile file("train.bin");
///     std::cout << file.bytes().size() << " bytes\n";

#include <cstddef>
#include <filesystem>
#include <span>

namespace zoo {

/// A file mapped into memory: pages are read on first access and shared with the page cache.
class MappedFile {
 public:
  /// Throws Error naming the path if it cannot be opened or is no regular file. An empty file gives no bytes.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// The same bytes, writable. A written page becomes private to this process; the file never changes.
  std::byte* data() const { return data_; }
  const std::filesystem::path& path() const { return path_; }

  /// Releases the pages inside these bytes if they belong to a mapped file: they use no memory until the next
  /// access, which reads them from the file again. Changes are lost. Does nothing for other memory.
  static void give_back(const void* data, std::size_t size);

  /// The path of the mapped file with this address; null if there is none. A signal handler may call it.
  static const char* path_at(const void* address) noexcept;

  /// Asks for large pages, which save address translation; granted if the file system supports them.
  static void prefer_large_pages(const void* data, std::size_t size);

 private:
  std::filesystem::path path_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace zoo
