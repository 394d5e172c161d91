#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "apps/command/arguments.h"
#include "apps/training/batches/batches.h"
#include "apps/training/row_objective.h"
#include "apps/verbs/train/text_objectives.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "data/base/sizes.h"
#include "models/layers/recompute.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct EmbeddingOptions {
  EmbeddingLossOptions loss;
  BatchPlan plan;
  std::uint64_t seed = 0;
  // GradCache (Gao et al., 2021): texts whose activations are kept at a time. Each piece is computed again
  // in the backward pass, so that the gradients are the whole batch's. 0: all at once.
  std::int64_t mini_batch_size = 0;
  // Its vectors or margins are learnt in place of `loss`, which decides the figures alone.
  std::optional<TextTeacher> teacher;
  // How the model is used, which the figures measure.
  std::string similarity = "cosine";
  std::optional<std::int64_t> truncate_dim;
};

// With the prompt of an anchor (or first sentence), and of a document.
struct Embedders {
  TextEmbedder queries, documents;
  bool are_equal;
};

struct EmbeddingRow : RowCounts {
  const SentenceExample* example = nullptr;
  std::vector<Encoding> texts;  // the anchor, then its documents
  double score = 0;
};

class EmbeddingObjective final : public RowObjective<EmbeddingRow> {
 public:
  EmbeddingObjective(std::shared_ptr<Model> model, Embedders embedders, Splits<EmbeddingRow> rows,
                     const EmbeddingOptions& options)
      // Not by length: negatives as long as the positive would be no fair sample of all documents.
      : RowObjective(std::move(model), std::move(rows), {options.plan, options.seed, /*by_length=*/false}),
        embedders_(std::move(embedders)),
        options_(options),
        figures_(options.loss.loss, options.similarity, options.truncate_dim) {}

  std::vector<Score> take_scores(double) override { return figures_.take(); }

 private:
  bool has_labels() const { return options_.loss.loss == EmbeddingLoss::kBatchAllTriplet; }

  at::Tensor loss(const Rows& rows, bool measured) override {
    std::vector<const Encoding*> anchors, documents;
    std::vector<double> scores;
    for (const EmbeddingRow* row : rows) {
      anchors.push_back(&row->texts[0]);
      if (!has_labels()) documents.push_back(&row->texts[1]);
      scores.push_back(row->score);
    }
    for (const EmbeddingRow* row : rows)
      for (std::size_t i = 2; i < row->texts.size(); ++i) documents.push_back(&row->texts[i]);
    // A Dense module under autocast gives vectors of the narrower type.
    EmbeddedBatch batch;
    const auto count = std::ssize(anchors);
    if (embedders_.are_equal) {
      anchors.insert(anchors.end(), documents.begin(), documents.end());
      const at::Tensor both = vectors(embedders_.queries, anchors).to(at::kFloat);
      batch.anchors = both.slice(0, 0, count);
      if (!has_labels()) batch.documents = both.slice(0, count);
    } else {
      batch.anchors = vectors(embedders_.queries, anchors).to(at::kFloat);
      if (!has_labels()) batch.documents = vectors(embedders_.documents, documents).to(at::kFloat);
    }
    if (has_labels() || takes_scores(options_.loss.loss))
      batch.scores = at::tensor(scores, at::kDouble).to(batch.anchors.device());
    if (measured && figures_.takes_more()) {
      std::vector<const SentenceExample*> examples;
      for (const EmbeddingRow* row : rows) examples.push_back(row->example);
      figures_.add(batch, std::move(examples));
    }
    if (options_.teacher) return taught_loss(rows, batch);
    Ranks* const ranks = sharing();
    if (ranks == nullptr) return embedding_loss(options_.loss, batch);
    const std::int64_t own = batch.anchors.size(0);
    batch = {.anchors = of_all(*ranks, batch.anchors),
             .documents = has_labels() ? at::Tensor()
                                       : at::cat({of_all(*ranks, batch.documents.slice(0, 0, own)),
                                                  of_all(*ranks, batch.documents.slice(0, own))}),
             .scores = batch.scores.defined() ? of_all(*ranks, batch.scores) : batch.scores};
    // A rank has only the gradient of its own vectors. Training averages the ranks' gradients, where the sum
    // is needed: each is multiplied by the number of ranks, the loss is not.
    const at::Tensor loss = embedding_loss(options_.loss, batch), value = loss.detach();
    return value + static_cast<double>(ranks->size()) * (loss - value);
  }

