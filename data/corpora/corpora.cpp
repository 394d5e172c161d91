#include "data/corpora/corpora.h"

#include <string_view>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/environment.h"
#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"
#include "data/corpora/child_process.h"
#include "data/corpora/kjv.h"
#include "data/corpora/sha256.h"
#include "data/corpora/unpacked_files.h"

namespace zoo::embedded {
extern const std::string_view kCorpora;  // corpora.json
}

namespace zoo {

namespace fs = std::filesystem;

namespace {

const Corpus* find_corpus(const std::string& name) {
  for (const Corpus& corpus : corpora())
    if (corpus.name == name) return &corpus;
  return nullptr;
}

std::string download(const Corpus& corpus) {
  const std::vector<std::vector<std::string>> programs = {
      {"curl", "--fail", "--silent", "--show-error", "--location", "--connect-timeout", "20", "--max-time",
       "600", corpus.url},
      {"wget", "--no-verbose", "--tries=1", "--timeout=20", "--output-document=-", corpus.url}};
  for (const std::vector<std::string>& program : programs) {
    auto result = run_program(program);
    if (!result) continue;
    if (result->exit_code == 0) return std::move(result->output);
    throw Error("cannot download ", corpus.url, ": ", result->reason(),
                "; if you have the file: tzoo data get ", corpus.name, " --file FILE");
  }
  throw Error("cannot download ", corpus.url, ": neither curl nor wget is installed",
              "; if you have the file: tzoo data get ", corpus.name, " --file FILE");
}

void check_hash(const Corpus& corpus, const std::string& text, const std::string& source) {
  const std::string found = sha256(text);
  if (found == corpus.sha256) return;
  throw Error(source, " is not the corpus ", corpus.name, ": expected SHA-256 ", corpus.sha256, " (",
              corpus.bytes, " bytes), found ", found, " (", text.size(), " bytes)");
}

// Extracts the text from its installed package.
std::string extract(const Corpus& corpus) {
  if (corpus.name == "kjv") return extract_kjv();
  const bool held_out = corpus.name.ends_with("-held-out");
  return label_kjv(extract_kjv(), held_out ? ChapterSet::kHeldOut : ChapterSet::kTraining);
}

std::string obtain(const Corpus& corpus, const std::optional<fs::path>& file) {
  std::string text, source;
  if (file) {
    text = read_file(*file);
    source = file->string();
  } else if (!corpus.url.empty()) {
    text = download(corpus);
    source = corpus.url;
  } else {
    text = extract(corpus);
    source = "the text of the installed package " + corpus.package;
  }
  check_hash(corpus, text, source);
  return text;
}

}  // namespace

const std::vector<Corpus>& corpora() {
  static const std::vector<Corpus> all = [] {
    std::vector<Corpus> read;
    for (const nlohmann::json& each : nlohmann::json::parse(embedded::kCorpora))
      read.push_back({each["name"], each["file"], each["description"], each["licence"], each["bytes"],
                      each["sha256"], each.value("url", ""), each.value("package", ""), each["how_to_get"]});
    return read;
  }();
  return all;
}

std::vector<std::string> corpus_names() {
  std::vector<std::string> names;
  for (const Corpus& corpus : corpora()) names.push_back(corpus.name);
  return names;
}

fs::path data_directory() {
  if (const std::string own = environment("TZOO_DATA_DIR"); !own.empty()) return own;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "tzoo";
  if (const std::string home = environment("HOME"); !home.empty()) return fs::path(home) / ".cache" / "tzoo";
  throw Error("no directory for the corpora: set TZOO_DATA_DIR (XDG_CACHE_HOME and HOME are unset too)");
}

fs::path get_corpus(const std::string& name, const std::optional<fs::path>& file) {
  const Corpus* corpus = find_corpus(name);
  if (corpus == nullptr)
    throw Error("unknown corpus '", name, "'; the corpora are ", joined(corpus_names()),
                did_you_mean(name, corpus_names()));
  const fs::path path = data_directory() / corpus->file;
  std::error_code missing;
  const bool cached =
      fs::file_size(path, missing) == corpus->bytes && sha256(read_file(path)) == corpus->sha256;
  if (cached && !file) return path;
  const std::string text = obtain(*corpus, file);
  make_directories(path.parent_path());
  write_file(path, text);
  return path;
}

fs::path resolve_dataset(const std::string& name_or_path) {
  if (find_corpus(name_or_path) != nullptr) return get_corpus(name_or_path);
  if (is_packed(name_or_path)) return unpacked(name_or_path);
  std::error_code error;
  const fs::file_status status = fs::status(name_or_path, error);
  if (fs::is_directory(status))
    throw Error("expected a text file, '", name_or_path, "' is a directory; '", name_or_path,
                "/*.jsonl' takes its files");
  if (fs::exists(status)) return name_or_path;
  throw Error("'", name_or_path, "' is neither a corpus (", joined(corpus_names()), ") nor a file",
              did_you_mean(name_or_path, corpus_names()));
}

}  // namespace zoo
