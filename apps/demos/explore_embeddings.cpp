#include <algorithm>
#include <iostream>
#include <set>

#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "apps/demos/demo.h"
#include "apps/plots/attention_maps.h"
#include "data/base/error.h"
#include "models/tasks/sentence_modules.h"
#include "models/tasks/text_model.h"

namespace zoo::demos::explore_embeddings {

struct ExploreFlags {
  DemoOptions demo;
  std::filesystem::path model;
  std::string words, analogy;
  std::int64_t neighbours = 5;
};

// Words with their vectors, from any source.
struct Space {
  at::Tensor unit;  // [V, C], rows of length 1
  std::function<std::string(std::int64_t)> name;
  std::function<std::vector<std::int64_t>(const std::string&)> ids;
};

// The first matrix with one row per token is the input embedding.
at::Tensor embedding_of(const Model& model) {
  for (const auto& entry : model.named_parameters()) {
    const at::Tensor& weight = entry.value();
    if (weight.dim() == 2 && weight.size(0) == model.config().vocab_size)
      return weight.detach().to(at::kFloat);
  }
  throw Error("--model: no matrix with a row for each token");
}

Space imported(const ExploreFlags& flags) {
  const auto model =
      std::make_shared<TextModel>(load_text_model(read_checkpoint_config(flags.model), flags.demo.compute));
  const std::int64_t known = model->tokenizer->id_count();
  const auto name = [model](std::int64_t id) {
    return token_label(model->tokenizer->token_text(static_cast<TokenId>(id)));
  };
  const auto ids_of = [model](const std::string& word) {
    // In running text a word begins with a space, which many vocabularies put into the token.
    TokenIds ids;
    try {
      ids = model->tokenizer->encode(" " + word);
    } catch (const Error&) {  // vocabulary without spaces
    }
    if (ids.size() != 1) ids = model->tokenizer->encode(word);
    if (ids.empty()) throw UsageError("the word '", word, "' has no tokens");
    const auto unknown = model->tokenizer->special_id(SpecialToken::unk);
    if (unknown && std::ranges::count(ids, *unknown) > 0 && model->tokenizer->token_text(*unknown) != word)
      throw UsageError("the word '", word, "' is not in the model's vocabulary");
    return std::vector<std::int64_t>(ids.begin(), ids.end());
  };
  return {unit_vectors(embedding_of(*model->model).slice(0, 0, known)), name, ids_of};
}

Space learnt(const ExploreFlags& flags) {
  const WordPairs pairs = read_word_pairs(kTutorialPairs);
  return {unit_vectors(learn_word_vectors(pairs, {.seed = flags.demo.seed()})),
          [ids = pairs.ids](std::int64_t id) { return ids.word(id); },
          [ids = pairs.ids](const std::string& word) { return std::vector<std::int64_t>{ids.id(word)}; }};
}

// The vector of several tokens is their mean.
at::Tensor vector_of(const Space& space, const std::vector<std::int64_t>& ids) {
  return unit_vectors(space.unit.index_select(0, at::tensor(ids)).mean(0));
}

struct Neighbour {
  std::int64_t id;
  double cosine;
};

std::vector<Neighbour> nearest(const Space& space, const at::Tensor& vector,
                               const std::vector<std::int64_t>& without, std::int64_t count) {
  at::Tensor cosines = space.unit.matmul(vector);
  for (const std::int64_t id : without) cosines[id].fill_(-2);
  const auto [values, ids] = cosines.topk(std::min(count, cosines.size(0) - std::ssize(without)));
  std::vector<Neighbour> found;
  for (std::int64_t i = 0; i < values.size(0); ++i)
    found.push_back({ids[i].item<std::int64_t>(), values[i].item<double>()});
  return found;
}

std::string listed(const Space& space, const std::vector<Neighbour>& neighbours) {
  std::string text;
  for (const Neighbour& one : neighbours)
    text += (text.empty() ? "" : ", ") + space.name(one.id) + format_text(" %.3f", one.cosine);
  return text;
}

// "king - man + woman": the words with their signs.
void print_analogy(const Space& space, const ExploreFlags& flags) {
  const Phrase parts = split_words(flags.analogy);
  bool alternates = parts.size() % 2 == 1;
  for (std::size_t i = 0; i < parts.size(); ++i)
    alternates = alternates && (parts[i] == "+" || parts[i] == "-") == (i % 2 == 1);
  if (!alternates)
    throw UsageError("--analogy: expected words with + and - between them, got '", flags.analogy, "'");
  at::Tensor sum;
  std::vector<std::int64_t> used;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    const auto ids = space.ids(parts[i]);
    used.insert(used.end(), ids.begin(), ids.end());
    const at::Tensor vector = vector_of(space, ids) * (i > 0 && parts[i - 1] == "-" ? -1.0 : 1.0);
    sum = sum.defined() ? sum + vector : vector;
  }
  const auto found = nearest(space, unit_vectors(sum), used, flags.neighbours);
  print_paragraph(flags.analogy + " ≈ " + listed(space, found));
}