  // The rows of all ranks, in their order; gradients reach this rank's.
  static at::Tensor of_all(Ranks& ranks, const at::Tensor& own) {
    const at::Tensor counts = at::zeros({ranks.size()}, at::kLong);
    counts[ranks.rank()] = own.size(0);
    ranks.add(counts);
    const auto begin = counts.slice(0, 0, ranks.rank()).sum().item<std::int64_t>(), end = begin + own.size(0);
    std::vector<std::int64_t> sizes = own.sizes().vec();
    sizes[0] = counts.sum().item<std::int64_t>();
    const at::Tensor all = at::zeros(sizes, own.options());
    all.slice(0, begin, end).copy_(own.detach());
    ranks.add(all);
    return at::cat({all.slice(0, 0, begin), own, all.slice(0, end)});
  }

  // The mean square of vectors' differences (Reimers and Gurevych, 2020), or of margins', the score of a
  // positive minus that of each negative (MarginMSE, Hofstätter et al., 2020).
  at::Tensor taught_loss(const Rows& rows, const EmbeddedBatch& batch) const {
    std::vector<std::string> queries, documents;
    std::vector<std::int64_t> numbers;  // rows of the documents
    const auto add = [&](std::size_t row, std::size_t text) {
      queries.push_back(rows[row]->example->texts[0]);
      documents.push_back(rows[row]->example->texts[text]);
      numbers.push_back(static_cast<std::int64_t>(row));
    };
    for (std::size_t row = 0; row < rows.size(); ++row) add(row, 1);
    for (std::size_t row = 0; row < rows.size(); ++row)
      for (std::size_t text = 2; text < rows[row]->texts.size(); ++text) add(row, text);
    if (!options_.teacher->scores_pairs) queries.resize(rows.size());
    const at::Tensor known = options_.teacher->answers(queries, documents).to(batch.anchors.device());
    if (!options_.teacher->scores_pairs)
      return at::mse_loss(at::cat({batch.anchors, batch.documents}), known);
    const at::Tensor owners = at::tensor(numbers, at::kLong).to(known.device());
    const at::Tensor scores = (batch.anchors.index_select(0, owners) * batch.documents).sum(-1);
    const auto margins = [&](const at::Tensor& x) {
      const std::int64_t positives = batch.anchors.size(0);
      return x.index_select(0, owners.slice(0, positives)) - x.slice(0, positives);
    };
    return at::mse_loss(margins(scores), margins(known));
  }

  // Texts of similar length are computed together, since padding takes as long as text.
  at::Tensor vectors(const TextEmbedder& embedder, const std::vector<const Encoding*>& texts) const {
    const auto length = [&](std::int64_t i) { return texts[static_cast<std::size_t>(i)]->size(); };
    std::vector<std::int64_t> order = indices_below<std::int64_t>(texts.size());
    std::ranges::stable_sort(order, {}, length);
    std::vector<at::Tensor> parts;
    for (auto begin = order.begin(); begin != order.end();) {
      auto end = begin;
      std::vector<const Encoding*> piece;
      while (end != order.end() && !is_full(piece, length(*end)))
        piece.push_back(texts[static_cast<std::size_t>(*end++)]);
      const auto part = [&embedder, piece](const auto&) { return std::vector{embedder.vectors_of(piece)}; };
      parts.push_back(options_.mini_batch_size == 0 || !at::GradMode::is_enabled()
                          ? embedder.vectors_of(piece)
                          : recompute(part, {}, model_->parameters()).front());
      begin = end;
    }
    const at::Tensor places = at::tensor(order, at::kLong).argsort();
    return at::cat(parts).index_select(0, places.to(parts[0].device()));
  }

