// What an index has of a file follows from its shards alone: beside rows, a shard has the state of their
// file, how many passages that file has, and which of them these are. A file is complete if the shards have
// all of its passages. So a shard may get lost, be the last of a killed process, or be rewritten without the
// rows of earlier states: whatever is missing is embedded, and nothing else.

#include "models/tasks/search/search.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/directory_lock.h"
#include "data/base/field_error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/formats/safetensors.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

// A file with its size in bytes, -1 if it cannot be read, and time of modification in nanoseconds.
using FileState = std::tuple<std::string, std::int64_t, std::int64_t>;

// `rows` of the `passages` of a file, from its passage `first` on.
struct FileRows {
  FileState state;
  std::int64_t passages = 0, first = 0, rows = 0;
};

// A text with its vector tells a model from others.
struct ModelMark {
  std::string settings, text;
  at::Tensor vector;
};

struct SearchShard {
  std::vector<FileRows> files;
  at::Tensor vectors;   // [N, D], of the files' rows, one file after another
  at::Tensor passages;  // [N, 2]: line and bytes
  at::Tensor texts;     // those bytes
  ModelMark model;

  std::int64_t rows() const { return vectors.defined() ? vectors.size(0) : 0; }

  void append(const std::vector<SearchShard>& parts) {
    for (at::Tensor SearchShard::*column :
         {&SearchShard::vectors, &SearchShard::passages, &SearchShard::texts}) {
      std::vector<at::Tensor> all;
      if ((this->*column).defined()) all.push_back(this->*column);
      for (const SearchShard& part : parts) all.push_back(part.*column);
      if (!all.empty()) this->*column = at::cat(all);
    }
    for (const SearchShard& part : parts)
      for (const FileRows& file : part.files) {
        const bool goes_on = !files.empty() && files.back().state == file.state &&
                             files.back().first + files.back().rows == file.first;
        if (goes_on) files.back().rows += file.rows;
        else files.push_back(file);
      }
  }
};

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kProbeBytes = 64;
constexpr std::int64_t kMostAtOnce = 4096;
// Seconds: of work that a kill loses, and until a caller may stop it.
constexpr double kLongestPause = 60, kSlow = 4;
constexpr double kSameVector = 1e-4;  // relative: other weights, prompts and number formats differ more

FileState state_of(const fs::path& file) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(fs::file_size(file, error));
  const auto modified = fs::last_write_time(file, error).time_since_epoch();
  return {replace_invalid_utf8(fs::absolute(file).lexically_normal().string()), error ? -1 : size,
          std::chrono::duration_cast<std::chrono::nanoseconds>(modified).count()};
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool fits_together(SearchShard& shard, const nlohmann::json& files) {
  const auto is = [](const at::Tensor& x, at::ScalarType type, at::IntArrayRef sizes) {
    return x.scalar_type() == type && x.sizes() == sizes;
  };
  if (shard.vectors.dim() != 2 || !is(shard.vectors, at::kFloat, shard.vectors.sizes()) ||
      !is(shard.model.vector, at::kFloat, {shard.vectors.size(1)}) ||
      !is(shard.passages, at::kLong, {shard.rows(), 2}) || !is(shard.texts, at::kByte, {shard.texts.numel()}))
    return false;
  std::int64_t rows = 0;
  try {
    for (const nlohmann::json& each : files) {
      const FileRows& file =
          shard.files.emplace_back(FileRows{each.at(0).get<FileState>(), each.at(1), each.at(2), each.at(3)});
      if (file.first < 0 || file.rows < 0 || file.rows > shard.rows() - rows) return false;
      rows += file.rows;
    }
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  const at::Tensor bytes = shard.passages.select(1, 1);
  const at::Tensor outside = bytes.lt(0).logical_or(bytes.gt(shard.texts.numel()));
  return rows == shard.rows() && !outside.any().item<bool>() &&
         bytes.sum().item<std::int64_t>() == shard.texts.numel();
}

SearchShard read_shard(const fs::path& path, bool verify) {
  const SafetensorsFile file(path);
  if (verify) file.verify();
  std::map<std::string, std::string> metadata = file.metadata();
  SearchShard shard{{},
                    file.tensor("vectors"),
                    file.tensor("passages"),
                    file.tensor("texts"),
                    {metadata["settings"], metadata["probe"], file.tensor("probe")}};
  if (!fits_together(shard, parse_json(metadata["files"])))
    throw Error(path, ": its tensors do not fit together");
  return shard;
}

void write_shard(const fs::path& path, const SearchShard& shard) {
  nlohmann::json files = nlohmann::json::array();
  for (const FileRows& file : shard.files)
    files.push_back({file.state, file.passages, file.first, file.rows});
  write_safetensors(
      path,
      {{"vectors", shard.vectors},
       {"probe", shard.model.vector},
       {"passages", shard.passages},
       {"texts", shard.texts}},
      {{"files", json_text(files)}, {"settings", shard.model.settings}, {"probe", shard.model.text}});
}

}  // namespace

