#include "models/tasks/search/search.h"

#include <iostream>
#include <set>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/command/progress.h"
#include "apps/command/visible_text.h"
#include "apps/hub/hub_cache.h"
#include "apps/training/stop_signal.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/ending.h"
#include "data/base/json.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownBytes = 300;
constexpr double kLongEmbedding = 5, kLineEvery = 10;  // seconds

// The files of --documents. Those of folders are passed over if they cannot be read as text or a table.
class SearchedFiles {
 public:
  // Without the folder of the index.
  SearchedFiles(const std::vector<std::string>& documents, const fs::path& index) {
    for (const fs::path path : documents) {
      if (fs::is_directory(path)) add_folder(path, index);
      else if (fs::exists(path)) files_.insert(path), named_.insert(path);
      else throw Error("--documents: there is no ", path);
    }
  }

  std::vector<fs::path> sorted() const { return {files_.begin(), files_.end()}; }

  void read(const fs::path& path, const TakePassage& take) {
    if (passed_over_.contains(path)) return;
    bool reads = true;  // else the error is the taker's
    const auto watched = [&](std::int64_t line, std::string_view text) {
      reads = false;
      const bool goes_on = take(line, text);
      reads = true;
      return goes_on;
    };
    try {
      if (is_table(path)) read_table(path, watched);
      else read_passages(path, watched);
    } catch (const Error& error) {
      if (!reads || named_.contains(path)) throw;
      if (passed_over_.empty()) fault_ = error.what();
      passed_over_.insert(path);
    }
  }

  void note() const {
    if (!passed_over_.empty())
      std::cerr << "note: passed over " << passed_over_.size() << " of " << files_.size()
                << " files; the first: " << fault_ << "\n";
  }

 private:
  void add_folder(const fs::path& folder, const fs::path& index) {
    auto each = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied);
    for (; each != fs::recursive_directory_iterator(); ++each) {
      const fs::path& path = each->path();
      std::error_code error;  // such as a link to itself
      const bool is_index = !index.empty() && fs::exists(index) && fs::equivalent(path, index, error);
      if (is_index || path.filename().string().starts_with(".")) each.disable_recursion_pending();
      else if (each->is_regular_file(error) && each->file_size(error) > 0 && !error) files_.insert(path);
    }
  }

  static void read_table(const fs::path& path, const TakePassage& take) {
    TextInput input({.input = path.string(), .input_flag = "documents", .has_notes = false}, {{"document"}});
    for (auto texts = input.next(1024); !texts.empty(); texts = input.next(1024))
      for (std::size_t i = 0; i < texts.size(); ++i)
        if (!texts[i].empty() && !take(input.lines()[i], texts[i])) return;
  }

  std::set<fs::path> files_, named_, passed_over_;
  std::string fault_;
};

void print_for_people(const SearchHit& hit, const fs::path& file) {
  std::cout << decimal(hit.score, 4) << "  " << visible_text(file.string()) << ":" << hit.line << "\n";
  for (const std::string& line : wrapped_lines(excerpt(hit.text, kShownBytes), paragraph_width() - 4))
    std::cout << "    " << visible_text(line) << "\n";
}

}  // namespace

int run_search(const Arguments& arguments) {
  ModelPath model;
  std::vector<std::string> documents;
  std::string query;
  fs::path folder;  // of the index
  std::int64_t top_k = 10;
  std::optional<std::string> query_prompt_name, document_prompt_name;
  UpdateOptions update;
  bool json = false;
  ComputeOptions compute;
  Flags flags(
      arguments.command,
      "Finds the passages of texts that answer a query, with an embedding model: compares the query with "
      "the paragraphs of text files and the rows of tables.");
  flags.group("Input");
  add_model_flag(flags, model);
  flags.add(
      "documents", documents,
      "a folder with all below it, or a file. A paragraph of a text is a passage, as is a row of a table, "
      "a file whose name ends in .jsonl, .tsv or .csv, as `tzoo rank --documents` reads it",
      {.placeholder = "DIR|FILE", .required = true});
  flags.add("query", query, "what is asked", {.required = true});
  flags.add("index", folder,
            "folder that keeps the passages and their vectors: only files that are new or have changed are "
            "embedded "
            "the next time",
            {.placeholder = "DIR"});
  flags.group("Embedding");
  flags.add("query_prompt_name", query_prompt_name,
            "the model's prompt of this name before the query; default: query", {.placeholder = "NAME"});
  flags.add("document_prompt_name", document_prompt_name,
            "the same before each passage; default: document, passage or corpus", {.placeholder = "NAME"});
  flags.add("batch_size", update.batch_size, "passages per batch", between(1, kMostBatchRows));
  flags.group("Output");
  flags.add("top_k", top_k, "number of passages to print", at_least(1));
  flags.add("json", json, "print an object {\"score\", \"file\", \"line\", \"text\"} per passage");
  flags.example(
      "tzoo search --model MiniLM --documents notes --query \"Who made the light?\" --index notes.index");
  if (!parse_with_compute(flags, compute, arguments)) return 0;
  SearchedFiles searched(documents, folder);
  const std::vector<fs::path> files = searched.sorted();
  if (!SentenceConfig::pools(model) && scores_pairs(read_checkpoint_config(model)))
    throw Error("--model: ", model, " is a cross-encoder, which gives no vectors; use tzoo rank");
  SearchIndex index(load_search_embedders(model, compute, query_prompt_name, document_prompt_name), folder);

  CutTexts cut;
  std::optional<Progress> bar;
  const Terminal terminal = standard_error();
  const double start = terminal.clock();
  double printed = start;
  update.run = cut.run();
  update.read = [&](const fs::path& file, const TakePassage& take) { searched.read(file, take); };
  update.progress = [&](std::int64_t done, std::int64_t total) {
    if (!bar) bar.emplace(total, "passages");
    bar->update(done);
    if (!bar->on_terminal() && terminal.clock() > printed + kLineEvery) {
      std::cerr << "embedded " << done << " of " << total << " passages\n";
      printed = terminal.clock();
    }
    return StopSignal::received() == 0;
  };
  {
    const StopSignal stop;
    const std::int64_t left = index.update(files, update);
    bar.reset();
    searched.note();
    cut.note();
    if (left > 0) {
      std::cerr << "stopped: " << left << " passages remain to be embedded"
                << (folder.empty() ? "" : "; the same command goes on") << "\n";
      return 128 + StopSignal::received();
    }
  }
  if (folder.empty() && terminal.clock() - start > kLongEmbedding)
    std::cerr << "note: with --index DIR the next search embeds only what has changed\n";
  const std::vector<SearchHit> hits = index.search(query, top_k);
  if (hits.empty()) std::cerr << "note: --documents holds no passages\n";
  for (const SearchHit& hit : hits) {
    if (!json && &hit != &hits.front()) std::cout << "\n";
    if (json)
      std::cout << json_text(nlohmann::ordered_json{{"score", hit.score},
                                                    {"file", files[hit.file].string()},
                                                    {"line", hit.line},
                                                    {"text", hit.text}})
                << "\n";
    else print_for_people(hit, files[hit.file]);
  }
  return 0;
}

}  // namespace zoo
