#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using test::relative_error;

namespace {

std::vector<TransformerConfig> packable_forms() {
  TransformerConfig config = test::small_config();
  std::vector<TransformerConfig> forms{config};
  for (const TransformerConfig& form : test::younger_forms(config)) {
    if (!form.rope_scaling.depends_on_length()) forms.push_back(form);
  }
  config.num_kv_heads = 1;
  for (const PositionKind kind : {PositionKind::kAlibi, PositionKind::kShaw, PositionKind::kT5Buckets,
                                  PositionKind::kSinusoidal, PositionKind::kNone}) {
    forms.push_back(config);
    forms.back().position = kind;
    forms.back().relative_buckets = 4;
    forms.back().relative_max_distance = 3;
  }
  return forms;
}

// The rows of 10 positions hold 4, 5 and 1; 10; 3 and 7.
const std::vector<std::int64_t> kDocuments{4, 5, 1, 10, 3, 7};

std::string fault(const TransformerConfig& config, const ModelInputs& inputs, const char* family = "gpt2",
                  Head head = Head::kCausalLm) {
  try {
    test::random_model(family, config, head, 1)->forward(inputs);
  } catch (const std::exception& error) {
    return plain_message(error);
  }
  return "";
}

}  // namespace

TEST_CASE("packed documents give the logits, loss and gradients that each gives in a row of its own") {
  const auto config = GENERATE(from_range(packable_forms()));
  CAPTURE(static_cast<int>(config.position), config.sliding_window, config.num_experts);
  const auto model = test::random_model("gpt2", config, Head::kCausalLm, 1);
  at::manual_seed(2);
  const at::Tensor ids = at::randint(config.vocab_size, {3, 10}, at::kLong);
  const at::Tensor targets = at::randint(config.vocab_size, {3, 10}, at::kLong);
  targets.select(0, 2).slice(0, 0, 3).fill_(-100);
  const auto packed = model->forward({.input_ids = ids, .targets = targets, .documents = kDocuments});
  packed.loss.backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : model->parameters())
    gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  model->zero_grad();

  model->to(at::kDouble);  // float32's noise is as large as what is looked for
  std::vector<at::Tensor> logits;
  at::Tensor sum = at::zeros({}, at::kDouble);
  std::int64_t begin = 0;
  for (const std::int64_t length : kDocuments) {
    const auto part = [&](const at::Tensor& x) { return x.view({1, 30}).slice(1, begin, begin + length); };
    const auto alone = model->forward({.input_ids = part(ids), .targets = part(targets)});
    logits.push_back(alone.logits);
    const auto count = part(targets).ne(-100).sum().item<std::int64_t>();
    if (count > 0) sum = sum + alone.loss * count;
    begin += length;
  }
  (sum / 27).backward();
  CHECK(relative_error(packed.logits.view({1, 30, -1}), at::cat(logits, 1)) < 2e-6);
  CHECK(relative_error(packed.loss, sum.detach() / 27) < 1e-6);
  std::size_t i = 0;
  for (const auto& each : model->named_parameters()) {
    CAPTURE(each.key());
    if (const at::Tensor& gradient = gradients[i++]; gradient.defined())
      CHECK(test::largest_difference(gradient, each.value().grad()) <
            4e-6 * each.value().grad().abs().max().item<double>() + 1e-7);
  }
}

TEST_CASE("documents that do not fill their rows, and models that cannot take them, are refused") {
  const at::Tensor ids = at::ones({2, 6}, at::kLong);
  const auto with = [&](std::vector<std::int64_t> documents) {
    return ModelInputs{.input_ids = ids, .targets = ids, .documents = std::move(documents)};
  };
  const TransformerConfig config = test::small_config();
  CHECK(fault(config, with({6, 6})).empty());
  CHECK(fault(config, with({4, 3, 5})).find("a document of 3 positions does not fit into its row of 6") == 0);
  CHECK(fault(config, with({6, 5})).find("documents have 11 positions, their rows 12") == 0);
  CHECK(fault(config, with({6, 0, 6})).find("a document of 0 positions") == 0);
  ModelInputs inputs = with({6, 6});
  inputs.output_attentions = true;
  CHECK(fault(config, inputs).find("rows of several documents have no attention weights") == 0);
  inputs = with({6, 6});
  inputs.labels = ids;
  CHECK(fault(config, inputs).find("rows of several documents take targets, not labels") == 0);
  inputs = with({6, 6});
  inputs.attention_mask = ids;
  CHECK(fault(config, inputs).find("rows of several documents are for decoders with full attention") == 0);
  TransformerConfig linear = config;
  linear.attention = AttentionKind::kLinear;
  CHECK(fault(linear, with({6, 6})).find("rows of several documents are for decoders with full") == 0);
  CHECK(fault(test::small_encoder_config(), with({6, 6}), "bert", Head::kMaskedLm)
            .find("rows of several documents are for decoders") == 0);
}
