#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "apps/hub/hub_name.h"

namespace zoo {

/// A model's folder in Hugging Face's cache, which other programs share:
///   models--OWNER--NAME/blobs/HASH              contents of files
///   models--OWNER--NAME/snapshots/COMMIT/FILE   links to them
///   models--OWNER--NAME/refs/REVISION           commit of a branch or tag
class HubCache {
 public:
  /// Below HF_HUB_CACHE; else hub/ in HF_HOME; else huggingface/hub/ in XDG_CACHE_HOME or ~/.cache.
  explicit HubCache(const HubName& name);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path blob(const std::string& hash) const { return path_ / "blobs" / hash; }
  std::filesystem::path snapshot(const std::string& commit) const { return path_ / "snapshots" / commit; }

  /// The snapshot of the name's revision; nullopt if the cache lacks it.
  std::optional<std::filesystem::path> find() const;

  /// Links snapshot(commit) / file to the blob; replaces an older link.
  void link(const std::string& commit, const std::string& file, const std::string& hash) const;

  /// Points the revision to this commit.
  void point_to(const std::string& commit) const;

 private:
  std::string revision_;
  std::filesystem::path path_;
};

}  // namespace zoo