struct SearchIndex::Impl {
  void each_shard(bool verify, const std::function<void(const fs::path&, const SearchShard&)>& visit) const {
    for (const auto& [path, shard] : in_memory) visit(path, shard);
    if (!fs::exists(directory)) return;
    std::set<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("vectors-") && name.ends_with(".safetensors")) paths.insert(entry.path());
    }
    for (const fs::path& path : paths) visit(path, read_shard(path, verify));
  }

  fs::path unused_path() const {
    for (int number = 1'000'000;; ++number) {
      fs::path path = directory / ("vectors-" + std::to_string(number).substr(1) + ".safetensors");
      if (!in_memory.contains(path) && !fs::exists(path)) return path;
    }
  }

  void store(const fs::path& path, SearchShard shard) {
    shard.model = model;
    if (directory.empty()) in_memory[path] = std::move(shard);
    else if (shard.rows() > 0) write_shard(path, shard);
    else fs::remove(path);
  }

  // The file is still so, whether or not it is to be searched.
  bool is_current(const FileState& state) const {
    return places.contains(state) || state_of(std::get<0>(state)) == state;
  }

  SearchShard current_part(const fs::path& path) const {
    const SearchShard shard = directory.empty() ? in_memory.at(path) : read_shard(path, true);
    std::vector<SearchShard> parts;
    std::int64_t row = 0, byte = 0;
    for (const FileRows& file : shard.files) {
      const at::Tensor passages = shard.passages.slice(0, row, row + file.rows);
      const auto bytes = passages.select(1, 1).sum().item<std::int64_t>();
      if (is_current(file.state))
        parts.push_back({{file},
                         shard.vectors.slice(0, row, row + file.rows),
                         passages,
                         shard.texts.slice(0, byte, byte + bytes)});
      row += file.rows;
      byte += bytes;
    }
    SearchShard kept;
    kept.append(parts);
    return kept;
  }

  void mark_with(const std::string& text) {
    if (text == model.text) return;
    model.vector = embedders.vectors(embedders.documents, {text})[0];
    model.text = text;
  }

  void require_same(const ModelMark& other) {
    bool same = other.settings == model.settings;
    if (same) {
      mark_with(other.text);
      const at::Tensor &ours = model.vector, &theirs = other.vector;
      same = ours.sizes() == theirs.sizes() &&
             at::sub(ours, theirs).norm().item<double>() <= kSameVector * ours.norm().item<double>();
    }
    if (!same)
      throw FieldError(Field{"index"}, ": ", directory,
                       " was made by another model, prompt or number format; delete it or name another");
  }

  SearchEmbedders embedders;
  fs::path directory;
  ModelMark model;
  std::map<fs::path, SearchShard> in_memory;
  std::map<FileState, std::size_t> places;  // in the list of update()
};

