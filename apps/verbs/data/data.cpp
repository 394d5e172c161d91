#include <array>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/progress.h"
#include "apps/command/terminal.h"
#include "apps/command/tokenizer_choice.h"
#include "apps/training/batches/document_encoder.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/ending.h"
#include "data/base/json.h"
#include "data/corpora/corpora.h"
#include "data/corpora/text_file.h"
#include "data/examples/generators.h"
#include "data/tokens/token_dataset.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

int list(const Arguments& arguments) {
  bool as_json = false;
  Flags flags(arguments.command, "Lists the corpora and the toy sets.");
  flags.add("json", as_json, "print JSON, with the SHA-256 of each corpus");
  flags.example("tzoo data list");
  if (!flags.parse(arguments)) return 0;
  if (as_json) {
    json corpora_list = json::array(), toys = json::array();
    for (const Corpus& corpus : corpora())
      corpora_list.push_back({{"name", corpus.name},
                              {"description", corpus.description},
                              {"licence", corpus.licence},
                              {"bytes", corpus.bytes},
                              {"sha256", corpus.sha256},
                              {"url", corpus.url}});
    for (const ToySet& set : toy_sets())
      toys.push_back({{"name", set.name}, {"description", set.description}, {"example", set.example}});
    std::cout << json_text(json{{"corpora", corpora_list}, {"toy_sets", toys}}, 2) << "\n";
    return 0;
  }
  std::cout << paragraph("Corpora ('tzoo data get NAME'; --dataset and --input take the name)");
  Table texts({{"  name"}, number("bytes"), {"text"}, {"where it comes from"}});
  for (const Corpus& corpus : corpora())
    texts.row({"  " + corpus.name, with_separators(static_cast<std::int64_t>(corpus.bytes)),
               corpus.description, corpus.how_to_get});
  texts.print(std::cout);
  std::cout << "\nToy sets ('tzoo data make NAME --count N')\n";
  Table toys({{"  name"}, {"lines"}, {"for example"}});
  for (const ToySet& set : toy_sets()) {
    const std::vector<std::string_view> parts = split(set.example, '\t');
    toys.row({"  " + set.name, set.description,
              joined(std::vector<std::string>(parts.begin(), parts.end()), " | ")});
  }
  toys.print(std::cout);
  return 0;
}

int get(const Arguments& arguments) {
  std::string name;
  std::optional<fs::path> file, output;
  Flags flags(arguments.command,
              "Fetches a corpus, checks its SHA-256 and prints the path of its file. The file is kept in "
              "$TZOO_DATA_DIR; where that is not set, in the directory tzoo of $XDG_CACHE_HOME or ~/.cache.");
  flags.positional("name", name, "name of a corpus from 'tzoo data list'",
                   {.choices = corpus_names(), .required = true});
  flags.add("file", file, "use this copy of the corpus instead of downloading it", {.placeholder = "FILE"});
  flags.add("output", output, "also write the text to this file");
  flags.example("tzoo data get tinyshakespeare --file input.txt");
  if (!flags.parse(arguments)) return 0;
  fs::path path = get_corpus(name, file);
  if (output) {
    write_file(*output, read_file(path));
    path = *output;
  }
  std::cout << path.string() << "\n";
  return 0;
}

int make(const Arguments& arguments) {
  std::string name;
  std::int64_t count = 1000, seed = 1337;
  bool pairs = false;
  std::optional<fs::path> output;
  Flags flags(arguments.command,
              "Generates the examples of a toy set, one per line. The same name, seed and count always give "
              "the same lines.");
  flags.positional("name", name, "name of a toy set from 'tzoo data list'",
                   {.choices = toy_set_names(), .required = true});
  flags.add("count", count, "number of lines", at_least(1));
  flags.add("seed", seed, "seed of the random generator", {.range = at_least(0), .any_size = true});
  flags.add("pairs", pairs, "put a tab between question and answer: a table for 'tzoo train --task seq2seq'");
  flags.add("output", output, "file to write; default: standard output");
  flags.example("tzoo data make addition --count 10000 --output addition.txt");
  if (!flags.parse(arguments)) return 0;
  const auto number = static_cast<std::uint64_t>(seed);
  const std::string lines = pairs ? make_toy_pairs(name, count, number) : make_toy_set(name, count, number);
  if (output) write_file(*output, lines);
  else std::cout << lines;
  return 0;
}

