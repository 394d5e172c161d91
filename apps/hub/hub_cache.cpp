#include "apps/hub/hub_cache.h"

#include "data/base/atomic_file.h"
#include "data/base/environment.h"
#include "data/base/error.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

fs::path cache_root() {
  if (const fs::path hub = environment("HF_HUB_CACHE"); !hub.empty()) return hub;
  if (const fs::path home = environment("HF_HOME"); !home.empty()) return home / "hub";
  if (const fs::path caches = environment("XDG_CACHE_HOME"); !caches.empty())
    return caches / "huggingface/hub";
  return fs::path(environment("HOME")) / ".cache/huggingface/hub";
}

std::string folder_of(std::string name) {
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
  return "models--" + name;
}

}  // namespace

HubCache::HubCache(const HubName& name)
    : revision_(name.revision), path_(cache_root() / folder_of(name.name)) {}

std::optional<fs::path> HubCache::find() const {
  const fs::path ref = path_ / "refs" / revision_;
  std::string commit = fs::is_regular_file(ref) ? read_file(ref) : revision_;
  while (!commit.empty() && commit.back() == '\n') commit.pop_back();
  const fs::path folder = snapshot(commit);
  if (commit.find('/') != std::string::npos || !fs::is_directory(folder)) return std::nullopt;
  return folder;
}

void HubCache::link(const std::string& commit, const std::string& file, const std::string& hash) const {
  const fs::path place = snapshot(commit) / file;
  make_directories(place.parent_path());
  const fs::path temporary = place.string() + ".link";
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_symlink(fs::relative(blob(hash), place.parent_path()), temporary, error);
  if (!error) fs::rename(temporary, place, error);
  if (error) throw Error(place.string(), ": cannot be linked: ", error.message());
  sync_directory(place.parent_path());
}

void HubCache::point_to(const std::string& commit) const {
  if (revision_ == commit) return;
  const fs::path ref = path_ / "refs" / revision_;
  make_directories(ref.parent_path());
  write_file(ref, commit);
}

}  // namespace zoo