  // Whether a text of this length begins another piece.
  bool is_full(const std::vector<const Encoding*>& piece, std::size_t length) const {
    constexpr std::size_t kFewTokens = 256;  // of which a pass takes little longer than of one
    if (piece.empty()) return false;
    if (std::ssize(piece) == options_.mini_batch_size) return true;
    return piece.size() * length > kFewTokens && 4 * length > 5 * piece.front()->size();
  }

  Embedders embedders_;
  EmbeddingOptions options_;
  EmbeddingFigures figures_;
};

// Counts in `cut` the texts that are longer than the limit.
EmbeddingRow encoded(const SentenceExample& example, const Embedders& embedders, std::int64_t& cut) {
  EmbeddingRow row;
  row.example = &example;
  row.score = example.score.value_or(0);
  for (const std::string& text : example.texts) {
    const TextEmbedder& embedder = row.texts.empty() ? embedders.queries : embedders.documents;
    row.texts.push_back(std::move(embedder.encode({text}).front()));
    cut += row.texts.back().cut ? 1 : 0;
    row.tokens += static_cast<std::int64_t>(row.texts.back().size());
  }
  return row;
}

constexpr const char *kModuleList = "modules.json", *kPoolingFolder = "1_Pooling",
                     *kSentenceSettings = "config_sentence_transformers.json",
                     *kTransformerSettings = "sentence_bert_config.json";

std::vector<std::int64_t> sizes_in(const std::string& text) {
  if (text.empty()) return {};
  const auto sizes = numbers_between_commas(text);
  if (!sizes || std::ranges::any_of(*sizes, [](std::int64_t size) { return size < 1; }))
    throw UsageError("--matryoshka_dims: expected sizes with commas between them, as in 384,128,64; got '",
                     text, "'");
  return *sizes;
}

// By the data where the flag is not given.
EmbeddingLossOptions loss_options(const EmbeddingFlags& flags, const SentenceExample& example) {
  EmbeddingLossOptions options{.loss = example.score   ? EmbeddingLoss::kCosent
                                       : example.label ? EmbeddingLoss::kBatchAllTriplet
                                                       : EmbeddingLoss::kMultipleNegativesRanking,
                               .matryoshka_dims = sizes_in(flags.matryoshka_dims)};
  if (flags.loss) options.loss = static_cast<EmbeddingLoss>(number_of(*flags.loss, kEmbeddingLossNames));
  options.scale = flags.scale.value_or(options.scale);
  options.margin = flags.margin.value_or(options.margin);
  options.symmetric = flags.symmetric;
  if (options.symmetric && options.loss != EmbeddingLoss::kMultipleNegativesRanking)
    throw UsageError("--symmetric: only for --loss multiple_negatives_ranking");
  if (flags.scale && options.loss >= EmbeddingLoss::kCosine)
    throw UsageError("--scale: the loss ", kEmbeddingLossNames[static_cast<std::size_t>(options.loss)],
                     " has none; leave it out");
  if (flags.margin && options.loss != EmbeddingLoss::kBatchAllTriplet)
    throw UsageError("--margin: only for --loss batch_all_triplet");
  return options;
}

