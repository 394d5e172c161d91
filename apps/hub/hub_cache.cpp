#include "apps/hub/hub_cache.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "data/base/atomic_file.h"
#include "data/base/environment.h"
#include "data/base/error.h"
#include "models/checkpoint/peft_adapter.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

bool is_letter(char c) { return is_ascii_letter(c) || is_ascii_digit(c) || c == '_'; }

// The hub's rule, which also prevents parts that leave the cache or are hidden in it.
bool is_part(std::string_view part) {
  return !part.empty() && part.size() <= 96 && is_letter(part.front()) && is_letter(part.back()) &&
         std::ranges::all_of(part, [](char c) { return is_letter(c) || c == '-' || c == '.'; }) &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos;
}

// One part, or several separated by slashes.
bool has_parts(std::string_view text, std::size_t most) {
  for (std::size_t count = 1; count <= most; ++count) {
    const std::size_t slash = text.find('/');
    if (!is_part(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
  return false;
}

HubName name_of_hub(const std::string& text) {
  constexpr std::string_view kDatasets = "datasets/";
  HubName name{.name = text, .is_dataset = text.starts_with(kDatasets)};
  if (name.is_dataset) name.name.erase(0, kDatasets.size());
  if (const std::size_t at = name.name.find('@'); at != std::string::npos) {
    name.revision = name.name.substr(at + 1);
    name.name.resize(at);
  }
  return name;
}

bool is_valid(const HubName& name) { return has_parts(name.name, 2) && has_parts(name.revision, 4); }
bool names_model(const HubName& name) { return is_valid(name) && !name.is_dataset; }

// The folder that a variable names. Where no shell has done so, for example in a container's settings, ~ is
// expanded.
fs::path folder_by(const char* variable) {
  const std::string path = environment(variable);
  return path == "~" || path.starts_with("~/") ? fs::path(environment("HOME") + path.substr(1))
                                               : fs::path(path);
}

fs::path cache_root() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (fs::path hub = folder_by(variable); !hub.empty()) return hub;
  return hub_home() / "hub";
}

std::string folder_of(const HubName& name) {
  std::string folder = (name.is_dataset ? "datasets--" : "models--") + name.name;
  if (const std::size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  return folder;
}

constexpr std::array kPickles{".bin", ".pt", ".pth", ".ckpt"};

void refuse_weights(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".safetensors" || file.filename() == "config.json")
    throw Error(file, " is a part of a model; give the directory, ",
                file.has_parent_path() ? file.parent_path() : fs::path("."));
  if (std::ranges::find(kPickles, extension) != kPickles.end())
    throw Error("--model: ", file,
                " is a Python pickle; the zoo reads safetensors, which save_pretrained() of ",
                "transformers writes from it");
}

}  // namespace

fs::path hub_home() {
  if (fs::path home = folder_by("HF_HOME"); !home.empty()) return home;
  const fs::path caches = folder_by("XDG_CACHE_HOME");
  return (caches.empty() ? fs::path(environment("HOME")) / ".cache" : caches) / "huggingface";
}

HubName HubName::parse(const std::string& text) {
  HubName name = name_of_hub(text);
  if (is_valid(name)) return name;
  throw Error("'", text, "' is no model of the hub; expected NAME or OWNER/NAME, such as ",
              "openai-community/gpt2, datasets/NAME, or NAME@REVISION");
}

HubCache::HubCache(const HubName& name) : revision_(name.revision), path_(cache_root() / folder_of(name)) {}

std::optional<fs::path> HubCache::find() const {
  const fs::path ref = path_ / "refs" / revision_;
  std::string commit = fs::is_regular_file(ref) ? read_file(ref) : revision_;
  while (commit.ends_with('\n')) commit.pop_back();
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

std::string find_model(const std::string& given) {
  std::error_code error;
  if (fs::exists(given, error)) {
    if (fs::is_regular_file(given, error)) refuse_weights(given);
    return given;
  }
  const HubName name = name_of_hub(given);
  if (!names_model(name)) return given;
  if (const auto found = HubCache(name).find()) return found->string();
  throw Error("'", given,
              "' is not a directory here, and no model of this name is in Hugging Face's cache; 'tzoo pull ",
              given, "' downloads it from the hub");
}

void add_model_flag(Flags& flags, ModelPath& target, std::string help) {
  fs::path& model = target;
  flags.add("model", model, std::move(help),
            {.placeholder = "DIR", .meaning = find_model, .leads = true, .required = true});
  flags.add("adapter", target.adapter,
            "directory of a PEFT adapter (LoRA, rsLoRA, DoRA) that is merged into the weights",
            {.placeholder = "DIR", .meaning = [&model](const std::string& given) {
               const std::string adapter = find_model(given), base = PeftAdapter::base_of(adapter);
               if (model.empty() && fs::exists(base)) model = base;
               if (const HubName name = name_of_hub(base); model.empty() && names_model(name))
                 model = HubCache(name).find().value_or(model);
               return adapter;
             }});
}

std::string model_name(const fs::path& given) {
  fs::path path = fs::absolute(given).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  // …/models--google--flan-t5-small/snapshots/COMMIT
  const std::string folder = path.parent_path().parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--";
  if (path.parent_path().filename() != "snapshots" || !folder.starts_with(kPrefix))
    return path.filename().string();
  std::string name = folder.substr(kPrefix.size());
  if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return name;
}

}  // namespace zoo
