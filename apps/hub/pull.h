#pragma once

#include <filesystem>

#include "apps/hub/hub_cache.h"

namespace zoo {

/// The hub and the user's access to it.
struct Hub {
  std::string endpoint = "https://huggingface.co";
  std::string token;

  /// HF_ENDPOINT and HF_TOKEN; without the latter, the token stored by Hugging Face's login.
  static Hub from_environment();
};

/// Downloads the missing files of the model's snapshot into Hugging Face's cache, and returns its folder.
/// Shows a bar on a terminal, a line per file in a pipe. Throws Error naming the file and the cause: the
/// cache then has no new snapshot, and the next pull continues with the parts downloaded so far.
std::filesystem::path pull(const HubName& name, const Hub& hub);

}  // namespace zoo
