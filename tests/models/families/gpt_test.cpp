#include <cmath>

#include <torch/optim/adamw.h>

#include "models/layers/attention/key_value_cache.h"
#include "models/layers/attention/masks.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;
using zoo::test::relative_error;

TEST_CASE("no logit of a GPT depends on a later token") {
  const TransformerConfig config = test::small_config();
  const auto model = test::random_gpt(config, 1);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 9, 2);
  at::Tensor changed = ids.clone();
  changed.slice(1, 5) = (changed.slice(1, 5) + 1).remainder(config.vocab_size);
  const bool padded = GENERATE(false, true);
  const at::Tensor mask = padded ? at::ones({2, 9}, at::kLong) : at::Tensor();
  const at::Tensor a = model->forward({.input_ids = ids, .attention_mask = mask}).logits;
  const at::Tensor b = model->forward({.input_ids = changed, .attention_mask = mask}).logits;
  CHECK(at::equal(a.slice(1, 0, 5), b.slice(1, 0, 5)));
  CHECK_FALSE(at::equal(a.slice(1, 5), b.slice(1, 5)));
}

TEST_CASE("padding changes no kept logit, when positions count the kept tokens") {
  const TransformerConfig config = test::small_config();
  const auto model = test::random_gpt(config, 3);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 1, 5, 4), padding = test::random_ids(config, 1, 3, 5);
  const at::Tensor alone = model->forward({.input_ids = ids}).logits;
  const at::Tensor zeros = at::zeros({1, 3}, at::kLong), ones = at::ones({1, 5}, at::kLong);
  SECTION("on the left") {
    const at::Tensor mask = at::cat({zeros, ones}, 1);
    const at::Tensor padded = model
                                  ->forward({.input_ids = at::cat({padding, ids}, 1),
                                             .attention_mask = mask,
                                             .position_ids = positions_of(mask)})
                                  .logits;
    CHECK(relative_error(padded.slice(1, 3), alone) < 1e-5);
    CHECK(padded.isfinite().all().item<bool>());
  }
  SECTION("on the right") {
    const at::Tensor padded =
        model->forward({.input_ids = at::cat({ids, padding}, 1), .attention_mask = at::cat({ones, zeros}, 1)})
            .logits;
    CHECK(relative_error(padded.slice(1, 0, 5), alone) < 1e-5);
  }
}

TEST_CASE("a GPT with the cache gives the logits that it gives without") {
  TransformerConfig config = test::small_config();
  config.position = GENERATE(PositionKind::kLearned, PositionKind::kSinusoidal, PositionKind::kRotary);
  const auto model = test::random_gpt(config, 6);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 8, 7);
  at::Tensor mask = at::ones({2, 8}, at::kLong);
  mask[1].slice(0, 0, 2).zero_();  // the second row is padded on the left
  const at::Tensor positions = positions_of(mask);
  const at::Tensor whole =
      model->forward({.input_ids = ids, .attention_mask = mask, .position_ids = positions}).logits;
  KeyValueCache cache(config, 2, 8, at::TensorOptions());
  for (const auto& [from, to] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 4}, {4, 5}, {5, 8}}) {
    const at::Tensor part = model
                                ->forward({.input_ids = ids.slice(1, from, to),
                                           .attention_mask = mask.slice(1, 0, to),
                                           .position_ids = positions.slice(1, from, to),
                                           .cache = &cache})
                                .logits;
    const at::Tensor comparable = mask.slice(1, from, to).unsqueeze(-1);
    CHECK(relative_error(part * comparable, whole.slice(1, from, to) * comparable) < 1e-5);
  }
  // Without a mask and positions, they continue after the cached ones.
  KeyValueCache plain(config, 2, 8, at::TensorOptions());
  const at::Tensor unpadded = model->forward({.input_ids = ids}).logits;
  model->forward({.input_ids = ids.slice(1, 0, 7), .cache = &plain});
  const at::Tensor last = model->forward({.input_ids = ids.slice(1, 7), .cache = &plain}).logits;
  CHECK(relative_error(last, unpadded.slice(1, 7)) < 1e-5);
}

TEST_CASE("the last position's logits alone are those of the whole") {
  const TransformerConfig config = test::small_config();
  const auto model = test::random_gpt(config, 8);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 6, 9);
  const at::Tensor all = model->forward({.input_ids = ids}).logits;
  const at::Tensor last = model->forward({.input_ids = ids, .last_logits_only = true}).logits;
  CHECK(last.sizes() == at::IntArrayRef({2, 1, 13}));
  CHECK(relative_error(last, all.slice(1, -1)) < 1e-6);
}

