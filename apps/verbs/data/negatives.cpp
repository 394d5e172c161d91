#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/compute/compute.h"
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
namespace {

namespace fs = std::filesystem;

struct NegativeFlags {
  ModelPath model;
  std::string dataset, columns;
  fs::path output;
  HardNegativeOptions mining;
  std::optional<std::string> query_prompt_name, document_prompt_name;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, NegativeFlags& values) {
  Flags flags(
      arguments.command,
      "Adds hard negatives to pairs of texts: other pairs' positives that the model finds similar to the "
      "anchor. Training an embedding model or a ranker on them teaches what it confuses now.");
  add_model_flag(flags, values.model);
  flags.add("dataset", values.dataset,
            "table of anchor (or query) and positive: .jsonl, .tsv, .csv or .parquet",
            {.placeholder = "FILE", .required = true});
  flags.add("columns", values.columns, "names in a table with other names, such as anchor=question",
            {.placeholder = "OURS=THEIRS,..."});
  flags.add(
      "output", values.output,
      ".jsonl file to write: anchor, positive, negative_1 and so on; pairs without enough negatives are "
      "left out",
      {.placeholder = "FILE", .required = true});
  flags.group("Choice");
  flags.add("num_negatives", values.mining.count, "negatives for each pair", between(1, 1000));
  flags.add("range_min", values.mining.skipped,
            "most similar texts to leave out, which may be answers that nobody has marked", at_least(0));
  flags.add("absolute_margin", values.mining.absolute_margin,
            "a negative is less similar than the positive by at least this", at_least(0));
  flags.add("relative_margin", values.mining.relative_margin,
            "the same as a share of the positive's similarity, such as 0.05", at_least(0));
  flags.group("Embedding");
  flags.add("query_prompt_name", values.query_prompt_name,
            "the model's prompt of this name before each anchor; default: query, where it has it",
            {.placeholder = "NAME"});
  flags.add("document_prompt_name", values.document_prompt_name,
            "the same before each positive; default: document, passage or corpus", {.placeholder = "NAME"});
  flags.add("batch_size", values.mining.batch_size, "texts per batch", between(1, kMostBatchRows));
  flags.add_weights(values.compute);
  flags.add_compute(values.compute);
  flags.example("tzoo data negatives --model MiniLM --dataset pairs.tsv --output triplets.jsonl");
  return flags.parse(arguments);
}

std::vector<SentenceExample> read_pairs(const NegativeFlags& flags) {
  const fs::path path = resolve_dataset(flags.dataset);
  const TextFile file(path);
  FileColumns names = flags.columns.empty() ? FileColumns() : FileColumns::read(flags.columns);
  std::vector<SentenceExample> pairs = parse_sentences(file.text(), path.string(), names);
  for (const SentenceExample& each : pairs)
    if (each.score || each.texts.size() != 2)
      throw Error(path, ", line ", each.line, ": expected an anchor and a positive, found ",
                  each.score ? "a score" : "negatives");
  return pairs;
}

}  // namespace

int mine_negatives(const Arguments& arguments) {
  NegativeFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  apply_threads(flags.compute);
  const std::vector<SentenceExample> pairs = read_pairs(flags);
  const SearchEmbedders embedders =
      load_search_embedders(flags.model, flags.compute, flags.query_prompt_name, flags.document_prompt_name);
  std::vector<std::string> anchors, positives;
  for (const SentenceExample& pair : pairs) {
    anchors.push_back(pair.texts[0]);
    positives.push_back(pair.texts[1]);
  }
  CutTexts cut;
  const auto mined = hard_negatives(embedders, anchors, positives, flags.mining, cut.run());
  cut.note();
  std::string lines;
  std::int64_t written = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (std::ssize(mined[i]) < flags.mining.count) continue;
    nlohmann::ordered_json line{{"anchor", anchors[i]}, {"positive", positives[i]}};
    for (std::size_t n = 0; n < mined[i].size(); ++n)
      line["negative_" + std::to_string(n + 1)] = positives[mined[i][n]];
    lines += json_text(line) + "\n";
    ++written;
  }
  if (written == 0)
    throw Error("no pair of ", flags.dataset, " has ", flags.mining.count,
                " negatives; take fewer by --num_negatives, or a smaller margin");
  write_file(flags.output, lines);
  const std::int64_t left = std::ssize(pairs) - written;
  std::cout << with_separators(written) << " of " << with_separators(std::ssize(pairs)) << " pairs with "
            << flags.mining.count << " negatives in " << flags.output.string() << "\n";
  if (left > 0)
    std::cerr << "note: " << left << " pairs have fewer than " << flags.mining.count
              << " negatives and are left out\n";
  return 0;
}

}  // namespace zoo