// Plots the words and their neighbours, each once, along the two directions in which they differ most.
Figure picture(const Space& space, const std::vector<std::string>& words,
               const std::vector<std::vector<std::int64_t>>& groups) {
  std::vector<std::string> names;
  for (const std::string& word : words) names.push_back(word + " and its nearest");
  std::vector<at::Tensor> rows;
  std::vector<WordPoint> points;
  std::set<std::int64_t> seen;
  const auto add = [&](std::int64_t id, std::size_t group) {
    if (!seen.insert(id).second) return;
    rows.push_back(space.unit[id]);
    points.push_back({0, 0, space.name(id), static_cast<int>(group)});
  };
  // A word that is also another's neighbour has its own colour.
  for (std::size_t group = 0; group < groups.size(); ++group) add(groups[group].front(), group);
  for (std::size_t group = 0; group < groups.size(); ++group)
    for (const std::int64_t id : groups[group]) add(id, group);
  const at::Tensor centred = at::stack(rows) - at::stack(rows).mean(0);
  const at::Tensor directions = std::get<2>(at::linalg_svd(centred, /*full_matrices=*/false));  // [min, C]
  const at::Tensor places = centred.matmul(directions.slice(0, 0, 2).t());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const at::Tensor place = places[static_cast<std::int64_t>(i)];
    points[i].x = place[0].item<double>();
    points[i].y = place.size(0) > 1 ? place[1].item<double>() : 0;
  }
  return word_scatter({.title = "Words and their nearest neighbours",
                       .x = "first principal direction",
                       .y = "second principal direction",
                       .groups = names},
                      points);
}

// Prints the table before training: the tutorial's experiment.
void print_untrained(std::uint64_t seed) {
  const at::Tensor unit = unit_vectors(at::randn({1000, 64}, generator_of(seed)));
  const auto cosine = [&](int a, int b) { return (unit[a] * unit[b]).sum().item<double>(); };
  std::cout << paragraph(
                   "Untrained, 1000 tokens in 64 dimensions: " +
                   format_text("cos(10, 11) = %.3f, cos(10, 100) = %.3f", cosine(10, 11), cosine(10, 100)) +
                   ": nobody is near anybody")
            << "\n";
}

}  // namespace zoo::demos::explore_embeddings

void zoo::demo_explore_embeddings(const Arguments& arguments) {
  using namespace demos::explore_embeddings;
  ExploreFlags v;
  v.demo.compute.seed = 123;
  Flags flags(arguments.command, "Finds nearest neighbours of words, and solves analogies, in an embedding.");
  flags.add("model", v.model, "checkpoint directory; default: vectors of the tutorial's words, trained here",
            {.placeholder = "DIR"});
  flags.add("words", v.words, "words whose neighbours are shown, between commas", {.placeholder = "LIST"});
  flags.add("analogy", v.analogy, "analogy to solve, such as 'king - man + woman'", {.placeholder = "SUM"});
  flags.add("neighbours", v.neighbours, "number of neighbours per word", between(1, 50));
  flags.example(
      "tzoo demo explore-embeddings --model bert-base-uncased --words king,paris "
      "--analogy 'king - man + woman'");
  if (!begin_demo(flags, arguments, v.demo)) return;
  if (v.words.empty()) v.words = v.model.empty() ? "cat,dog,apple,banana" : "king,cat,red";
  if (v.analogy.empty()) v.analogy = v.model.empty() ? "dog - cat + apple" : "king - man + woman";

  if (v.model.empty()) print_untrained(v.demo.seed());
  const Space space = v.model.empty() ? learnt(v) : imported(v);
  Table table({{"word"}, number("tokens"), {"nearest, by cosine"}});
  std::vector<std::vector<std::int64_t>> groups;
  const auto words = split_list("words", v.words);
  for (const std::string& word : words) {
    const auto ids = space.ids(word);
    const auto found = nearest(space, vector_of(space, ids), ids, v.neighbours);
    table.row({word, std::to_string(ids.size()), listed(space, found)});
    groups.push_back(ids);
    for (const Neighbour& one : found) groups.back().push_back(one.id);
  }
  table.print(std::cout);
  print_analogy(space, v);
  print_paragraph(
      "Words of the same company are near one another. Analogies are sums: what tells one word from "
      "another is\na direction, if the embedding is large and has read enough.");
  show(v.demo, "explore-embeddings", picture(space, words, groups));
}