TEST_CASE("labels are shifted by the model, targets are taken as they are, -100 is ignored in both") {
  const TransformerConfig config = test::small_config();
  const auto model = test::random_gpt(config, 10);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 5, 11);
  at::Tensor labels = test::random_ids(config, 2, 5, 12);
  labels[0][2] = -100;
  const ModelOutput output = model->forward({.input_ids = ids, .labels = labels});
  const at::Tensor log_probabilities = output.logits.log_softmax(-1);
  double sum = 0;
  int count = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t t = 0; t + 1 < 5; ++t) {
      const auto label = labels[b][t + 1].item<std::int64_t>();
      if (label == -100) continue;
      sum -= log_probabilities[b][t][label].item<double>();
      ++count;
    }
  }
  REQUIRE(count == 7);
  CHECK(output.loss.item<double>() == Approx(sum / count).epsilon(1e-5));
  const at::Tensor targets = at::cat({labels.slice(1, 1), at::full({2, 1}, -100, at::kLong)}, 1);
  CHECK(model->forward({.input_ids = ids, .targets = targets}).loss.item<double>() ==
        output.loss.item<double>());
}

TEST_CASE("a GPT learns one batch by heart") {
  TransformerConfig config = test::small_config();
  config.hidden_size = 32;
  config.intermediate_size = 0;
  const auto model = build_model(find_family("gpt2"), config, Head::kCausalLm, 13);
  model->train();
  const at::Tensor ids = test::random_ids(config, 4, 16, 14);
  // The first token of a row must tell which row it is: otherwise the second cannot be known.
  ids.select(1, 0).copy_(at::arange(4));
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3).weight_decay(0.0));
  double loss = 0;
  for (int step = 0; step < 300; ++step) {
    optimizer.zero_grad();
    const at::Tensor now = model->forward({.input_ids = ids, .labels = ids}).loss;
    now.backward();
    optimizer.step();
    loss = now.item<double>();
  }
  CHECK(loss < 0.05);
}

TEST_CASE("fresh weights: normal with 0.02, residual projections divided by sqrt(2 L), no biases") {
  TransformerConfig config;
  config.vocab_size = 500;
  config.hidden_size = 128;
  config.num_layers = 8;
  config.num_heads = 4;
  config.max_positions = 128;
  config.tie_word_embeddings = GENERATE(true, false);
  const auto model = build_model(find_family("gpt2"), config, Head::kCausalLm, 15);
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    const at::Tensor value = item.value().detach();
    CAPTURE(name);
    if (name.ends_with(".bias")) {
      CHECK(value.count_nonzero().item<int>() == 0);
    } else if (name.find("norm") != std::string::npos) {
      CHECK(at::equal(value, at::ones_like(value)));
    } else {
      const bool residual = name.ends_with("out.weight") || name.ends_with("down.weight");
      const double expected = residual ? 0.02 / 4 : 0.02;  // sqrt(2 * 8) = 4
      const double count = static_cast<double>(value.numel());
      // Five standard errors of a mean and of a deviation.
      CHECK(std::abs(value.mean().item<double>()) < 5 * expected / std::sqrt(count));
      CHECK(std::abs(value.std().item<double>() - expected) < 5 * expected / std::sqrt(2 * count));
    }
  }
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 8, 128, 16);
  model->eval();
  CHECK(model->forward({.input_ids = ids, .labels = ids}).loss.item<double>() ==
        Approx(std::log(500)).margin(0.1));
}

TEST_CASE("fresh weights follow from the seed, not from LibTorch's generator") {
  const TransformerConfig config = test::small_config();
  const auto weights = [&](std::uint64_t seed) {
    at::randn({3});
    const auto model = build_model(find_family("gpt2"), config, Head::kCausalLm, seed);
    std::vector<at::Tensor> flat;
    for (const at::Tensor& parameter : model->parameters()) flat.push_back(parameter.detach().flatten());
    return at::cat(flat);
  };
  CHECK(at::equal(weights(1), weights(1)));
  CHECK_FALSE(at::equal(weights(1), weights(2)));
}

TEST_CASE("embedding dropout acts in training only") {
  TransformerConfig config = test::small_config();
  config.embedding_dropout = 0.5;
  const auto model = test::random_gpt(config, 17);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 1, 6, 18);
  const auto embeddings = [&] {
    return model->forward({.input_ids = ids, .output_hidden_states = true}).hidden_states[0];
  };
  CHECK(at::equal(embeddings(), embeddings()));
  model->train();
  const at::Tensor dropped = embeddings();
  const auto zeros = dropped.eq(0).sum().item<int>();
  CHECK(zeros > 0);
  CHECK(zeros < dropped.numel());
}

