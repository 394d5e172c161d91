#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace zoo {

/// A file that is being downloaded, including the part from earlier processes. One process at a time may open
/// it.
class PartialFile {
 public:
  /// Throws Error if the file cannot be written or another process has it.
  explicit PartialFile(std::filesystem::path path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t size() const { return size_; }

  /// Throws Error naming the file, for example if the disk is full; so do the next two.
  void append(std::string_view bytes);
  void cut(std::int64_t size);

  /// Syncs the file and gives it its name.
  void become(const std::filesystem::path& name);

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  int descriptor_;
  std::int64_t size_ = 0;
};

}  // namespace zoo
