#include <algorithm>
#include <iostream>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

#include "apps/demos/demo.h"
#include "models/registry.h"

namespace zoo::demos::length_generalisation {

constexpr PositionKind kKinds[] = {PositionKind::kNone, PositionKind::kSinusoidal, PositionKind::kLearned,
                                   PositionKind::kShaw, PositionKind::kT5Buckets,  PositionKind::kRotary,
                                   PositionKind::kAlibi};
constexpr std::int64_t kDigits = 10, kPlus = 10, kAsk = 11, kEnd = 12, kVocabulary = 13;
constexpr std::int64_t kBatch = 64, kTested = 512, kMaxPositions = 64, kWarmup = 100;
constexpr double kLearningRate = 0.002;

// Computes the answer to a question.
using Answer = at::Tensor (*)(const at::Tensor& question);

// Lowest digit first, so that the carry is known when it is needed. [B, 2 n + 1] -> [B, n + 1]
at::Tensor added(const at::Tensor& question) {
  const std::int64_t digits = question.size(1) / 2;
  const at::Tensor a = question.slice(1, 0, digits), b = question.slice(1, digits + 1);
  at::Tensor sum = at::zeros({question.size(0), digits + 1}, at::kLong),
             carry = at::zeros({question.size(0)}, at::kLong);
  for (std::int64_t i = 0; i < digits; ++i) {
    const at::Tensor place = a.select(1, digits - 1 - i) + b.select(1, digits - 1 - i) + carry;
    sum.select(1, i).copy_(place % 10);
    carry = place >= 10;
  }
  sum.select(1, digits).copy_(carry);
  return sum;
}

struct Exercise {
  std::string name, does;
  Answer answer;
  std::int64_t trained;               // maximum digits in training
  std::vector<std::int64_t> lengths;  // tested lengths
};

std::vector<Exercise> exercises() {
  const std::vector<std::int64_t> lengths{2, 4, 6, 8, 9, 10, 12, 16};
  return {{"reverse", "write them backwards", [](const at::Tensor& question) { return question.flip({1}); },
           8, lengths},
          {"sort", "write them in order",
           [](const at::Tensor& question) { return std::get<0>(question.sort(1)); }, 8, lengths},
          // Each digit needs two others and a carry, so this training time suffices only for fewer digits.
          {"addition", "add two numbers of so many", added, 4, {1, 2, 3, 4, 5, 6, 8}}};
}

struct Sequences {
  at::Tensor ids, targets;  // [B, T]; the next token in the answer and its end, else -100
};

// Question, sign, answer, end; `digits` digits, twice in an addition.
Sequences draw_sequences(const Exercise& exercise, std::int64_t rows, std::int64_t digits,
                         const at::Generator& generator) {
  const auto number = [&] { return at::randint(kDigits, {rows, digits}, generator, at::kLong); };
  const auto sign = [&](std::int64_t id) { return at::full({rows, 1}, id, at::kLong); };
  at::Tensor question = number();
  if (exercise.answer == added) question = at::cat({question, sign(kPlus), number()}, 1);
  const at::Tensor answer = at::cat({exercise.answer(question), sign(kEnd)}, 1);
  const at::Tensor all = at::cat({question, sign(kAsk), answer}, 1);
  return {all.slice(1, 0, -1), at::cat({at::full_like(question, -100), answer}, 1)};
}

std::shared_ptr<Model> build(PositionKind kind, std::uint64_t seed) {
  const TransformerConfig config{.vocab_size = kVocabulary,
                                 .hidden_size = 64,
                                 .num_layers = 2,
                                 .num_heads = 4,
                                 .max_positions = kMaxPositions,
                                 .position = kind,
                                 .relative_max_distance = kind == PositionKind::kShaw ? 16 : 64,
                                 .initializer_range = 0.1};
  return build_model(find_family("gpt2"), config, Head::kCausalLm, seed);
}

// Shares of right answers and of right tokens by length, in percent.
struct Curves {
  Curve answers, digits;
};

Curves learn(const Exercise& exercise, PositionKind kind, std::int64_t updates, std::uint64_t seed) {
  const auto model = build(kind, seed);
  const at::Generator generator = generator_of(seed), tests = generator_of(seed + 1);
  fit(*model, {updates, kLearningRate, kWarmup}, [&](std::int64_t) {
    const auto digits = 1 + at::randint(exercise.trained, {1}, generator, at::kLong).item<std::int64_t>();
    const Sequences drawn = draw_sequences(exercise, kBatch, digits, generator);
    return model->forward({.input_ids = drawn.ids, .targets = drawn.targets}).loss;
  });
  const std::string name(name_of(kind));
  Curves curves{{name, {}, {}}, {name, {}, {}}};
  const at::NoGradGuard no_grad;
  const auto percent = [](const at::Tensor& x) { return 100 * x.to(at::kFloat).mean().item<double>(); };
  for (const std::int64_t digits : exercise.lengths) {
    const Sequences drawn = draw_sequences(exercise, kTested, digits, tests);
    // Predicts each token from the right tokens before it; an answer is right if greedy decoding writes it.
    const at::Tensor right = model->forward({.input_ids = drawn.ids}).logits.argmax(-1).eq(drawn.targets);
    const at::Tensor asked = drawn.targets.ne(-100);
    curves.answers.add(digits, percent(right.logical_or(asked.logical_not()).all(-1)));
    curves.digits.add(digits, percent(right.masked_select(asked)));
  }
  return curves;
}

void print(const std::string& title, const Exercise& exercise, const std::vector<Curve>& lines) {
  std::vector<std::string> lengths;
  for (const std::int64_t digits : exercise.lengths)
    lengths.push_back(std::to_string(digits) + (digits > exercise.trained ? " new" : ""));
  Table table(columns({"positions"}, lengths));
  for (const Curve& line : lines) table.row(cells(line.title, line.y, "%.1f%%"));
  std::cout << title << "\n";
  table.print(std::cout);
}

}  // namespace zoo::demos::length_generalisation

