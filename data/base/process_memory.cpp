#include "data/base/process_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <link.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

namespace zoo {
namespace {

int give_back_code(dl_phdr_info* library, std::size_t, void*) {
  // Keep the program's own pages: they hold a debugger's breakpoints.
  if (library->dlpi_name == nullptr || library->dlpi_name[0] == '\0') return 0;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    const bool code =
        segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && (segment.p_flags & PF_W) == 0;
    if (!code) continue;
    const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t first = (begin + page - 1) / page * page,
                         last = (begin + segment.p_memsz) / page * page;
    // Unmodified pages of a file: they can be read again.
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
  return 0;
}

// The number after a word of a file, or else at its beginning; nothing if there is none ("max").
std::optional<std::int64_t> number_in(const char* file, std::string_view after = "") {
  std::ifstream words(file);
  std::string word;
  while (word != after && words >> word) continue;
  std::int64_t number = 0;
  return words >> number ? std::optional(number) : std::nullopt;
}

// Bytes of "KEY:   123 kB" in a file of /proc; -1 if it is missing.
std::int64_t proc_bytes(const char* file, std::string_view key) {
  const auto kilobytes = number_in(file, key);
  return kilobytes ? 1024 * *kilobytes : -1;
}

}  // namespace

std::int64_t available_memory() {
  const std::int64_t machine = proc_bytes("/proc/meminfo", "MemAvailable:");
  const auto limit = number_in("/sys/fs/cgroup/memory.max"),
             used = number_in("/sys/fs/cgroup/memory.current");
  if (machine < 0 || !limit || !used) return machine;
  // Cached files give way to other uses.
  return std::min(machine, *limit - *used + number_in("/sys/fs/cgroup/memory.stat", "file").value_or(0));
}

std::int64_t peak_memory() { return proc_bytes("/proc/self/status", "VmHWM:"); }

void give_back_idle_memory() {
  ::dl_iterate_phdr(give_back_code, nullptr);
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // glibc's maximum
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace zoo
