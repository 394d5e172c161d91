#include "models/tasks/search/rank.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"

namespace zoo {

int run_rank(const Arguments& arguments) {
  ModelPath model;
  TextFlags text{.text_flag = "document", .input_flag = "documents"};
  RankRequest request;
  std::optional<std::string> query_prompt_name, document_prompt_name;
  bool json = true;
  ComputeOptions compute;
  Flags flags(arguments.command,
              "Orders documents by how well they answer a query, with a cross-encoder or an embedding model. "
              "Prints one JSON object per document, the best first.");
  add_model_flag(flags, model);
  flags.add("query", request.query, "what is asked", {.required = true});
  flags.add("document", text.texts, "a document");
  flags.add("documents", text.input,
            "file with one document per line, or a table with objects {\"document\": …} or {\"text\": …} if "
            "its name ends in .jsonl, columns if it ends in .tsv or .csv; - reads standard input",
            {.placeholder = "FILE|-"});
  flags.add("top_k", request.top_k, "number of documents to print; default: all", at_least(1));
  flags.add("query_prompt_name", query_prompt_name,
            "the model's prompt of this name before the query; default: query, where an embedding model has "
            "it; a cross-encoder's default_prompt_name",
            {.placeholder = "NAME"});
  flags.add("document_prompt_name", document_prompt_name,
            "embedding models: the same before each document; default: document, passage or corpus",
            {.placeholder = "NAME"});
  flags.add("batch_size", request.batch_size, "documents per batch", between(1, kMostBatchRows));
  flags.add("json", json, "print JSON; there is no other output");
  flags.example("tzoo rank --model MiniLM --query \"Who made the light?\" --documents verses.txt --top_k 5");
  if (!parse_with_compute(flags, compute, arguments)) return 0;
  if (!json) throw UsageError("--no_json: rank prints nothing but JSON");
  constexpr std::size_t kDocumentsAtOnce = 4096;
  TextInput input(text, {{"document"}}, /*takes_empty=*/false);
  std::vector<std::int64_t> lines;
  for (auto texts = input.next(kDocumentsAtOnce); !texts.empty(); texts = input.next(kDocumentsAtOnce)) {
    request.documents.insert(request.documents.end(), texts.begin(), texts.end());
    lines.insert(lines.end(), input.lines().begin(), input.lines().end());
  }
  if (lines.empty()) return 0;
  CutTexts cut;
  std::vector<RankedDocument> documents;
  // A directory that pools is an embedding model whatever its head.
  std::optional<CheckpointConfig> checkpoint;
  if (!SentenceConfig::pools(model)) checkpoint = read_checkpoint_config(model);
  if (checkpoint && checkpoint->head == Head::kSequenceClassification) {
    if (document_prompt_name)
      throw UsageError("--document_prompt_name: a cross-encoder has no prompts of documents; leave it out");
    request.prompt_name = query_prompt_name;
    documents = rank(load_text_model(*checkpoint, compute), request, cut.run());
  } else {
    documents = rank(load_search_embedders(model, compute, query_prompt_name, document_prompt_name), request,
                     cut.run());
  }
  cut.note();
  const auto answers = answers_json(request, documents);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    nlohmann::ordered_json answer = answers[i];
    if (const std::int64_t line = lines[documents[i].index]; line > 0) answer["line"] = line;
    std::cout << json_text(answer) << "\n";
  }
  return 0;
}

}  // namespace zoo
