#include <iostream>

#include <ATen/Context.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <torch/nn/modules/rnn.h>

#include "apps/compute/compute.h"
#include "apps/demos/demo.h"
#include "models/layers/linear.h"
#include "models/registry.h"

namespace zoo::demos::rnn_vs_transformer {

constexpr std::int64_t kWidth = 32, kWords = 8, kBatch = 32, kTimedBatch = 4, kTested = 512;
constexpr std::int64_t kTaskLengths[] = {4, 12, 40};
constexpr std::int64_t kTimedLengths[] = {16, 32, 64, 128, 256, 512};

// Predicts the first of the words that it reads.
struct FirstWordModel {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor& ids)> logits;  // [B, T] to [B, words]
};

// Reads the words in order and classifies from its last state.
class Recurrent final : public torch::nn::Module {
 public:
  Recurrent() {
    embedding = register_module("embedding", Embedding(kWords + 1, kWidth));
    lstm = register_module("lstm",
                           torch::nn::LSTM(torch::nn::LSTMOptions(kWidth, 2 * kWidth).batch_first(true)));
    classifier = register_module("classifier", Linear(2 * kWidth, kWords));
    const at::NoGradGuard no_grad;
    embedding->weight.normal_(0.0, 1.0);
    classifier->weight.normal_(0.0, 0.1);
    classifier->bias.zero_();
  }

  at::Tensor forward(const at::Tensor& ids) {
    return classifier(std::get<0>(lstm->forward(embedding->forward(ids))).select(1, -1));
  }

  Embedding embedding{nullptr};
  torch::nn::LSTM lstm{nullptr};
  Linear classifier{nullptr};
};

constexpr const char *kLstm = "LSTM", *kTransformer = "transformer";

FirstWordModel build(const std::string& name, std::int64_t positions, std::uint64_t seed) {
  if (name == kLstm) {
    const auto recurrent = std::make_shared<Recurrent>();
    return {recurrent, [recurrent](const at::Tensor& ids) { return recurrent->forward(ids); }};
  }
  const TransformerConfig config{.vocab_size = kWords + 1,
                                 .hidden_size = kWidth,
                                 .num_layers = 2,
                                 .num_heads = 2,
                                 .max_positions = positions,
                                 .num_labels = kWords,
                                 .pad_token_id = kWords,  // not in any sequence
                                 .problem_type = ProblemType::kSingleLabel,
                                 .initializer_range = 0.1};
  const auto model = build_model(find_family("gpt2"), config, Head::kSequenceClassification, seed);
  return {model, [model](const at::Tensor& ids) { return model->forward({.input_ids = ids}).logits; }};
}

// Share of sequences whose first word is predicted at the end, after so many updates.
double accuracy(const std::string& name, std::int64_t length, std::int64_t updates, std::uint64_t seed) {
  at::manual_seed(seed);
  const auto draw = [&, generator = generator_of(seed)](std::int64_t rows) {
    return at::randint(kWords, {rows, length}, generator, at::kLong);
  };
  const auto model = build(name, length, seed);
  fit(*model.module, {updates, 0.003}, [&](std::int64_t) {
    const at::Tensor ids = draw(kBatch);
    return at::cross_entropy_loss(model.logits(ids), ids.select(1, 0));
  });
  const at::NoGradGuard no_grad;
  const at::Tensor ids = draw(kTested);
  return model.logits(ids).argmax(-1).eq(ids.select(1, 0)).to(at::kFloat).mean().item<double>();
}

double milliseconds(const std::string& name, std::int64_t length, std::uint64_t seed) {
  const at::Tensor ids = at::randint(kWords, {kTimedBatch, length}, generator_of(seed), at::kLong);
  const auto model = build(name, length, seed);
  const auto step = [&] { at::cross_entropy_loss(model.logits(ids), ids.select(1, 0)).backward(); };
  // The gradients of an LSTM's first words vanish to denormal numbers, twenty times as slow for the CPU.
  at::globalContext().setFlushDenormal(true);
  step();  // warm-up: allocates the gradients
  const double seconds = cost_of(step).seconds;
  at::globalContext().setFlushDenormal(false);
  return 1000 * seconds;
}

}  // namespace zoo::demos::rnn_vs_transformer

void zoo::demo_rnn_vs_transformer(const Arguments& arguments) {
  using namespace demos::rnn_vs_transformer;
  DemoOptions options;
  std::int64_t updates = 200;
  Flags flags(arguments.command,
              "Compares an LSTM with a transformer: the time over the length of a sequence, and how well "
              "each remembers a word.");
  flags.add("updates", updates, "updates of each training, of " + std::to_string(kBatch) + " sequences each",
            at_least(1));
  if (!begin_demo(flags, arguments, options)) return;

  const std::uint64_t seed = options.seed();
  const auto lines_of = [&](const auto& lengths, const auto& measure) {
    std::vector<Curve> lines;
    for (const char* name : {kLstm, kTransformer}) {
      lines.push_back({name, {}, {}});
      for (const std::int64_t length : lengths) lines.back().add(length, measure(name, length));
    }
    return lines;
  };
  const auto right = lines_of(kTaskLengths, [&](const char* name, std::int64_t length) {
    return accuracy(name, length, updates, seed);
  });
  std::vector<std::string> headings{"parameters"};
  for (const std::int64_t length : kTaskLengths) headings.push_back("length " + std::to_string(length));
  Table learnt(columns({"model"}, headings));
  for (const Curve& line : right) {
    std::vector<std::string> row{line.title,
                                 with_separators(count(*build(line.title, kTaskLengths[2], seed).module))};
    for (const double share : line.y) row.push_back(format_text("%.1f%%", 100 * share));
    learnt.row(row);
  }
  std::cout << "Say at the end which word came first, after " << updates
            << " updates (by chance: " << format_text("%.1f%%", 100.0 / kWords) << ")\n";
  learnt.print(std::cout);

  const auto times = lines_of(
      kTimedLengths, [&](const char* name, std::int64_t length) { return milliseconds(name, length, seed); });
  std::vector<std::string> lengths;
  for (const std::int64_t length : kTimedLengths) lengths.push_back(std::to_string(length));
  Table timed(columns({"ms"}, lengths));
  for (const Curve& line : times) timed.row(cells(line.title, line.y, "%.2f"));
  std::cout << "\nTime of a training step over length, " << kTimedBatch << " sequences, " << threads_text()
            << "\n";
  timed.print(std::cout);
  print_paragraph(
      "Between the first word and the last lie as many steps of the LSTM as there are words, and each may "
      "lose it;\nattention goes there in one. From " +
      std::to_string(kTimedLengths[std::size(kTimedLengths) - 2]) +
      " words to twice as many the LSTM's step took " + last_growth(times[0]) +
      " times as long here, the transformer's " + last_growth(times[1]) +
      ":\nthe LSTM computes as many steps as there are words, attention a score for each pair of them. But "
      "the LSTM's steps\nmust wait for one another; what a transformer does for all words at once, many "
      "cores or a GPU share.");
  show(options, "rnn-vs-transformer",
       grid("LSTM and transformer",
            {line_chart({.title = "The first word remembered", .x = "length", .y = "accuracy", .log_x = true},
                        right),
             line_chart(
                 {.title = "Time of a training step", .x = "length", .y = "ms", .log_x = true, .log_y = true},
                 times)},
            2));
}
