#include "models/generation/generate.h"
#include "tests/models/script/script_support.h"

using namespace zoo;
using namespace zoo::test;

TEST_CASE("a TorchScript file slides its context as tzoo's own generation does") {
  const auto model = make(tiny());
  Exported exported(*model);
  const at::Tensor prompt = some_ids(1, 4);
  GenerationOptions options{.max_new_tokens = 40, .sampling = {.temperature = 0}};
  const auto* first = prompt.const_data_ptr<std::int64_t>();
  const auto expected = generate(*model, {{first, first + 4}}, options).ids[0];
  CHECK(exported.generate(prompt, 40).equal(at::tensor(expected).unsqueeze(0)));
}

TEST_CASE("a row of a TorchScript file's generation ends with an end token and is filled") {
  const auto model = make(tiny());
  const at::Tensor prompt = some_ids(2, 4), all = slow_greedy(*model, prompt, 8);
  // An end token for the first row alone, somewhere in its middle.
  std::int64_t length = 2;
  const auto ends_once = [&] {
    const at::Tensor id = all[0][length - 1];
    return !all[0].slice(0, 0, length - 1).eq(id).any().item<bool>() && !all[1].eq(id).any().item<bool>();
  };
  while (length < 7 && !ends_once()) ++length;
  REQUIRE(ends_once());
  const auto end = all[0][length - 1].item<TokenId>();

  Exported exported(*model, {.eos_ids = {28, end}, .pad_id = 27});
  const at::Tensor found = exported.generate(prompt, 8);
  CHECK(found[1].equal(all[1]));
  CHECK(found[0].slice(0, 0, length).equal(all[0].slice(0, 0, length)));
  CHECK(found[0].slice(0, length).equal(at::full({8 - length}, 27, at::kLong)));
  SECTION("and when every row has ended, nothing more is computed") {
    CHECK(exported.generate(prompt.slice(0, 0, 1), 8).sizes() == at::IntArrayRef({1, length}));
  }
  SECTION("without a pad id it is filled with the first end token") {
    Exported other(*model, {.eos_ids = {end}});
    CHECK(other.generate(prompt, 8)[0].slice(0, length - 1).eq(end).all().item<bool>());
  }
}

TEST_CASE("a TorchScript file samples among the top k by their probabilities") {
  const auto model = make(tiny());
  Exported exported(*model);
  const at::Tensor prompt = some_ids(1, 4).expand({2000, 4}).contiguous();
  const c10::InferenceMode inference;
  const at::Tensor logits = model->forward({.input_ids = prompt.slice(0, 0, 1)}).logits[0][-1];
  const double temperature = 2.0;
  const auto [values, best] = (logits / temperature).topk(3);
  const at::Tensor expected = values.softmax(-1);
  at::manual_seed(3);
  const at::Tensor drawn = exported.generate(prompt, 1, temperature, 3);
  std::int64_t among = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto times = drawn.eq(best[i].item<std::int64_t>()).sum().item<std::int64_t>();
    among += times;
    // Four standard deviations of 2000 draws are at most 0.045.
    CHECK(static_cast<double>(times) / 2000 == Approx(expected[i].item<double>()).margin(0.045));
  }
  CHECK(among == 2000);
  CHECK(exported.generate(prompt.slice(0, 0, 2), 3, temperature, 1)
            .equal(slow_greedy(*model, prompt.slice(0, 0, 2), 3)));
}

TEST_CASE("a TorchScript file says what is wrong with what it is given") {
  const auto model = make(tiny());
  Exported exported(*model);
  using Catch::Contains;
  CHECK_THROWS_WITH(exported.logits(some_ids(1, 13)),
                    Contains("a sequence of 13 tokens is longer than the model's 12"));
  CHECK_THROWS_WITH(exported.generate(some_ids(1, 13), 1),
                    Contains("a prompt of 13 tokens is longer than the model's"));
  CHECK_THROWS_WITH(exported.generate(some_ids(1, 2), -1),
                    Contains("max_new_tokens must be at least 0, got -1"));
  CHECK_THROWS_WITH(exported.generate(some_ids(1, 2), 1, -0.5),
                    Contains("temperature must be at least 0, got -0.5"));
  CHECK_THROWS_WITH(exported.generate(some_ids(1, 2), 1, 1, -3),
                    Contains("top_k must be at least 0, got -3"));
  CHECK_THROWS_WITH(exported.logits(some_ids(1, 2), at::ones({1, 3})),
                    Contains("attention_mask must be [batch, 2]"));
  CHECK_THROWS_WITH(exported.logits(at::arange(3)), Contains("input_ids must be [batch, length]"));
  CHECK(exported.generate(some_ids(2, 3), 0).sizes() == at::IntArrayRef({2, 0}));
}
