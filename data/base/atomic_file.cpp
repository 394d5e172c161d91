#include "data/base/atomic_file.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/descriptor.h"
#include "data/base/environment.h"
#include "data/base/error.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferSize = 1 << 20;
constexpr std::size_t kMostOfStream = std::size_t{256} << 20;  // a pipe or a device may never end

fs::path hidden_beside(const fs::path& target, std::string_view ending) {
  return target.parent_path() / ("." + target.filename().string() + std::string(ending));
}

// A temporary name for the target that this process has locked and no other one writes: in two containers
// processes may have the same number. `open` gives its descriptor.
template <class Open> int lock_temporary(const fs::path& target, fs::path& temporary, Open open) {
  constexpr int kTries = 8;
  const std::string ending = ".tmp-" + std::to_string(::getpid());
  for (int i = 0;; ++i) {
    temporary = hidden_beside(target, i == 0 ? ending : ending + "-" + std::to_string(i));
    const int descriptor = open(temporary);
    if (descriptor < 0) return descriptor;
    const bool is_free = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    // Until it was locked another process may have renamed it. On some file systems a file's number changes.
    struct stat opened = {}, named = {};
    const bool is_same = ::fstat(descriptor, &opened) == 0 && ::stat(temporary.c_str(), &named) == 0 &&
                         opened.st_ino == named.st_ino;
    if (is_free && (is_same || i > kTries)) return descriptor;
    ::close(descriptor);
  }
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

fs::file_type type_of(const fs::path& path) {
  std::error_code ignored;  // opening it fails later, with a better message
  return fs::status(path, ignored).type();
}

// A rename would replace any file with that name, even /dev/null.
bool is_other_than(fs::file_type wanted, const fs::path& path) {
  const fs::file_type type = type_of(path);
  return type != wanted && type != fs::file_type::not_found && type != fs::file_type::none;
}

// Where links lead from `path`: a rename would put a file in the place of the link.
fs::path followed(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i)
    path = parent_of(path) / fs::read_symlink(path, error);
  return path;
}

// Removes files of killed processes for this target: of this machine by their number, else by their lock.
void remove_leftovers(const fs::path& target) {
  const std::string begin = "." + target.filename().string() + ".tmp-";
  std::vector<fs::path> leftovers;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent_of(target), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin)) continue;
    const pid_t owner = static_cast<pid_t>(std::strtol(name.c_str() + begin.size(), nullptr, 10));
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) {
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) fs::remove_all(path, ignored);
  }
}

// Without an exchange of names. False, with errno, if the old directory is still in its place.
bool replace_in_two_steps(const fs::path& target, const fs::path& temporary) {
  const fs::path aside = hidden_beside(target, kReplaced);
  if (::rename(target.c_str(), aside.c_str()) != 0) return false;
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::rename(aside.c_str(), target.c_str());
    errno = error;
    return false;
  }
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  return true;
}