void require_fit(const SentenceExample& example, const EmbeddingOptions& options) {
  const EmbeddingLoss loss = options.loss.loss;
  const std::string needs = "the loss " + kEmbeddingLossNames[static_cast<std::size_t>(loss)] + " needs ";
  const bool labelled = loss == EmbeddingLoss::kBatchAllTriplet;
  if (takes_scores(loss) != example.score.has_value() || labelled != example.label.has_value())
    throw Error(needs, takes_scores(loss) ? "sentence1, sentence2 and score"
                       : labelled         ? "text and label"
                                          : "anchor and positive");
  if (loss == EmbeddingLoss::kCosine && std::abs(*example.score) > 1)
    throw Error(needs, "scores from -1 to 1, as cosines are; found ", *example.score);
  if (options.teacher && options.teacher->scores_pairs && example.texts.size() < 3)
    throw Error("the teacher is a cross-encoder, whose margins need a negative");
  if (options.teacher && labelled) throw Error("a teacher has no use for the label of a text");
}

// As Sentence-Transformers 2 to 5 write them; version 6 reads them, too.
void write_sentence_files(const fs::path& directory, std::int64_t width) {
  const auto module = [](int number, const char* path, const std::string& type) {
    return json{{"idx", number},
                {"name", std::to_string(number)},
                {"path", path},
                {"type", "sentence_transformers.models." + type}};
  };
  write_json(directory / kModuleList,
             json::array({module(0, "", "Transformer"), module(1, kPoolingFolder, "Pooling")}));
  fs::create_directories(directory / kPoolingFolder);
  json pooling{{"word_embedding_dimension", width}, {"include_prompt", true}};
  for (const char* mode :
       {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"})
    pooling["pooling_mode_" + std::string(mode)] = mode == std::string("mean_tokens");
  write_json(directory / kPoolingFolder / "config.json", pooling);
  if (!fs::exists(directory / kSentenceSettings))
    write_json(
        directory / kSentenceSettings,
        {{"prompts", json::object()}, {"default_prompt_name", nullptr}, {"similarity_fn_name", "cosine"}});
  if (!fs::exists(directory / kTransformerSettings))
    write_json(directory / kTransformerSettings, {{"max_seq_length", nullptr}, {"do_lower_case", false}});
}

}  // namespace

EmbeddingTask::EmbeddingTask(const TrainFlags& flags, const CheckpointConfig& checkpoint,
                             const LoadedModel& loaded, c10::Device device)
    : flags_(flags), model_(loaded.model), config_(SentenceConfig::read(checkpoint.directory)) {
  if (config_.modules.empty())
    std::cerr
        << "note: " << checkpoint.directory.string()
        << " has no modules.json: the vector of a text is the mean of its tokens' states (mean pooling)\n";
  for (const SentenceConfig::Module& module : config_.modules) {
    if (module.type == "Dropout")
      throw Error(checkpoint.directory / kModuleList,
                  ": a Dropout after the transformer cannot be trained; take the module out of the list");
  }
  // Vectors are trained in full, whatever is kept of them later, and by their cosine.
  SentenceConfig whole = config_;
  whole.truncate_dim.reset();
  EmbedOptions options{.modules = {.device = device},
                       .prompt = "",
                       .max_length = static_cast<std::size_t>(flags.data.block_size)};
  if (config_.modules.empty()) options.modules.normalize = false;
  embedder_ = std::make_shared<const TextEmbedder>(
      model_, load_tokenizer(checkpoint.directory, checkpoint.json.get()), whole, options);
  for (std::size_t i = 0; i < embedder_->modules().size(); ++i) {
    const NamedTensors weights = embedder_->modules()[i].weights;
    if (weights.empty()) continue;
    const auto holder = std::make_shared<torch::nn::Module>();
    for (auto [name, weight] : weights) {
      weight.set_data(weight.clone());  // a file's bytes are not to be written
      weight.requires_grad_(true);
      std::ranges::replace(name, '.', '_');  // a name of a parameter may have no dot
      holder->register_parameter(name, weight);
    }
    model_->register_module("sentence_module_" + std::to_string(i), holder);
  }
}

std::unique_ptr<Objective> EmbeddingTask::objective(const TaskData& data, const BatchPlan& plan) const {
  const SentenceExample& first = data.sentences.val.front();
  const bool has_pairs = !first.score && !first.label;
  EmbeddingOptions options{.loss = loss_options(flags_.embedding, first),
                           .plan = plan,
                           .seed = static_cast<std::uint64_t>(flags_.compute.seed),
                           .mini_batch_size = flags_.embedding.mini_batch_size.value_or(0),
                           .similarity = config_.similarity};
  // The same text would be its own negative.
  if (const auto rows = std::ssize(data.sentences.train); rows < plan.batch_size * plan.ranks && has_pairs) {
    options.plan.batch_size = std::max<std::int64_t>(1, rows / plan.ranks);
    std::cerr << "note: the batch has " << options.plan.batch_size * plan.ranks << " of the " << rows
              << " examples that there are\n";
  }
  if (config_.truncate_dim) options.truncate_dim = static_cast<std::int64_t>(*config_.truncate_dim);
  if (!flags_.teacher.empty()) options.teacher = load_text_teacher(flags_);
  const auto prompted = [&](const std::optional<std::string>& name) {
    return name ? embedder_->with_prompt(config_.prompt_named(*name)) : *embedder_;
  };
  Embedders embedders{prompted(flags_.embedding.query_prompt_name),
                      prompted(flags_.embedding.document_prompt_name),
                      flags_.embedding.query_prompt_name == flags_.embedding.document_prompt_name};
  std::int64_t cut = 0;
  std::map<std::string, std::int64_t> labels;
  Splits<EmbeddingRow> rows = rows_of_examples(data, [&](const SentenceExample& example) {
    require_fit(example, options);
    EmbeddingRow row = encoded(example, embedders, cut);
    if (example.label)
      row.score = static_cast<double>(labels.emplace(*example.label, std::ssize(labels)).first->second);
    // The means of the teacher's losses are over margins, one of each negative, or over the vectors of texts.
    if (options.teacher)
      row.targets = static_cast<double>(row.texts.size() - (options.teacher->scores_pairs ? 2 : 0));
    return row;
  });
  const at::NoGradGuard no_grad;
  const Encoding* one = &rows.val.front().texts[0];
  const std::int64_t width = embedders.queries.vectors_of(std::span(&one, 1)).size(1);
  for (const std::int64_t size : options.loss.matryoshka_dims)
    if (size > width)
      throw UsageError("--matryoshka_dims ", size, ": the model's vectors have only ", width, " numbers");
  const std::vector<std::string> text{data.sentences.val.front().texts[0]};
  if (options.teacher && !options.teacher->scores_pairs &&
      options.teacher->answers(text, text).size(1) != width)
    throw Error("--teacher: its vectors have another size than the student's ", width);
  if (rows.val.size() > static_cast<std::size_t>(kMostMeasuredRows))
    std::cerr << "note: the figures are those of the first " << kMostMeasuredRows << " examples\n";
  if (cut > 0)
    std::cerr << "note: " << cut << " texts are cut to " << *embedders.queries.max_length() << " tokens\n";
  return std::make_unique<EmbeddingObjective>(model_, std::move(embedders), std::move(rows), options);
}

bool EmbeddingTask::has_weights() const {
  return std::ranges::any_of(embedder_->modules(),
                             [](const auto& module) { return !module.weights.empty(); });
}

void EmbeddingTask::save(const fs::path& directory) const {
  if (!fs::exists(directory / kModuleList)) write_sentence_files(directory, model_->config().hidden_size);
  std::size_t next = 0;
  for (const SentenceConfig::Module& module : config_.modules) {
    const NamedTensors weights = embedder_->modules()[next++].weights;
    if (weights.empty()) continue;
    const fs::path folder = directory / module.directory.filename();
    write_safetensors(folder / "model.safetensors", weights);
    fs::remove(folder / "pytorch_model.bin");
  }
}

}  // namespace zoo
