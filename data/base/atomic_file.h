#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace zoo {

/// A file that appears under its name whole or not at all: written beside it under a temporary name, synced,
/// and renamed by commit(). Without commit() the destructor removes what was written and an older file stays
/// as it was.
class AtomicFile {
 public:
  /// Throws Error naming the path if the folder cannot be written.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws Error naming the path, for example when the disk is full.
  void write(const void* bytes, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void flush();
  void write_through(const char* bytes, std::size_t size);  // past the buffer

  std::filesystem::path path_, temporary_;
  std::string buffer_;
  int descriptor_ = -1;
};

/// The whole of `text` under `path`, atomically.
void write_file(const std::filesystem::path& path, std::string_view text);

/// The content of a small text file. Throws Error naming the path.
std::string read_file(const std::filesystem::path& path);

/// A directory that appears whole or not at all: fill path(), then commit() puts it in the place of target,
/// exchanging it for an older one in one step. A kill at any instant leaves either the old or the new
/// directory under the name.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path target);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_, temporary_;
};

/// Creates `path` and its parents. Throws Error naming it.
void make_directories(const std::filesystem::path& path);

}  // namespace zoo
