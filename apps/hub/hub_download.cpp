#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <thread>

#include <fcntl.h>
#include <fnmatch.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "apps/command/output.h"
#include "apps/command/progress.h"
#include "apps/hub/http.h"
#include "apps/hub/hub_cache.h"
#include "data/base/atomic_file.h"
#include "data/base/descriptor.h"
#include "data/base/environment.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/mapped_file.h"
#include "data/corpora/sha256.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct HubFile {
  std::string name;  // path inside the repository
  std::int64_t size = 0;
  std::string hash;  // SHA-256 of a large file, else git's SHA-1 of a blob; 64 or 40 hexadecimal digits
};

struct HubListing {
  std::string commit;
  std::vector<HubFile> files;  // files that the zoo uses: weights last
};

bool is_hash(const std::string& text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The server's name decides where a file is written.
bool is_safe(const fs::path& name) {
  return name.is_relative() && name.has_filename() && name == name.lexically_normal() &&
         name.begin()->native() != ".." &&
         name.native().find_first_of(std::string("\\\0", 2)) == std::string::npos;
}

bool is_weights(const fs::path& name) { return name.extension() == ".safetensors"; }

// Of a model or a PEFT adapter, with chat templates and Sentence-Transformers' modules
// ("1_Pooling/config.json"). Other folders have other formats, and "model.fp16.safetensors" is a copy.
bool is_wanted(const fs::path& name) {
  const fs::path folder = name.parent_path();
  const bool is_module = !folder.has_parent_path() && !folder.empty() && folder.native()[0] >= '0' &&
                         folder.native()[0] <= '9' && folder.native().find('_') == 1;
  if (!folder.empty() && !is_module && folder != "additional_chat_templates") return false;
  if (is_weights(name)) {
    const std::string stem = name.stem().string();
    return stem == "model" || stem == "adapter_model" ||
           (stem.starts_with("model-") && stem.find('.') == std::string::npos);
  }
  const std::string extension = name.extension().string(), file = name.filename().string();
  return extension == ".json" || extension == ".model" || extension == ".spm" || extension == ".jinja" ||
         file == "merges.txt" || file == "vocab.txt";
}

bool is_wanted_data(const std::string& name, const std::vector<std::string>& patterns) {
  fs::path file = name;
  if (file.extension() == ".gz" || file.extension() == ".zst") file = file.stem();
  constexpr std::array kKinds{".parquet", ".jsonl", ".tsv", ".csv", ".txt"};
  if (std::ranges::find(kKinds, file.extension()) == kKinds.end()) return false;
  const auto fits = [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  return patterns.empty() || std::ranges::any_of(patterns, fits);
}

std::string text_at(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string()
             ? object[key].get<std::string>()
             : "";
}

HubFile read_file_entry(const nlohmann::json& entry, const std::string& name, const std::string& source) {
  HubFile file{.name = name};
  const bool is_large = entry.contains("lfs") && entry["lfs"].is_object();
  file.hash = is_large ? text_at(entry["lfs"], "sha256") : text_at(entry, "blobId");
  const nlohmann::json size = entry.value("size", nlohmann::json());
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
  if (!is_hash(file.hash, is_large ? 64 : 40) || !size.is_number_integer() || size < 0 || size > kMostBytes)
    throw Error(source, ": '", name, "' has no size and hash");
  file.size = size.get<std::int64_t>();
  return file;
}

// The wanted files in the hub's answer to /api/models/NAME/revision/REVISION?blobs=true. Throws Error naming
// `source` and the entry that is wrong, and if there are no safetensors and no data.
HubListing read_listing(std::string_view json, const std::string& source, const HubName& name,
                        const std::vector<std::string>& include) {
  const nlohmann::json root = parse_json(json);
  HubListing listing{.commit = text_at(root, "sha")};
  if (!is_hash(listing.commit, 40) || !root.contains("siblings") || !root["siblings"].is_array())
    throw Error(source, ": expected the hub's description of a repository, with 'sha' and 'siblings'");
  for (const nlohmann::json& entry : root["siblings"]) {
    const std::string file = text_at(entry, "rfilename");
    if (!is_safe(file)) throw Error(source, ": '", file, "' is no name for a file in the cache");
    if (name.is_dataset ? is_wanted_data(file, include) : is_wanted(file))
      listing.files.push_back(read_file_entry(entry, file, source));
  }
  if (name.is_dataset && listing.files.empty())
    throw Error(source, ": the repository has no .parquet, .jsonl, .tsv, .csv or .txt file",
                include.empty() ? "" : " that --include names",
                "; the hub keeps most datasets as Parquet, too: datasets/", name.name,
                "@refs/convert/parquet");
  const auto weights = std::stable_partition(listing.files.begin(), listing.files.end(),
                                             [](const HubFile& file) { return !is_weights(file.name); });
  if (!name.is_dataset && weights == listing.files.end())
    throw Error(source,
                ": the repository has no model.safetensors; the zoo reads no other weights. In Python, ",
                "save_pretrained() of transformers writes them");
  return listing;
}

// The hub and the user's access to it, by the environment.
struct Hub {
  std::string endpoint = environment("HF_ENDPOINT"), token = environment("HF_TOKEN");

  Hub() {
    if (endpoint.empty()) endpoint = "https://huggingface.co";
    while (endpoint.ends_with('/')) endpoint.pop_back();
    const fs::path stored = hub_home() / "token";
    if (token.empty() && fs::is_regular_file(stored)) token = read_file(stored);
    while (token.ends_with('\n') || token.ends_with('\r') || token.ends_with(' ')) token.pop_back();
  }
};

// A file that is being downloaded, with the part from earlier processes. One process at a time may open it.
class PartialFile {
 public:
  // Throws Error if the file cannot be written or another process has it.
  explicit PartialFile(fs::path path)
      : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail();
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
      throw Error(path_.string(), ": another process is downloading this file");
    size_ = ::lseek(descriptor_, 0, SEEK_END);
  }

  const fs::path& path() const { return path_; }
  std::int64_t size() const { return size_; }

  // Throws Error naming the file, for example if the disk is full; so do the next two.
  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      bytes.remove_prefix(static_cast<std::size_t>(written));
      size_ += written;
    }
  }

  void cut(std::int64_t size) {
    if (::ftruncate(descriptor_, size) != 0) fail();
    size_ = ::lseek(descriptor_, size, SEEK_SET);
  }

  // Syncs the file and gives it its name.
  void become(const fs::path& name) {
    std::error_code error;
    if (::fsync(descriptor_) != 0) fail();
    fs::rename(path_, name, error);
    if (error) throw Error(name.string(), ": cannot be written: ", error.message());
    sync_directory(name.parent_path());
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(path_.string(), ": cannot be written: ", std::strerror(errno));
  }

  fs::path path_;
  Descriptor descriptor_;
  std::int64_t size_ = 0;
};

