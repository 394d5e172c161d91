#include "models/formats/torch_file.h"

#include <exception>

#include "data/base/atomic_file.h"

namespace zoo {

void write_torch_file(const std::filesystem::path& path,
                      const std::function<void(const TorchFileWriter&)>& fill) {
  AtomicFile file(path);
  std::exception_ptr failure;
  // An exception must not leave Torch's writer: its destructor would write again and throw another. So report
  // success to the writer, and throw the error afterwards.
  fill([&](const void* bytes, std::size_t size) {
    if (failure) return size;
    try {
      file.write(bytes, size);
    } catch (...) {
      failure = std::current_exception();
    }
    return size;
  });
  if (failure) std::rethrow_exception(failure);
  file.commit();
}

}  // namespace zoo
