// The GPT in one file computes what the gpt2 family and the zoo's training compute.
#define main gpt_in_one_file
#include "apps/demos/gpt_in_one_file.cpp"
#undef main

#include "apps/training/optimizers/adamw.h"
#include "apps/training/optimizers/schedule.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

namespace {

constexpr one_file::GptConfig kSizes{
    .vocab_size = 13, .block_size = 16, .n_layer = 3, .n_head = 2, .n_embd = 12};

std::shared_ptr<zoo::Model> family_model() {
  zoo::TransformerConfig config = zoo::find_family("gpt2").base;
  config.vocab_size = kSizes.vocab_size;
  config.max_positions = kSizes.block_size;
  config.num_layers = kSizes.n_layer;
  config.num_heads = kSizes.n_head;
  config.hidden_size = kSizes.n_embd;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0;
  return zoo::test::random_gpt(config, 7);
}

// The family's name of a weight of the one file.
std::string family_name(std::string name) {
  const std::vector<std::pair<std::string, std::string>> words{{"token_embedding", "embeddings.token"},
                                                               {"position_embedding", "embeddings.position"},
                                                               {"blocks", "stack.blocks"},
                                                               {"ln_final", "stack.final_norm"},
                                                               {"w_qkv", "qkv"},
                                                               {"w_o", "out"},
                                                               {"ln_1", "attention_norm"},
                                                               {"ln_2", "feed_forward_norm"},
                                                               {"w_1", "up"},
                                                               {"w_2", "down"}};
  for (const auto& [ours, theirs] : words) {
    const std::size_t at = name.find(ours + ".");
    if (at != std::string::npos) name.replace(at, ours.size(), theirs);
  }
  return name;
}

one_file::Gpt with_weights_of(const zoo::Model& model) {
  one_file::Gpt gpt(kSizes);
  const auto weights = model.named_parameters();
  REQUIRE(gpt->named_parameters().size() == weights.size());
  const at::NoGradGuard no_grad;
  for (auto& each : gpt->named_parameters()) {
    const at::Tensor* weight = weights.find(family_name(each.key()));
    CAPTURE(each.key());
    REQUIRE(weight != nullptr);
    each.value().copy_(*weight);
  }
  return gpt;
}

std::string printed_by(std::ostream& stream, const std::function<void()>& act) {
  std::ostringstream text;
  std::streambuf* before = stream.rdbuf(text.rdbuf());
  act();
  stream.rdbuf(before);
  return text.str();
}

}  // namespace

TEST_CASE("The GPT in one file gives the logits of the gpt2 family") {
  const auto model = family_model();
  one_file::Gpt gpt = with_weights_of(*model);
  const at::Tensor ids = at::randint(kSizes.vocab_size, {3, 11}, at::kLong);
  CHECK(zoo::test::relative_error(gpt(ids), model->forward({.input_ids = ids}).logits) <= 1e-5);
}

TEST_CASE("The GPT in one file learns as the zoo does") {
  const auto model = family_model();
  one_file::Gpt gpt = with_weights_of(*model);
  const one_file::TrainingConfig training{.max_iters = 20, .warmup_iters = 5};
  const zoo::Schedule schedule{.warmup_iters = 5, .decay_iters = 20};
  zoo::AdamW optimizer(*model, {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .grad_clip = 1.0});
  auto own_optimizer = one_file::make_optimizer(gpt, training);
  at::manual_seed(3);
  const at::Tensor text = at::randint(kSizes.vocab_size, {400}, at::kLong);
  double first = 0, last = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    const double rate = one_file::learning_rate_at(static_cast<double>(i), training);
    REQUIRE(rate == Approx(schedule.at(i)));
    const one_file::Batch batch = one_file::random_batch(text, kSizes.block_size, 4);
    const at::Tensor loss =
        model->forward({.input_ids = batch.inputs, .targets = batch.targets, .loss_only = true}).loss;
    loss.backward();
    optimizer.step(rate);
    optimizer.zero_grad();
    for (auto& group : own_optimizer.param_groups()) group.options().set_lr(rate);
    last = one_file::train_step(gpt, own_optimizer, batch, training.grad_clip);
    if (i == 0) first = last;
    CHECK(last == Approx(loss.item<double>()).epsilon(1e-5));
  }
  CHECK(last < first);
}

TEST_CASE("The GPT in one file trains on a text and writes one in its characters") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "ab c\n";
  const one_file::TrainingConfig training{
      .batch_size = 4, .max_iters = 30, .warmup_iters = 2, .eval_interval = 29};
  at::manual_seed(1);
  const std::string printed = printed_by(std::cout, [&] { one_file::run(text, training); });
  std::istringstream lines(printed);
  std::string begin, end;
  std::getline(lines, begin);
  std::getline(lines, end);
  CHECK(begin.starts_with("0: loss 1."));  // about log(5): nothing is known of the five characters
  CHECK(end.starts_with("29: loss 0."));
  const std::string written = printed.substr(begin.size() + end.size() + 2);
  CHECK(written.size() == 502);
  CHECK(written.find_first_not_of("abc \n") == std::string::npos);
  CHECK(written.find("ab c\nab c\n") != std::string::npos);
}

TEST_CASE("The GPT in one file asks for a text") {
  std::string program = "gpt_in_one_file", path = "no-such-text.txt";
  std::array<char*, 3> words{program.data(), path.data(), nullptr};
  for (const int count : {1, 2}) {
    int code = 0;
    const std::string error = printed_by(std::cerr, [&] { code = gpt_in_one_file(count, words.data()); });
    CHECK(code == 1);
    CHECK(error == "error: expected one argument, a file with a text of at least 1000 characters\n");
  }
}