int prepare(const Arguments& arguments) {
  std::string dataset, choice = "char";
  std::int64_t vocab_size = 2000;
  std::optional<std::int64_t> threads;
  fs::path out_dir;
  bool overwrite = false;
  Flags flags(arguments.command,
              "Turns a text into token files for training: train.bin, val.bin (the last tenth of the text, "
              "of .jsonl 16 MB at most) "
              "and meta.json. The tokenizer's files are saved beside them. The texts of a .jsonl file are "
              "documents, each with the tokenizer's end token after it.");
  flags.positional("dataset", dataset,
                   "text file, .jsonl or .parquet file with a 'text' in each line, these as .gz or .zst, a "
                   "pattern of them, or "
                   "name of a corpus from 'tzoo data list'",
                   {.placeholder = "FILE|CORPUS", .suggestions = corpus_names(), .required = true});
  flags.add(
      "tokenizer", choice, "kind of tokenizer to train on the text, or a directory with a trained one",
      {.placeholder = "char|byte|byte_bpe|wordpiece|sentencepiece|DIR", .suggestions = kTokenizerKinds});
  flags.add("vocab_size", vocab_size, "vocabulary size of byte_bpe, wordpiece and sentencepiece",
            at_least(8));
  flags.add("threads", threads,
            "threads that encode, each with some megabytes of the text; default: one per core",
            between(1, 1024));
  flags.add("out_dir", out_dir, "directory for the files", {.placeholder = "DIR", .required = true});
  flags.add("overwrite", overwrite, "replace a tokenizer or token files that out_dir already holds");
  flags.example("tzoo data prepare kjv --tokenizer char --out_dir kjv-char");
  if (!flags.parse(arguments)) return 0;
  if (!overwrite && (has_tokenizer(out_dir) || is_token_dataset(out_dir.string())))
    throw Error("--out_dir: ", out_dir,
                " already holds a tokenizer or token files; choose another directory, or ",
                "replace them with --overwrite");
  const fs::path path = resolve_dataset(dataset);
  const TextFile file(path);
  std::string name = path == dataset ? dataset : dataset + " as " + path.string();
  FileColumns columns{.renames = false};
  const bool has_rows = has_columns(path), has_documents = is_table(path);
  std::string rows;
  if (has_rows) {
    rows = DocumentEncoder::lines_of_table(file.text(), name, columns);
    name += " as .jsonl";
  }
  const std::string_view text = has_rows ? rows : file.text();
  const auto tokenizer =
      has_documents
          ? choose_tokenizer(choice, DocumentEncoder::sample(text, name, {.renames = false}), vocab_size)
          : choose_tokenizer(choice, text, vocab_size);
  std::optional<DocumentEncoder> documents;
  if (has_documents) documents.emplace(text, name, *tokenizer, FileColumns{.renames = false});
  require_same_kind(out_dir, tokenizer->kind());
  make_directories(out_dir);
  remove_token_dataset(out_dir.string());  // before the tokenizer that its ids are of is replaced
  tokenizer->save(out_dir);
  constexpr std::size_t kMegabyte = 1'000'000;
  Progress progress(static_cast<std::int64_t>(text.size() / kMegabyte), "MB");
  const TokenCounts tokens = write_text_as_tokens(
      out_dir, text, documents ? DocumentEncoder::validation_begin(text) : validation_begin(text), *tokenizer,
      documents ? documents->encoder() : TextEncoder::of(*tokenizer),
      static_cast<std::size_t>(threads.value_or(0)),
      [&](std::size_t bytes) { progress.update(static_cast<std::int64_t>(bytes / kMegabyte)); });
  progress.clear();
  if (documents && !has_rows) columns = documents->names();
  if (columns.empty_rows > 0)
    std::cerr << "note: " << columns.empty_rows << " rows have an empty text and are left out\n";
  if (!columns.ignored.empty()) {
    const std::set<std::string>& names = columns.ignored;
    std::cerr << "note: " << dataset << ": ignoring " << joined(std::vector(names.begin(), names.end()))
              << "; only 'text' is read\n";
  }
  if (flags.given("vocab_size")) std::cerr << smaller_vocabulary(choice, vocab_size, tokenizer->vocab_size());
  Table table({{""}, number(""), {""}});
  const auto count = [](std::size_t value) { return with_separators(static_cast<std::int64_t>(value)); };
  table.row({"vocabulary", with_separators(tokenizer->vocab_size()), std::string(tokenizer->kind())});
  table.row({"train.bin", count(tokens.train), "tokens"});
  table.row({"val.bin", count(tokens.val), "tokens"});
  table.print(std::cout);
  return 0;
}

constexpr std::array kDataActions{
    Verb{"list", "Actions", "list the corpora and the toy sets", list},
    Verb{"get", "Actions", "fetch a corpus and print its path", get},
    Verb{"make", "Actions", "generate the lines of a toy set", make},
    Verb{"prepare", "Actions", "turn a text into token files for training", prepare},
    Verb{"negatives", "Actions", "add hard negatives to pairs of texts", mine_negatives},
};

}  // namespace

int run_data(const Arguments& arguments) {
  return dispatch(arguments, "Fetches and generates datasets, and turns texts into token files for training.",
                  kDataActions);
}

}  // namespace zoo