constexpr int kMostTries = 5;
constexpr std::int64_t kLongestWait = 300;  // seconds that a server may ask for
constexpr std::size_t kMostListing = 64 << 20;

// Waits before the next try; false: there is none.
bool waits_for_retry(const HttpAnswer& answer, int tries) {
  const bool may_pass = answer.is_cut || answer.status == 429 || answer.status >= 500;
  if (!may_pass || tries >= kMostTries || answer.retry_after > kLongestWait) return false;
  std::this_thread::sleep_for(
      std::chrono::seconds(std::max<std::int64_t>(answer.retry_after, 1 << (tries - 1))));
  return true;
}

[[noreturn]] void refuse(const std::string& url, const HttpAnswer& answer, const Hub& hub) {
  const std::string words = answer.fault.empty() ? "" : ": " + answer.fault;
  if (answer.status == 0) throw Error(url, words, "; the same command continues the download");
  if (answer.status == 401 || answer.status == 403)
    throw Error(url, ": access denied (", answer.status, ")", words, "; ",
                hub.token.empty() ? "a private or gated model needs your token in HF_TOKEN"
                                  : "HF_TOKEN does not give access to this model");
  if (answer.status == 404) throw Error(url, ": not found (404)", words, "; check the name and the revision");
  if (answer.status == 429) throw Error(url, ": too many requests (429)", words, "; try again later");
  throw Error(url, ": the server answered ", answer.status, words);
}

// A path in a URL.
std::string encoded(const std::string& path, const std::string& kept = "/") {
  std::string url;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || ("-._~" + kept).find(c) != std::string::npos;
    url += plain ? std::string(1, c) : format_text("%%%02x", byte);
  }
  return url;
}

std::string get_text(const std::string& url, const Hub& hub) {
  for (int tries = 1;; ++tries) {
    std::string text;
    const HttpAnswer answer =
        http_get({.url = url, .token = hub.token}, [&](std::int64_t, std::string_view piece) {
          text += piece;
          return text.size() <= kMostListing;
        });
    if (text.size() > kMostListing) throw Error(url, ": the answer is too long");
    if (answer.status == 200) return text;
    if (!waits_for_retry(answer, tries)) refuse(url, answer, hub);
  }
}