// Embeds passages, some at a time, and adds them to a shard that is not full, then to new ones.
class SearchIndex::Embedding {
 public:
  Embedding(Impl& index, const UpdateOptions& options, std::int64_t total)
      : index_(index), options_(options), total_(total), at_once_(options.batch_size) {
    index.each_shard(false, [this](const fs::path& path, const SearchShard& shard) {
      if (shard.rows() < options_.shard_rows) path_ = path;
    });
    if (path_.empty()) path_ = index.unused_path();
    else shard_ = index.current_part(path_);
  }

  // False if it is to stop.
  bool add(const FileRows& row, std::int64_t line, std::string_view text) {
    rows_.push_back(row);
    lines_and_bytes_.insert(lines_and_bytes_.end(), {line, static_cast<std::int64_t>(text.size())});
    texts_.emplace_back(text);
    return std::ssize(texts_) < std::min(at_once_, options_.shard_rows - shard_.rows()) || embed();
  }

  bool embed() {
    const auto count = static_cast<std::int64_t>(texts_.size());
    if (count == 0) return true;
    const Clock::time_point start = Clock::now();
    if (index_.model.text.empty())
      index_.mark_with(texts_[0].substr(0, next_character(texts_[0], kProbeBytes)));
    std::string all = joined(texts_, "");
    shard_.append(
        {{std::exchange(rows_, {}),
          index_.embedders.vectors(index_.embedders.documents, texts_, options_.batch_size, options_.run),
          at::tensor(std::exchange(lines_and_bytes_, {}), at::kLong).view({-1, 2}),
          at::from_blob(all.data(), {static_cast<std::int64_t>(all.size())}, at::kByte)}});
    texts_.clear();
    const double seconds = seconds_since(start);
    if (seconds < kSlow / 4) at_once_ = std::min(2 * at_once_, kMostAtOnce);
    if (seconds > kSlow) at_once_ = std::max<std::int64_t>(at_once_ / 2, 1);
    const bool full = shard_.rows() >= options_.shard_rows;
    if (full || seconds_since(saved_) > pause_) save();
    if (full) {
      shard_ = {};
      path_ = index_.unused_path();
    }
    done_ += count;
    return !options_.progress || options_.progress(done_, total_);
  }

  // What was added since the last time is lost without it.
  void save() {
    if (shard_.rows() > 0) index_.store(path_, shard_);
    saved_ = Clock::now();
    pause_ = std::min(2 * pause_, kLongestPause);
  }

  std::int64_t remaining() const { return total_ - done_; }

 private:
  Impl& index_;
  const UpdateOptions& options_;
  const std::int64_t total_;
  std::int64_t done_ = 0, at_once_;
  std::vector<FileRows> rows_;  // of the passages that are to be embedded next
  std::vector<std::int64_t> lines_and_bytes_;
  std::vector<std::string> texts_;
  SearchShard shard_;
  fs::path path_;
  Clock::time_point saved_ = Clock::now();
  double pause_ = 0.25;
};

SearchIndex::SearchIndex(SearchEmbedders embedders, fs::path directory)
    : impl_(new Impl{std::move(embedders), std::move(directory)}) {
  const auto limit = impl_->embedders.documents.max_length();
  impl_->model.settings = std::string("tzoo search 1, ") + (impl_->embedders.normalizes ? "cosine" : "dot") +
                          ", " + (limit ? std::to_string(*limit) : "all") + " tokens";
}

SearchIndex::~SearchIndex() = default;

