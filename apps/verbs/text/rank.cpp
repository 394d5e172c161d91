#include "models/tasks/search/rank.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"

namespace zoo {
namespace {

constexpr std::size_t kDocumentsAtOnce = 4096;

struct RankFlags {
  ModelPath model;
  TextFlags text{.text_flag = "document", .input_flag = "documents"};
  RankRequest request;
  std::optional<std::string> query_prompt_name, document_prompt_name;
  bool json = true;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, RankFlags& values) {
  Flags flags(arguments.command,
              "Orders documents by how well they answer a query, with a cross-encoder or an embedding model. "
              "Prints one JSON object per document, the best first.");
  add_model_flag(flags, values.model);
  flags.add("query", values.request.query, "what is asked", {.required = true});
  flags.add("document", values.text.texts, "a document");
  flags.add("documents", values.text.input,
            "file with one document per line, or a table with objects {\"document\": …} or {\"text\": …} if "
            "its name ends in .jsonl, columns if it ends in .tsv or .csv; - reads standard input",
            {.placeholder = "FILE|-"});
  flags.add("top_k", values.request.top_k, "number of documents to print; default: all", at_least(1));
  flags.add("query_prompt_name", values.query_prompt_name,
            "the model's prompt of this name before the query; default: query, where an embedding model has "
            "it; a cross-encoder's default_prompt_name",
            {.placeholder = "NAME"});
  flags.add("document_prompt_name", values.document_prompt_name,
            "embedding models: the same before each document; default: document, passage or corpus",
            {.placeholder = "NAME"});
  flags.add("batch_size", values.request.batch_size, "documents per batch", between(1, kMostBatchRows));
  flags.add("json", values.json, "print JSON; there is no other output");
  flags.add_weights(values.compute);
  flags.add_compute(values.compute);
  flags.example("tzoo rank --model MiniLM --query \"Who made the light?\" --documents verses.txt --top_k 5");
  if (!flags.parse(arguments)) return false;
  if (!values.json) throw UsageError("--no_json: rank prints nothing but JSON");
  return true;
}

// A directory that pools is an embedding model whatever its head.
std::vector<RankedDocument> ranked(const RankFlags& flags, const RunPass& run) {
  if (!SentenceConfig::pools(flags.model)) {
    const CheckpointConfig checkpoint = read_checkpoint_config(flags.model);
    if (checkpoint.head == Head::kSequenceClassification) {
      if (flags.document_prompt_name)
        throw UsageError("--document_prompt_name: a cross-encoder has no prompts of documents; leave it out");
      RankRequest request = flags.request;
      request.prompt_name = flags.query_prompt_name;
      return rank(load_text_model(checkpoint, flags.compute), request, run);
    }
  }
  return rank(
      load_search_embedders(flags.model, flags.compute, flags.query_prompt_name, flags.document_prompt_name),
      flags.request, run);
}

}  // namespace

int run_rank(const Arguments& arguments) {
  RankFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  apply_threads(flags.compute);
  TextInput input(flags.text, {{"document"}});
  input.refuse_empty_lines();
  std::vector<std::int64_t> lines;
  for (auto texts = input.next(kDocumentsAtOnce); !texts.empty(); texts = input.next(kDocumentsAtOnce)) {
    flags.request.documents.insert(flags.request.documents.end(), texts.begin(), texts.end());
    lines.insert(lines.end(), input.lines().begin(), input.lines().end());
  }
  if (lines.empty()) return 0;
  CutTexts cut;
  const std::vector<RankedDocument> documents = ranked(flags, cut.run());
  cut.note();
  const auto answers = answers_json(flags.request, documents);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    nlohmann::ordered_json json = answers[i];
    if (const std::int64_t line = lines[documents[i].index]; line > 0) json["line"] = line;
    std::cout << json_text(json) << "\n";
  }
  return 0;
}

}  // namespace zoo
