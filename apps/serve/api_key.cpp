#include "apps/serve/api_key.h"

#include <algorithm>
#include <fstream>
#include <iostream>

#include <sys/stat.h>

#include "apps/command/arguments.h"
#include "data/base/environment.h"
#include "data/base/error.h"

namespace zoo {
namespace {

constexpr std::size_t kLongest = 4096;

// The key without the end of its line.
std::string checked(std::string key, const std::string& source) {
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  const bool good = !key.empty() && key.size() <= kLongest &&
                    std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!good)
    throw UsageError(source, ": a key is one line of 1 to ", kLongest,
                     " letters, digits and signs of ASCII, without blanks");
  return key;
}

std::string read_key(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    throw Error("--api_key_file: ", file, " is not there or no regular file");
  std::ifstream in(file, std::ios::binary);
  std::string key(kLongest + 3, '\0');
  in.read(key.data(), static_cast<std::streamsize>(key.size()));
  if (!in.is_open() || in.bad()) throw Error("--api_key_file: cannot read ", file);
  key.resize(static_cast<std::size_t>(in.gcount()));
  if ((status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    std::cerr << "note: others can read " << file << "; 'chmod 600 " << file << "' keeps the key\n";
  return key;
}

}  // namespace

std::string api_key_of(const std::string& given, const std::string& file) {
  if (!given.empty() && !file.empty())
    throw UsageError("--api_key and --api_key_file: give only one of them");
  if (!given.empty()) return checked(given, "--api_key");
  if (!file.empty()) return checked(read_key(file), "--api_key_file " + file);
  const std::string key = environment("TZOO_API_KEY");
  return key.empty() ? "" : checked(key, "TZOO_API_KEY");
}

}  // namespace zoo
