#include "data/corpora/corpora.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string_view>

#include <glob.h>
#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/ending.h"
#include "data/base/environment.h"
#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"
#include "data/corpora/child_process.h"
#include "data/corpora/dataset_folder.h"
#include "data/corpora/kjv.h"
#include "data/corpora/sha256.h"

namespace zoo::embedded {
extern const std::string_view kCorpora;  // corpora.json
}

namespace zoo {

namespace fs = std::filesystem;

namespace {

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

// For each ending the program that writes a file's content to its standard output, with its flags.
const std::map<std::string, std::vector<std::string>> kUnpackers{{".gz", {"gzip", "-dcq"}},
                                                                 {".zst", {"zstd", "-dcq"}},
                                                                 {".parquet", {"tzoo-parquet"}},
                                                                 {".arrow", {"tzoo-parquet"}}};

bool is_file_to_unpack(const fs::path& file) { return kUnpackers.contains(ending_of(file)); }

// UTF-8's byte order mark, which each file may have.
bool begins_with_mark(const fs::path& file) {
  std::string first(3, ' ');
  std::ifstream(file).read(first.data(), 3);
  return first == "\xEF\xBB\xBF";
}

std::vector<std::string> unpacker_of(const fs::path& file) {
  if (!is_file_to_unpack(file)) return {"tail", "-c", begins_with_mark(file) ? "+4" : "+1"};
  std::vector<std::string> command = kUnpackers.at(ending_of(file));
  const fs::path beside = fs::canonical("/proc/self/exe").replace_filename(command[0]);
  if (fs::exists(beside)) command[0] = beside;
  return command;
}

// What decides how the content is read: the ending below the packing.
std::string kind_of(const fs::path& file) {
  if (ending_of(file) == ".parquet" || ending_of(file) == ".arrow") return ".jsonl";
  return ending_of(is_file_to_unpack(file) ? file.stem() : file);
}

std::vector<fs::path> files_of(const std::string& dataset) {
  if (fs::exists(dataset)) return {dataset};
  glob_t found{};
  const int fault = ::glob(dataset.c_str(), 0, nullptr, &found);
  std::vector<fs::path> files(found.gl_pathv, found.gl_pathv + (fault == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (files.empty()) throw Error("'", dataset, "': no such file");
  for (const fs::path& file : files) {
    if (kind_of(file) != kind_of(files[0]))
      throw Error(dataset, ": ", files[0], " and ", file, " are of different kinds");
  }
  if (const std::string kind = kind_of(files[0]); files.size() > 1 && (kind == ".tsv" || kind == ".csv"))
    throw Error(dataset, ": several ", kind, " files, each with a header, are not joined; use .jsonl");
  return files;
}

// Changes with each file's place, size and time.
std::string key_of(const std::vector<fs::path>& files) {
  std::ostringstream known;
  for (const fs::path& file : files)
    known << fs::canonical(file) << fs::file_size(file) << ' '
          << fs::last_write_time(file).time_since_epoch().count() << '\n';
  return sha256(known.str()).substr(0, 12);
}

bool ends_in_a_line(const fs::path& file) {
  std::ifstream text(file);
  return !text.seekg(-1, std::ios::end) || text.get() == '\n';
}

void append(const fs::path& file, const fs::path& target) {
  std::vector<std::string> command = unpacker_of(file);
  command.push_back(fs::absolute(file));
  const std::optional<ChildResult> result = run_program(command, target);
  if (!result && unpacker_of(file)[0] == "tzoo-parquet")
    throw Error(file, ": is read by tzoo-parquet, which is built where third_party/install.sh found Arrow");
  if (!result) throw Error(file, ": ", command[0], " is not installed, which unpacks it");
  if (result->exit_code != 0) throw Error(file, ": cannot be unpacked: ", result->reason());
  std::cerr << result->error_output;
}

// Whether a dataset is a pattern of files, such as "shards/*.jsonl", or a file to unpack.
bool is_packed(const std::string& dataset) {
  if (fs::exists(dataset)) return is_file_to_unpack(dataset) && !fs::is_directory(dataset);
  return is_file_to_unpack(dataset) || dataset.find_first_of("*?[") != std::string::npos;
}

// One file in data_directory()/unpacked with the content of all, in the order of their names: texts, or rows
// as .jsonl. It is written at first use and when a file has changed; the rows stream through gzip, zstd or
// tzoo-parquet. Throws Error naming a file that is missing, broken or of another kind than the first.
fs::path unpacked(const std::string& dataset) {
  const std::vector<fs::path> files = files_of(dataset);
  if (files.size() == 1 && !is_file_to_unpack(files[0])) return files[0];
  const fs::path folder = data_directory() / "unpacked";
  const fs::path path = folder / (files[0].stem().string() + "-" + key_of(files) + kind_of(files[0]));
  if (fs::exists(path)) return path;
  std::cerr << "note: unpacking " << dataset << " into " << path << "\n";
  make_directories(folder);
  AtomicFile whole(path);
  for (const fs::path& file : files) {
    if (!ends_in_a_line(whole.written())) std::ofstream(whole.written(), std::ios::app) << '\n';
    const auto size = fs::file_size(whole.written());
    append(file, whole.written());
    if (fs::file_size(whole.written()) == size) std::cerr << "note: " << file << " is empty\n";
  }
  whole.commit();
  return path;
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
  const auto corpus = std::ranges::find(corpora(), name, &Corpus::name);
  if (corpus == corpora().end())
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
  if (std::ranges::count(corpora(), name_or_path, &Corpus::name) > 0) return get_corpus(name_or_path);
  if (is_packed(name_or_path)) return unpacked(name_or_path);
  std::error_code error;
  const fs::file_status status = fs::status(name_or_path, error);
  if (fs::is_directory(status)) {
    if (const auto files = files_of_split(name_or_path, DatasetSplit::kTrain)) return unpacked(*files);
    throw Error("expected a text file, '", name_or_path, "' is a directory; '", name_or_path,
                "/*.jsonl' takes its files");
  }
  if (fs::exists(status)) return name_or_path;
  throw Error("'", name_or_path, "' is neither a corpus (", joined(corpus_names()), ") nor a file",
              did_you_mean(name_or_path, corpus_names()));
}

}  // namespace zoo
