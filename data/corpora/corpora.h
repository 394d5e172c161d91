#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

/// A text or a table that is known by name; its bytes are fixed by the SHA-256.
struct Corpus {
  std::string name, file, description, licence;  // `file`: what it is called in data_directory()
  std::size_t bytes;
  std::string sha256;      // of the text as get_corpus gives it
  std::string url;         // "" where it is not downloaded
  std::string package;     // of Debian, that it comes out of; "" where it is downloaded
  std::string how_to_get;  // one line for `tzoo data list`
};

const std::vector<Corpus>& corpora();
std::vector<std::string> corpus_names();

/// The folder of the corpora's texts: TZOO_DATA_DIR, else XDG_CACHE_HOME/tzoo, else HOME/.cache/tzoo.
/// Throws Error if none of the three is set.
std::filesystem::path data_directory();

/// The file of a named corpus in data_directory(), made there on first use: from `file` where the caller has
/// a copy, else from the installed package or the URL. The SHA-256 is checked before the file appears under
/// its name and at every later use. Throws Error for an unknown name, a missing package, a failed download or
/// a wrong hash.
std::filesystem::path get_corpus(const std::string& name,
                                 const std::optional<std::filesystem::path>& file = std::nullopt);

/// What `--dataset` names: a corpus (see get_corpus) or else a text file. A file that is called like a corpus
/// is meant by "./NAME". Throws Error if it is neither.
std::filesystem::path resolve_dataset(const std::string& name_or_path);

}  // namespace zoo
