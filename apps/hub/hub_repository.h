#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/hub/hub_cache.h"

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
/// tokenizer files; of a dataset the tables and texts that train reads, and of these the ones that fit a
/// pattern of `include` (none: all). Throws Error naming `source` and the entry that is wrong, and if there
/// are no safetensors and no data.
HubListing read_listing(std::string_view json, const std::string& source, const HubName& name,
                        const std::vector<std::string>& include);

/// Downloads those files, or what the cache lacks of them, and returns their folder in the cache. Shows the
/// progress on standard error. Reads HF_ENDPOINT and HF_TOKEN; without the latter, the token stored by
/// Hugging Face's login. Throws Error naming the URL or the file.
std::filesystem::path download(const HubName& name, const std::vector<std::string>& include);

}  // namespace zoo