void zoo::demo_length_generalisation(const Arguments& arguments) {
  using namespace demos::length_generalisation;
  DemoOptions options;
  std::string name = "reverse";
  std::int64_t updates = 3000;
  bool quick = false;
  std::vector<std::string> names;
  for (const Exercise& exercise : exercises()) names.push_back(exercise.name);
  Flags flags(arguments.command,
              "Trains a small decoder with each position encoding on short sequences of digits and tests it "
              "on longer ones.");
  flags.choice("exercise", name, names, "task on the digits");
  flags.add("updates", updates, "updates of each training, of " + std::to_string(kBatch) + " sequences each",
            at_least(1));
  flags.add("quick", quick, "do only a few updates, too few to learn much");
  flags.example("tzoo demo length-generalisation --exercise addition");
  if (!begin_demo(flags, arguments, options)) return;
  if (quick) updates = quick_updates();

  const auto all = exercises();
  const Exercise& exercise = *std::ranges::find(all, name, &Exercise::name);
  std::vector<Curve> answers, digits;
  for (const PositionKind kind : kKinds) {
    Curves curves = learn(exercise, kind, updates, options.seed());
    answers.push_back(std::move(curves.answers));
    digits.push_back(std::move(curves.digits));
  }
  std::cout << "Trained on 1 to " << exercise.trained << " digits (" << updates
            << " updates): " << exercise.does << "\n\n";
  print("Right answers, by the number of digits", exercise, answers);
  print("\nRight tokens of the answers, each after the right ones", exercise, digits);
  print_paragraph(
      "To have learnt a task on short sequences is not to have learnt it on longer ones. A learned "
      "position after the\ntrained ones was never trained; a distance that was never seen is as "
      "strange to the other kinds, but not all\nof a sequence's distances are.");
  const auto panel = [&](const char* title, const std::vector<Curve>& lines) {
    return line_chart(
        {.title = title, .x = "digits", .y = "%", .trained = static_cast<double>(exercise.trained)}, lines);
  };
  show(options, "length-generalisation",
       grid("Trained on short sequences: " + exercise.name,
            {panel("Right answers", answers), panel("Right tokens", digits)}, 2));
}
