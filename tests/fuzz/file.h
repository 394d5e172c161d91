#pragma once

#include <string>
#include <string_view>

#include "tests/support/temporary_directory.h"
#include "tests/support/write_bytes.h"

namespace zoo::fuzz {

/// The directory of this process's files, removed at its end.
inline const test::TemporaryDirectory& directory() {
  static const test::TemporaryDirectory directory;
  return directory;
}

inline std::filesystem::path write(const std::string& name, std::string_view bytes) {
  return test::write_bytes(directory() / name, bytes);
}

}  // namespace zoo::fuzz