// Hash of a file as the hub names its contents: SHA-256, or git's SHA-1 of a blob.
std::string hash_of(const fs::path& path, bool is_git) {
  const MappedFile file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.bytes().size());
  return is_git ? git_hash(bytes) : sha256(bytes);
}

// -1: there is no such file.
std::int64_t size_of(const fs::path& path) {
  std::error_code absent;
  const auto size = static_cast<std::int64_t>(fs::file_size(path, absent));
  return absent ? -1 : size;
}

class Download {
 public:
  Download(const HubName& name, const std::vector<std::string>& include) : cache_(name) {
    const std::string url = hub_.endpoint + (name.is_dataset ? "/api/datasets/" : "/api/models/") +
                            name.name + "/revision/" + encoded(name.revision, "") + "?blobs=true";
    listing_ = read_listing(get_text(url, hub_), url, name, include);
    base_ =
        hub_.endpoint + (name.is_dataset ? "/datasets/" : "/") + name.name + "/resolve/" + listing_.commit;
  }

  fs::path run() {
    make_directories(cache_.path() / "blobs");
    std::vector<const HubFile*> missing;
    std::int64_t bytes = 0, present = 0;
    for (const HubFile& file : listing_.files) {
      if (size_of(cache_.blob(file.hash)) == file.size) continue;
      missing.push_back(&file);
      bytes += file.size;
      present += std::clamp<std::int64_t>(size_of(partial_path(file)), 0, file.size);
    }
    std::error_code unknown;
    const fs::space_info space = fs::space(cache_.path(), unknown);
    if (!unknown && space.available < static_cast<std::uintmax_t>(bytes - present))
      throw Error(cache_.path().string(), ": ", human_bytes(bytes - present),
                  " are needed, and the disk has ", human_bytes(static_cast<std::int64_t>(space.available)),
                  " left");
    Progress progress(bytes, "bytes");
    progress.update(0);
    for (const HubFile* file : missing) {
      get(*file, progress);
      before_ += file->size;
      if (!progress.on_terminal()) std::cerr << file->name << " " << human_bytes(file->size) << "\n";
    }
    for (const HubFile& file : listing_.files) cache_.link(listing_.commit, file.name, file.hash);
    cache_.point_to(listing_.commit);
    return cache_.snapshot(listing_.commit);
  }

 private:
  fs::path partial_path(const HubFile& file) const { return cache_.blob(file.hash + ".incomplete"); }

  void get(const HubFile& file, Progress& progress) const {
    const std::string url = base_ + "/" + encoded(file.name);
    PartialFile partial(partial_path(file));
    if (partial.size() > file.size) partial.cut(0);
    for (int tries = 1; partial.size() < file.size; ++tries) {
      const auto before = partial.size();
      HttpAnswer answer = transfer(url, file, partial, progress);
      if (partial.size() > before) tries = 1;
      if (partial.size() >= file.size) break;
      // A body that ends early means a lost connection.
      if (answer.status == 200 || answer.status == 206)
        answer = {.fault = "the connection ended after " + std::to_string(partial.size()) + " of " +
                           std::to_string(file.size) + " bytes",
                  .is_cut = true};
      if (!waits_for_retry(answer, tries)) refuse(url, answer, hub_);
    }
    const std::string found =
        partial.size() == file.size ? hash_of(partial.path(), file.hash.size() == 40) : "";
    if (found != file.hash) {
      partial.cut(0);
      throw Error(url, ": the contents differ from the hub's listing, which has ", file.size,
                  " bytes with the hash ", file.hash, "; nothing of them was kept");
    }
    partial.become(cache_.blob(file.hash));
  }

  // Appends the server's bytes, at most one more than the file's size.
  HttpAnswer transfer(const std::string& url, const HubFile& file, PartialFile& partial,
                      Progress& progress) const {
    return http_get({.url = url, .token = hub_.token, .offset = partial.size()}, [&](std::int64_t offset,
                                                                                     std::string_view piece) {
      // A server without support for ranges sends the file from its beginning.
      if (offset < partial.size()) partial.cut(offset);
      if (offset > partial.size()) return false;
      partial.append(piece.substr(0, static_cast<std::size_t>(file.size + 1 - partial.size())));
      progress.update(before_ + std::min(partial.size(), file.size), file.name);
      return partial.size() <= file.size;
    });
  }

  const Hub hub_;
  HubCache cache_;
  HubListing listing_;
  std::string base_;         // URL of the commit's files
  std::int64_t before_ = 0;  // bytes of the files that are done
};

}  // namespace

fs::path download(const HubName& name, const std::vector<std::string>& include) {
  return Download(name, include).run();
}

}  // namespace zoo
