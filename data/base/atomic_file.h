#pragma once

/// @file
/// Use:
///
///     zoo::AtomicFile file("notes.txt");
///     file.write("all of it, or nothing");
///     file.commit();
///     const std::string text = zoo::read_file("notes.txt");

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace zoo {

/// A file that appears under its name completely or not at all: written under a temporary name in the same
/// folder, synced, and renamed by commit(). Without commit(), the destructor removes it and an older file
/// stays unchanged. Links are followed, and an older file's permissions kept. Temporary files of killed
/// processes for the same target are removed first.
class AtomicFile {
 public:
  /// Throws Error naming the path if the folder is not writable.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws Error naming the path, for example if the disk is full.
  void write(const void* bytes, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Overwrites bytes that were written before, `at` bytes from the beginning.
  void rewrite(std::size_t at, std::string_view bytes);
  /// The temporary file with everything written so far, to check it before commit().
  const std::filesystem::path& written();
  void commit();

 private:
  void flush();
  void write_through(const char* bytes, std::size_t size);  // bypasses the buffer

  std::filesystem::path path_, temporary_;
  std::string buffer_;
  int descriptor_ = -1;
};

/// Writes `text` to `path` atomically.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Bounds of read_model_file() for settings in JSON and for a vocabulary.
inline constexpr std::size_t kMostSettings = std::size_t{64} << 20, kMostVocabulary = std::size_t{256} << 20;

/// The content of a model's file. Throws Error naming the path at once if it is not a regular file, for
/// example a pipe without a writer, or has more than `most` bytes.
std::string read_model_file(const std::filesystem::path& path, std::size_t most = kMostVocabulary);

/// The content of a small text file. Throws Error naming the path, also for a pipe or device above 256 MiB.
std::string read_file(const std::filesystem::path& path);

/// A directory that appears completely or not at all: fill path(), then commit() exchanges it with the
/// target, or where that links to. Where the file system cannot exchange names (NFS), a kill may leave none
/// under the name; the next AtomicDirectory or put_back_replaced() puts the old one back. Removes leftovers
/// of killed processes first.
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
  int lock_ = -1;
};

/// Puts back what a process that was killed in AtomicDirectory::commit() had moved to `.TARGET` with this
/// ending, on a file system that cannot exchange names; removes it if the target's place is taken.
inline constexpr std::string_view kReplaced = ".tmp-old";
void put_back_replaced(const std::filesystem::path& target);

/// Creates `path` and its parents, durable across a power cut. Throws Error naming it.
void make_directories(const std::filesystem::path& path);

/// The system's folder for temporary files. Throws Error if TMPDIR names none.
std::filesystem::path temporary_folder();

/// Makes the names in a directory durable: a rename or a new entry may be lost at a power cut until then.
void sync_directory(const std::filesystem::path& directory);

/// Throws Error if a file's content is a Git LFS pointer to a large file.
void refuse_lfs_pointer(const std::filesystem::path& path, std::string_view content);

}  // namespace zoo
