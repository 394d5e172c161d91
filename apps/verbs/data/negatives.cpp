#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/json.h"
#include "data/corpora/corpora.h"
#include "data/corpora/text_file.h"
#include "data/examples/sentence_file.h"
#include "models/tasks/search/hard_negatives.h"

namespace zoo {
int mine_negatives(const Arguments& arguments) {
  ModelPath model;
  std::string dataset, columns;
  std::filesystem::path output;
  HardNegativeOptions mining;
  std::optional<std::string> query_prompt_name, document_prompt_name;
  ComputeOptions compute;
  Flags flags(
      arguments.command,
      "Adds hard negatives to pairs of texts: other pairs' positives that the model finds similar to the "
      "anchor. Training an embedding model or a ranker on them teaches what it confuses now.");
  add_model_flag(flags, model);
  flags.add("dataset", dataset, "table of anchor (or query) and positive: .jsonl, .tsv, .csv or .parquet",
            {.placeholder = "FILE", .required = true});
  flags.add("columns", columns, "names in a table with other names, such as anchor=question",
            {.placeholder = "OURS=THEIRS,..."});
  flags.add(
      "output", output,
      ".jsonl file to write: anchor, positive, negative_1 and so on; pairs without enough negatives are "
      "left out",
      {.placeholder = "FILE", .required = true});
  flags.group("Choice");
  flags.add("num_negatives", mining.count, "negatives for each pair", between(1, 1000));
  flags.add("range_min", mining.skipped,
            "most similar texts to leave out, which may be answers that nobody has marked", at_least(0));
  flags.add("absolute_margin", mining.absolute_margin,
            "a negative is less similar than the positive by at least this", at_least(0));
  flags.add("relative_margin", mining.relative_margin,
            "the same as a share of the positive's similarity, such as 0.05", at_least(0));
  flags.group("Embedding");
  flags.add("query_prompt_name", query_prompt_name,
            "the model's prompt of this name before each anchor; default: query, where it has it",
            {.placeholder = "NAME"});
  flags.add("document_prompt_name", document_prompt_name,
            "the same before each positive; default: document, passage or corpus", {.placeholder = "NAME"});
  flags.add("batch_size", mining.batch_size, "texts per batch", between(1, kMostBatchRows));
  flags.example("tzoo data negatives --model MiniLM --dataset pairs.tsv --output triplets.jsonl");
  if (!parse_with_compute(flags, compute, arguments)) return 0;
  const std::filesystem::path path = resolve_dataset(dataset);
  const TextFile file(path);
  FileColumns names = columns.empty() ? FileColumns() : FileColumns::read(columns);
  const std::vector<SentenceExample> pairs = parse_sentences(file.text(), path.string(), names);
  std::vector<std::string> anchors, positives;
  for (const SentenceExample& pair : pairs) {
    if (pair.score || pair.texts.size() != 2)
      throw Error(path, ", line ", pair.line, ": expected an anchor and a positive, found ",
                  pair.score ? "a score" : "negatives");
    anchors.push_back(pair.texts[0]);
    positives.push_back(pair.texts[1]);
  }
  const SearchEmbedders embedders =
      load_search_embedders(model, compute, query_prompt_name, document_prompt_name);
  CutTexts cut;
  const auto mined = hard_negatives(embedders, anchors, positives, mining, cut.run());
  cut.note();
  std::string lines;
  std::int64_t written = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (std::ssize(mined[i]) < mining.count) continue;
    nlohmann::ordered_json line{{"anchor", anchors[i]}, {"positive", positives[i]}};
    for (std::size_t n = 0; n < mined[i].size(); ++n)
      line["negative_" + std::to_string(n + 1)] = positives[mined[i][n]];
    lines += json_text(line) + "\n";
    ++written;
  }
  if (written == 0)
    throw Error("no pair of ", dataset, " has ", mining.count,
                " negatives; take fewer by --num_negatives, or a smaller margin");
  write_file(output, lines);
  const std::int64_t left = std::ssize(pairs) - written;
  std::cout << with_separators(written) << " of " << with_separators(std::ssize(pairs)) << " pairs with "
            << mining.count << " negatives in " << output.string() << "\n";
  if (left > 0)
    std::cerr << "note: " << left << " pairs have fewer than " << mining.count
              << " negatives and are left out\n";
  return 0;
}

}  // namespace zoo
