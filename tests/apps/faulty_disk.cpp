// A disk that is full, or that loses at a power cut what was not synced; preloaded.
//
// From the FAULTY_DISK_FULL-th write to a file on, all fail. Each fsync copies into FAULTY_DISK_DIR what it
// makes durable: the content of a file, the names in a directory; before the one with the number
// FAULTY_DISK_CUT the process ends. faulty_disk.py then builds the files that such a disk would hold.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

std::atomic<long> syncs = 0, writes = 0;

// The number of a call that goes wrong; 0: none.
long number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atol(text);
}

bool is_full(int descriptor) {
  static const long first = number_of("FAULTY_DISK_FULL");
  struct stat status = {};
  return first != 0 && ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && ++writes >= first;
}

// An inode's number is used again after it is deleted; with its time of birth it is unique. Empty for what is
// not there.
std::string identity(int directory, const char* name, int flags) {
  struct statx status = {};
  if (::statx(directory, name, flags | AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status) != 0) return "";
  return std::to_string(status.stx_ino) + "-" + std::to_string(status.stx_btime.tv_sec) + "-" +
         std::to_string(status.stx_btime.tv_nsec);
}

// Kinds, names and identities, a line each; a symbolic link has its target. In a directory that others write
// to (/tmp), an entry may be gone before it is looked at.
void keep_names(const fs::path& directory, std::ofstream& kept) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    std::error_code gone;
    if (entry.is_symlink(gone)) {
      const fs::path target = fs::read_symlink(entry.path(), gone);
      if (!gone) kept << "link\t" << name << '\t' << target.string() << '\n';
    } else if (const std::string inode = identity(AT_FDCWD, entry.path().c_str(), 0); !inode.empty()) {
      kept << (entry.is_directory(gone) ? "directory\t" : "file\t") << name << '\t' << inode << '\n';
    }
  }
}

void keep(int descriptor, const fs::path& store) {
  const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
  const fs::path kept = store / identity(descriptor, "", AT_EMPTY_PATH), written = kept.string() + ".new";
  std::ofstream file(written, std::ios::binary);
  if (fs::is_directory(path)) {
    keep_names(path, file);
  } else {
    std::ifstream content(path, std::ios::binary);
    if (content.peek() != std::ifstream::traits_type::eof()) file << content.rdbuf();
  }
  file.close();
  fs::rename(written, kept);
}

template <class Function> Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int fsync(int descriptor) {
  const char* store = std::getenv("FAULTY_DISK_DIR");
  if (store != nullptr && ++syncs == number_of("FAULTY_DISK_CUT")) ::_exit(9);
  if (store != nullptr) keep(descriptor, store);
  return real<int(int)>("fsync")(descriptor);
}

// As on NFS, with FAULTY_DISK_PLAIN.
extern "C" int renameat2(int from, const char* old_name, int to, const char* name, unsigned flags) noexcept {
  if (flags == 0 || number_of("FAULTY_DISK_PLAIN") == 0)
    return real<int(int, const char*, int, const char*, unsigned)>("renameat2")(from, old_name, to, name,
                                                                                flags);
  errno = EINVAL;
  return -1;
}

extern "C" ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  if (!is_full(descriptor))
    return real<ssize_t(int, const void*, std::size_t)>("write")(descriptor, bytes, size);
  errno = ENOSPC;
  return -1;
}

extern "C" ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  if (!is_full(descriptor))
    return real<ssize_t(int, const struct iovec*, int)>("writev")(descriptor, parts, count);
  errno = ENOSPC;
  return -1;
}
