#include "data/corpora/corpora.h"

#include "data/base/atomic_file.h"
#include "data/base/environment.h"
#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"
#include "data/corpora/child_process.h"
#include "data/corpora/kjv.h"
#include "data/corpora/sha256.h"
#include "data/corpora/unpacked_files.h"

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
  static const std::vector<Corpus> kCorpora = {
      {.name = "kjv",
       .file = "kjv.txt",
       .description = "The King James Bible, Genesis to Revelation: a heading a chapter, a line a verse",
       .licence = "public domain (copyright expired; Crown patent in the United Kingdom)",
       .bytes = 4153204,
       .sha256 = "83688d663d3ec6e207d4f5598f159ae6673aeee81afc8c111773e3fcb1bca1f1",
       .package = "bible-kjv",
       .how_to_get = "from Debian's package bible-kjv (apt-get install bible-kjv)"},
      {.name = "tinyshakespeare",
       .file = "tinyshakespeare.txt",
       .description = "40,000 lines of Shakespeare's plays (Karpathy's char-rnn, 2015)",
       .licence = "public domain",
       .bytes = 1115394,
       .sha256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
       .url = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
       .how_to_get = "downloaded, or: tzoo data get tinyshakespeare --file input.txt"},
      {.name = "kjv-groups",
       .file = "kjv-groups.tsv",
       .description = "The verses of kjv labelled with their group of books, nine chapters of ten",
       .licence = "as kjv",
       .bytes = 3941053,
       .sha256 = "98f3274753821c54c9cecb7fb92d0baaf4098d3d07ba80552619a57c8cd465ec",
       .package = "bible-kjv",
       .how_to_get = "from Debian's package bible-kjv"},
      {.name = "kjv-groups-held-out",
       .file = "kjv-groups-held-out.tsv",
       .description = "The same of every tenth chapter, to evaluate on",
       .licence = "as kjv",
       .bytes = 421120,
       .sha256 = "d62625f634d29201fe2a2b7b4089d3ed64d804c5578f487f5d04673da1626146",
       .package = "bible-kjv",
       .how_to_get = "from Debian's package bible-kjv"},
  };
  return kCorpora;
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
