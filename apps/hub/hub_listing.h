#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// A file of a repository on the hub.
struct HubFile {
  std::string name;  // path inside the repository
  std::int64_t size = 0;
  std::string hash;  // SHA-256 of a large file, else git's SHA-1 of a blob; 64 or 40 hexadecimal digits
};

struct HubListing {
  std::string commit;
  std::vector<HubFile> files;  // files that the zoo uses: weights last
};

/// Reads the hub's answer to /api/models/NAME/revision/REVISION?blobs=true and keeps safetensors, JSON and
/// tokenizer files. Throws Error naming `source` and the entry that is wrong, and if there are no
/// safetensors.
HubListing read_listing(std::string_view json, const std::string& source);

}  // namespace zoo
