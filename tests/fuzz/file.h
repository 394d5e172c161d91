#pragma once

#include <fstream>
#include <string>
#include <string_view>

#include "tests/support/temporary_directory.h"

namespace zoo::fuzz {

/// The directory of this process's files, removed at its end.
inline const test::TemporaryDirectory& directory() {
  static const test::TemporaryDirectory directory;
  return directory;
}

/// Not atomically, which would wait for the disk each time.
inline std::filesystem::path write(const std::string& name, std::string_view bytes) {
  std::ofstream(directory() / name, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return directory() / name;
}

}  // namespace zoo::fuzz