std::int64_t SearchIndex::update(const std::vector<fs::path>& files, const UpdateOptions& options) {
  require_in(at_least(1), "batch_size", static_cast<double>(options.batch_size));
  impl_->places.clear();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FileState state = state_of(files[i]);
    if (std::get<1>(state) < 0) throw Error("cannot read ", files[i]);
    impl_->places.emplace(state, i);
  }
  std::map<FileState, std::vector<FileRows>> held;
  std::set<fs::path> stale;
  const auto look = [&] {
    held.clear();
    stale.clear();
    impl_->each_shard(false, [&](const fs::path& path, const SearchShard& shard) {
      impl_->require_same(shard.model);
      std::int64_t current = 0;
      for (const FileRows& rows : shard.files) {
        held[rows.state].push_back(rows);
        if (impl_->is_current(rows.state)) current += rows.rows;
      }
      if (2 * current < shard.rows()) stale.insert(path);
    });
  };
  look();

  // All are read before one is embedded: a fault in the last file is found at once.
  std::vector<FileRows> work;
  std::int64_t total = 0;
  for (const auto& [state, place] : impl_->places) {
    std::int64_t rows = 0;
    for (const FileRows& part : held[state]) rows += part.rows;
    if (rows > 0 && rows == held[state][0].passages) continue;
    FileRows row{.state = state, .rows = 1};
    options.read(files[place], [&row](auto, auto) { return ++row.passages > 0; });
    if (row.passages > rows) work.push_back(row);
    total += row.passages - rows;
  }
  if (work.empty() && stale.empty()) return 0;

  std::optional<DirectoryLock> lock;
  if (!impl_->directory.empty()) {
    make_directories(impl_->directory);
    lock.emplace(impl_->directory);
    look();  // another process may have written it
  }
  for (const fs::path& path : stale) impl_->store(path, impl_->current_part(path));
  if (work.empty()) return 0;
  Embedding embedding(*impl_, options, total);
  bool goes_on = true;
  for (std::size_t i = 0; i < work.size() && goes_on; ++i) {
    FileRows& row = work[i];
    const auto has = [&row](const FileRows& part) {
      return part.first <= row.first && row.first < part.first + part.rows;
    };
    options.read(files[impl_->places.at(row.state)], [&](std::int64_t line, std::string_view text) {
      if (row.first == row.passages) return false;  // the file has grown
      if (std::ranges::none_of(held[row.state], has)) goes_on = embedding.add(row, line, text);
      ++row.first;
      return goes_on;
    });
  }
  goes_on = goes_on && embedding.embed();
  embedding.save();
  return goes_on ? 0 : embedding.remaining();
}

std::vector<SearchHit> SearchIndex::search(const std::string& query, std::int64_t top_k) const {
  require_in(at_least(1), "top_k", static_cast<double>(top_k));
  const at::Tensor asked = impl_->embedders.vectors(impl_->embedders.queries, {query})[0];
  // By negative score, file and place.
  std::map<std::tuple<float, std::size_t, std::int64_t>, SearchHit> best;
  impl_->each_shard(true, [&](const fs::path&, const SearchShard& shard) {
    if (shard.rows() == 0) return;
    const at::Tensor scores = at::matmul(shard.vectors, asked).contiguous();
    const at::Tensor passages = shard.passages.contiguous(), ends = passages.select(1, 1).cumsum(0);
    const auto* const score = scores.const_data_ptr<float>();
    const auto* const passage = passages.const_data_ptr<std::int64_t>();
    const auto* const end = ends.const_data_ptr<std::int64_t>();
    const char* const texts = reinterpret_cast<const char*>(shard.texts.const_data_ptr<std::uint8_t>());
    std::int64_t row = 0;
    for (const FileRows& file : shard.files) {
      const auto place = impl_->places.find(file.state);
      for (std::int64_t i = row; i < row + file.rows && place != impl_->places.end(); ++i) {
        const std::tuple key(-score[i], place->second, file.first + i - row);
        const bool full = static_cast<std::int64_t>(best.size()) == top_k;
        if (full && key > best.rbegin()->first) continue;
        if (full) best.erase(std::prev(best.end()));
        const std::int64_t line = passage[2 * i], bytes = passage[2 * i + 1];
        best[key] = {score[i], place->second, std::get<2>(key), line,
                     std::string(texts + end[i] - bytes, texts + end[i])};
      }
      row += file.rows;
    }
  });
  std::vector<SearchHit> hits;
  for (auto& [key, hit] : best) hits.push_back(std::move(hit));
  return hits;
}

}  // namespace zoo
