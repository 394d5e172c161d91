#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/command/flags.h"
#include "data/base/model_path.h"

namespace zoo {

/// Where Hugging Face's programs keep their files: HF_HOME, else huggingface/ in XDG_CACHE_HOME or ~/.cache.
std::filesystem::path hub_home();

/// "google/flan-t5-small" or "datasets/roneneldan/TinyStories" on the hub, and a branch, tag or commit.
struct HubName {
  std::string name;
  std::string revision = "main";
  bool is_dataset = false;

  /// Parses "NAME" or "NAME@REVISION". Throws Error if the text cannot be a name on the hub.
  static HubName parse(const std::string& text);
};

/// A model's folder in Hugging Face's cache, which other programs share; a dataset's is
/// datasets--OWNER--NAME:
///   models--OWNER--NAME/blobs/HASH              contents of files
///   models--OWNER--NAME/snapshots/COMMIT/FILE   links to them
///   models--OWNER--NAME/refs/REVISION           commit of a branch or tag
class HubCache {
 public:
  /// Below HF_HUB_CACHE, else hub/ in hub_home().
  explicit HubCache(const HubName& name);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path blob(const std::string& hash) const { return path_ / "blobs" / hash; }
  std::filesystem::path snapshot(const std::string& commit) const { return path_ / "snapshots" / commit; }

  /// The snapshot of the name's revision; nullopt if the cache lacks it.
  std::optional<std::filesystem::path> find() const;

  /// Links snapshot(commit) / file to the blob; replaces an older link.
  void link(const std::string& commit, const std::string& file, const std::string& hash) const;

  void point_to(const std::string& commit) const;

 private:
  std::string revision_;
  std::filesystem::path path_;
};

/// Downloads the files of a name that the zoo uses, or what the cache lacks of them, and returns their folder
/// in the cache; of a dataset those that fit a pattern of `include` (none: all). Shows the progress on
/// standard error. Reads HF_ENDPOINT and HF_TOKEN; without the latter, the token stored by Hugging Face's
/// login. Throws Error naming the URL or the file.
std::filesystem::path download(const HubName& name, const std::vector<std::string>& include);

/// The path for --model: `given`, or the snapshot in Hugging Face's cache of the model with this name. Throws
/// Error with the command that downloads a missing model, or the path to use instead of a file of weights.
std::string find_model(const std::string& given);

/// Name of the model at a path, for a page and a server: its name on the hub if it is in the cache, else its
/// folder's name. Reveals nothing else of the path.
std::string model_name(const std::filesystem::path& path);

/// Declares --model, required, resolved by find_model() and also given without its flag; and --adapter, whose
/// base_model_name_or_path stands for --model if it is a path here or in the cache.
void add_model_flag(Flags& flags, ModelPath& target,
                    std::string help =
                        "checkpoint directory, GGUF file, or name of a model that tzoo pull has "
                        "downloaded");

}  // namespace zoo
