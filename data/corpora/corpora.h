#pragma once

/// @file
/// Use:
///
///     for (const zoo::Corpus& corpus : zoo::corpora())
///       std::cout << corpus.name << ": " << corpus.licence << "\n";
///     const std::string text = zoo::read_text(zoo::get_corpus("kjv"));  // data/corpora/text_file.h

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

/// A text or table with a name; the SHA-256 fixes its bytes.
struct Corpus {
  std::string name, file, description, licence;  // `file`: its name in data_directory()
  std::size_t bytes;
  std::string sha256;        // of get_corpus's text
  std::string url = {};      // "" if it is not downloaded
  std::string package = {};  // the Debian package it comes from; "" if downloaded
  std::string how_to_get;    // one line for `tzoo data list`
};

const std::vector<Corpus>& corpora();
std::vector<std::string> corpus_names();

/// The folder of the corpora: TZOO_DATA_DIR, else XDG_CACHE_HOME/tzoo, else HOME/.cache/tzoo, else an Error.
std::filesystem::path data_directory();

/// The path of a corpus in data_directory(). On first use it is created: from `file` if given, else from the
/// installed package or the URL. The SHA-256 is checked before the file gets its name and at every use.
/// Throws Error for an unknown name, a missing package, a failed download or a wrong hash.
std::filesystem::path get_corpus(const std::string& name,
                                 const std::optional<std::filesystem::path>& file = std::nullopt);

/// The file of `--dataset`: a corpus (see get_corpus), else a text file. A pattern, such as "shards/*.jsonl",
/// and a file that ends in .gz, .zst or .parquet give one file in data_directory()/unpacked with the content
/// of all; so does a directory with a split "train" (dataset_folder.h). "./NAME" is a file even if a corpus
/// has that name. Throws Error if it is neither, and naming a file that is broken or of another kind.
std::filesystem::path resolve_dataset(const std::string& name_or_path);

}  // namespace zoo
