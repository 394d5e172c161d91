#pragma once

/// @file
/// Use:
///
///     const std::vector<std::filesystem::path> files{"notes/light.txt", "notes/earth.txt"};
///     zoo::SearchIndex index(zoo::load_search_embedders("all-MiniLM-L6-v2"), "notes.index");
///     index.update(files);  // embeds what is new or has changed
///     for (const zoo::SearchHit& hit : index.search("Who made the light?"))
///       std::cout << hit.score << " " << files[hit.file] << ":" << hit.line << " " << hit.text << "\n";

#include <memory>

#include "models/tasks/search/passages.h"
#include "models/tasks/search/rank.h"

namespace zoo {

struct UpdateOptions {
  std::int64_t batch_size = 32;
  ReadPassages read = read_passages;  // called twice for a file, first to count its passages
  RunPass run = run_at_once;
  /// Called with the number of passages that have been embedded and of those that are to be; false stops.
  std::function<bool(std::int64_t done, std::int64_t total)> progress;
  std::int64_t shard_rows = 65536;
};

struct SearchHit {
  float score = 0.0F;
  std::size_t file = 0;                // in the list of update()
  std::int64_t passage = 0, line = 0;  // in the file, counted from 0; where it begins, counted from 1
  std::string text;                    // as it was embedded, whatever the file contains now
};

/// Exact search by meaning: the passages of files with their vectors, each of which is compared with the
/// query. A directory keeps them in safetensors files with checksums (shards), which search() maps one at a
/// time. They are replaced atomically, the last at least once a minute, so that a killed process loses no
/// more than that. Several processes may search at once, while one updates.
class SearchIndex {
 public:
  /// Without a directory everything is kept in memory.
  explicit SearchIndex(SearchEmbedders embedders, std::filesystem::path directory = {});
  ~SearchIndex();

  /// Makes these the files to search. Embeds those that the index lacks and those whose size or time of
  /// modification has changed. A shard is rewritten if more than half of it is of files that have changed or
  /// no longer exist. Returns how many passages remain because options.progress stopped it. Throws Error for
  /// a file that cannot be read, a damaged shard, and a directory that another process updates; FieldError
  /// for one ("index") that another model, prompt or number format made, and a batch_size below 1.
  std::int64_t update(const std::vector<std::filesystem::path>& files, const UpdateOptions& options = {});

  /// At most top_k passages, the best first; of equal ones the first by file and place. Throws Error for a
  /// damaged shard, FieldError for a top_k below 1.
  std::vector<SearchHit> search(const std::string& query, std::int64_t top_k = 10) const;

 private:
  struct Impl;
  class Embedding;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zoo
