// A disk that loses at a power cut what was not synced. Preloaded, it copies into FAULTY_DISK_DIR what each
// fsync makes durable: the content of a file, the names in a directory. At the fsync with the number
// FAULTY_DISK_CUT the process ends before it. faulty_disk.py then builds the files that such a disk would hold.
//
// An inode's number is used again after it is deleted; with its time of birth it is unique.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

std::atomic<long> calls = 0;

std::string identity(int directory, const char* name, int flags) {
  struct statx status = {};
  if (::statx(directory, name, flags | AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status) != 0)
    std::abort();
  return std::to_string(status.stx_ino) + "-" + std::to_string(status.stx_btime.tv_sec) + "-" +
         std::to_string(status.stx_btime.tv_nsec);
}

// Names, kinds and identities, a line each; a symbolic link with its target.
void keep_names(const fs::path& directory, std::ofstream& kept) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_symlink())
      kept << "link\t" << name << '\t' << fs::read_symlink(entry.path()).string() << '\n';
    else
      kept << (entry.is_directory() ? "directory\t" : "file\t") << name << '\t'
           << identity(AT_FDCWD, entry.path().c_str(), 0) << '\n';
  }
}

void keep(int descriptor) {
  const fs::path store = std::getenv("FAULTY_DISK_DIR");
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

}  // namespace

extern "C" int fsync(int descriptor) {
  static const auto next = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"));
  const char* last = std::getenv("FAULTY_DISK_CUT");
  if (last != nullptr && ++calls == std::atol(last)) ::_exit(9);
  keep(descriptor);
  return next(descriptor);
}
