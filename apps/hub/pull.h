#pragma once

#include <filesystem>

#include "apps/hub/hub_name.h"

namespace zoo {

/// The hub and the user's access to it.
struct Hub {
  std::string endpoint = "https://huggingface.co";
  std::string token;

  /// HF_ENDPOINT and HF_TOKEN; without the latter the token that Hugging Face's login has stored.
  static Hub from_environment();
};

/// Downloads the model's snapshot into Hugging Face's cache, without the files that are there, and returns
/// its folder. Shows a bar on a terminal, a line per file in a pipe. Throws Error naming the file and the
/// cause: the cache then has no new snapshot, and what was downloaded so far is used by the next pull.
std::filesystem::path pull(const HubName& name, const Hub& hub);

}  // namespace zoo
