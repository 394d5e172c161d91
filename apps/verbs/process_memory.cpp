#include "apps/verbs/process_memory.h"

#include <cstdint>
#include <limits>

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

}  // namespace

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
