#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace zoo {

/// A whole file mapped into memory: pages are read when they are touched and shared with the page cache.
class MappedFile {
 public:
  /// Throws Error naming the path if it cannot be opened or is not a regular file. An empty file is an empty
  /// span.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// The same bytes, writable: a page that is written becomes this process's own, the file never changes.
  std::byte* data() const { return data_; }
  const std::filesystem::path& path() const { return path_; }

  /// Lets go of the pages that lie within these bytes, if a mapped file holds them: they cost no memory until
  /// they are read again, from the file, so that what was written to them is lost. Does nothing elsewhere.
  static void give_back(const void* data, std::size_t size);

 private:
  std::filesystem::path path_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace zoo