TEST_CASE("inputs that do not fit are refused with what they are") {
  const TransformerConfig config = test::small_config();
  const auto model = test::random_gpt(config, 19);
  const auto fault = [&](const ModelInputs& inputs) {
    return test::c10_error_of([&] { model->forward(inputs); });
  };
  const at::Tensor ids = test::random_ids(config, 2, 5, 20);
  at::Tensor large = ids.clone(), negative = ids.clone();
  large[1][3] = 13;
  negative[0][2] = -7;
  CHECK_THAT(fault({.input_ids = large}), Contains("13") && Contains("[0, 13)"));
  CHECK_THAT(fault({.input_ids = negative}), Contains("-7") && Contains("[0, 13)"));
  CHECK_THAT(fault({.input_ids = ids[0]}), Contains("[batch, length], got [5]"));
  CHECK_THAT(fault({.input_ids = ids.slice(1, 0, 0)}), Contains("[batch, length], got [2, 0]"));
  CHECK_THAT(fault({}), Contains("input_ids must be"));
  CHECK_THAT(fault({.input_ids = at::zeros({1, 17}, at::kLong)}),
             Contains("17 tokens") && Contains("16 positions"));
  CHECK_THAT(fault({.input_ids = ids, .labels = ids.slice(1, 1)}), Contains("labels must be [2, 5]"));
  CHECK_THAT(fault({.input_ids = ids, .attention_mask = at::ones({2, 4})}), Contains("got [2, 4]"));
  KeyValueCache cache(config, 1, 20, at::TensorOptions());
  const at::NoGradGuard no_grad;
  model->forward({.input_ids = at::zeros({1, 14}, at::kLong), .cache = &cache});
  CHECK_THAT(fault({.input_ids = at::zeros({1, 3}, at::kLong), .cache = &cache}), Contains("17 tokens"));
}

TEST_CASE("a bare GPT gives its last hidden state and has no loss") {
  const TransformerConfig config = test::small_config();
  const auto whole = test::random_gpt(config, 21);
  const auto bare = test::random_model("gpt2", config, Head::kBase, 21);
  const at::NoGradGuard no_grad;
  for (const auto& parameter : bare->named_parameters()) {
    parameter.value().copy_(whole->named_parameters()[parameter.key()]);
  }
  const at::Tensor ids = test::random_ids(config, 2, 5, 22);
  const ModelOutput output = bare->forward({.input_ids = ids});
  CHECK(at::equal(output.last_hidden_state, whole->forward({.input_ids = ids}).last_hidden_state));
  CHECK_FALSE(output.logits.defined());
  CHECK_THAT(test::c10_error_of([&] { bare->forward({.input_ids = ids, .labels = ids}); }),
             Contains("labels need a head"));
}

TEST_CASE("a GPT classifies a sequence by its last token that is not padding") {
  TransformerConfig config = test::small_config();
  config.num_labels = 3;
  config.pad_token_id = 4;
  const auto model = test::random_model("gpt2", config, Head::kSequenceClassification, 23);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = at::tensor({1, 2, 3}, at::kLong).unsqueeze(0);
  const auto logits = [&](std::initializer_list<std::int64_t> row) {
    return model->forward({.input_ids = at::tensor(row, at::kLong).unsqueeze(0)}).logits;
  };
  const at::Tensor alone = logits({1, 2, 3});
  REQUIRE(alone.sizes() == at::IntArrayRef({1, 3}));
  CHECK(test::relative_error(logits({1, 2, 3, 4, 4}), alone) < 1e-5);
  CHECK(test::relative_error(logits({1, 2, 3, 5}), alone) > 1e-2);
  // A row of padding alone: Hugging Face takes its first token.
  const at::Tensor padding = model->forward({.input_ids = at::full({2, 3}, 4, at::kLong)}).logits;
  CHECK(test::relative_error(padding.slice(0, 0, 1), logits({4})) < 1e-5);

  config.pad_token_id = -1;
  const auto unpadded = test::random_model("gpt2", config, Head::kSequenceClassification, 23);
  CHECK(unpadded->forward({.input_ids = ids}).logits.sizes() == at::IntArrayRef({1, 3}));
  CHECK_THAT(test::c10_error_of([&] {
               unpadded->forward({.input_ids = ids.expand({2, 3})});
             }),
             Contains("pad_token_id"));
}

TEST_CASE("a GPT is a decoder") {
  TransformerConfig config = test::small_config();
  config.shape = Shape::kEncoder;
  CHECK_THAT(test::c10_error_of([&] { build_model(find_family("gpt2"), config, Head::kCausalLm, 1); }),
             Contains("decoder"));
}
