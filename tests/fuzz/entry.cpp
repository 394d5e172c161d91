#include <cstdint>

#include "data/base/error.h"
#include "tests/fuzz/fuzz.h"

namespace {

// True if the input was accepted.
bool accepted(std::string_view input) {
  try {
    zoo::fuzz::read(input);
    return true;
  } catch (const zoo::Error&) {
    return false;
  }
}

}  // namespace

#ifdef ZOO_LIBFUZZER

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  accepted({reinterpret_cast<const char*>(data), size});
  return 0;
}

#else

#include <cstdio>

#include "data/base/atomic_file.h"

// Without libFuzzer: reads each file, cut off at some places too, and wants one of them to be accepted.
int main(int count, char** files) {
  int whole = 0;
  for (int i = 1; i < count; ++i) {
    const std::string input = zoo::read_file(files[i]);
    whole += accepted(input);
    for (std::size_t part = 0; part < 16; ++part)
      accepted(std::string_view(input).substr(0, input.size() * part / 16));
  }
  std::printf("%d of %d files accepted\n", whole, count - 1);
  return whole > 0 ? 0 : 1;
}

#endif