[[noreturn]] void fail(const fs::path& path, int error) {
  throw Error("cannot write ", path, ": ", std::strerror(error));
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(followed(std::move(path))) {
  if (type_of(path_) == fs::file_type::directory) throw Error("cannot write ", path_, ": it is a directory");
  if (is_other_than(fs::file_type::regular, path_))
    throw Error("cannot write ", path_, ": it is not a regular file");
  remove_leftovers(path_);
  descriptor_ = lock_temporary(path_, temporary_, [](const fs::path& name) {
    return ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  });
  if (descriptor_ < 0 || ::ftruncate(descriptor_, 0) != 0) fail(path_, errno);
  // What only its owner may read stays so.
  if (struct stat older = {}; ::stat(path_.c_str(), &older) == 0) ::fchmod(descriptor_, older.st_mode & 0777);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* bytes, std::size_t size) {
  if (buffer_.size() + size > kBufferSize) flush();
  if (size < kBufferSize) {
    buffer_.append(static_cast<const char*>(bytes), size);
    return;
  }
  write_through(static_cast<const char*>(bytes), size);
}

void AtomicFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::write_through(const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, errno);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::rewrite(std::size_t at, std::string_view bytes) {
  flush();
  if (::lseek(descriptor_, static_cast<off_t>(at), SEEK_SET) < 0) fail(path_, errno);
  write_through(bytes.data(), bytes.size());
  if (::lseek(descriptor_, 0, SEEK_END) < 0) fail(path_, errno);
}

const fs::path& AtomicFile::written() {
  flush();
  return temporary_;
}

void AtomicFile::commit() {
  flush();
  if (::fsync(descriptor_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, errno);
  ::close(descriptor_);  // unlocks it, under its new name
  descriptor_ = -1;
  sync_directory(parent_of(path_));
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_model_file(const fs::path& path, std::size_t most) {
  if (type_of(path) != fs::file_type::directory && is_other_than(fs::file_type::regular, path))
    throw Error("cannot read ", path, ": it is not a regular file");
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > most)
    throw Error("cannot read ", path, ": it has ", size, " bytes; expected at most ", most);
  std::string content = read_file(path);
  refuse_lfs_pointer(path, content);
  return content;
}

std::string read_file(const fs::path& path) {
  const fs::file_type type = type_of(path);
  if (type == fs::file_type::directory) throw Error("cannot read ", path, ": it is a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot open ", path, ": ", std::strerror(errno));
  std::string text, block(kBufferSize, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (type != fs::file_type::regular && text.size() > kMostOfStream)
      throw Error("cannot read ", path, ": it is no regular file, and more than 256 MiB came from it");
  }
  if (file.bad()) throw Error("cannot read ", path);
  return text;
}

AtomicDirectory::AtomicDirectory(fs::path target)
    : target_(followed(target.has_filename() ? std::move(target) : target.parent_path())) {
  if (is_other_than(fs::file_type::directory, target_))
    throw Error("cannot write ", target_, ": it is not a directory");
  std::error_code error;
  put_back_replaced(target_);
  remove_leftovers(target_);
  lock_ = lock_temporary(target_, temporary_, [](const fs::path& name) {
    make_directories(name);
    return ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  });
  for (const auto& leftover : fs::directory_iterator(temporary_, error)) fs::remove_all(leftover, error);
}

AtomicDirectory::~AtomicDirectory() {
  if (lock_ >= 0) ::close(lock_);
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void AtomicDirectory::commit() {
  sync_directory(temporary_);
  // RENAME_EXCHANGE needs a target; without one the plain rename is atomic. NFS, for example, lacks it.
  const bool replaces = type_of(target_) == fs::file_type::directory;
  const int result =
      replaces ? ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE)
               : ::rename(temporary_.c_str(), target_.c_str());
  const bool lacks = result != 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP);
  const bool done = replaces && lacks ? replace_in_two_steps(target_, temporary_) : result == 0;
  if (!done) fail(target_, errno);
  sync_directory(parent_of(target_));
}

void put_back_replaced(const fs::path& target) {
  const fs::path aside = hidden_beside(target, kReplaced);
  std::error_code ignored;
  if (fs::exists(target, ignored)) fs::remove_all(aside, ignored);
  else fs::rename(aside, target, ignored);
}

void make_directories(const fs::path& path) {
  std::vector<fs::path> made;
  std::error_code error;
  for (fs::path missing = path; !missing.empty() && !fs::exists(missing, error);
       missing = missing.parent_path())
    made.push_back(missing);
  fs::create_directories(path, error);
  if (error) throw Error("cannot create the directory ", path, ": ", error.message());
  for (const fs::path& directory : made) sync_directory(parent_of(directory));
}

fs::path temporary_folder() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (!error) return folder;
  throw Error("TMPDIR: '", environment("TMPDIR"), "' is no directory for temporary files");
}

void sync_directory(const fs::path& directory) {
  const Descriptor descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor >= 0) ::fsync(descriptor);
}

void refuse_lfs_pointer(const std::filesystem::path& path, std::string_view content) {
  if (content.starts_with("version https://git-lfs.github.com/"))
    throw Error(path,
                ": is a Git LFS pointer, not the file itself; 'git lfs pull' in its directory fetches it");
}

}  // namespace zoo
