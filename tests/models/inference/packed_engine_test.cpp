#include "models/inference/packed_engine.h"

#include "models/graph/passes.h"
#include "models/layers/attention/key_value_cache.h"
#include "tests/models/inference/packed_outputs.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;

namespace {

// A row without padding, one padded on the right and one on the left, longer than a window.
at::Tensor ragged_mask(std::int64_t length) {
  at::Tensor mask = at::ones({3, length}, at::kLong);
  mask[1].slice(0, length - 5) = 0;
  mask[2].slice(0, 0, 4) = 0;
  return mask;
}

// Random ids that differ from `pad`, which stands where the mask hides.
at::Tensor ids_for(const TransformerConfig& config, const at::Tensor& mask, std::uint64_t seed) {
  at::Tensor ids = test::random_ids(config, mask.size(0), mask.size(1), seed);
  ids.masked_fill_(ids.eq(config.pad_token_id), 5);
  return ids.masked_fill_(mask.eq(0), config.pad_token_id);
}

std::vector<test::FamilyConfig> small_decoders() {
  TransformerConfig base = test::small_config();
  base.max_positions = 28;
  std::vector<test::FamilyConfig> forms{{"gpt2", base}};
  for (const TransformerConfig& form : test::younger_forms(base)) forms.push_back({"gpt2", form});
  TransformerConfig grouped = base;
  grouped.num_heads = 6;
  grouped.num_kv_heads = 2;
  grouped.position = PositionKind::kAlibi;
  forms.push_back({"gpt2", grouped});
  for (auto& [family, config] : forms) config.pad_token_id = 1;
  return forms;
}

at::Tensor packed_forward(const std::shared_ptr<Model>& model, const ModelInputs& inputs) {
  pack_stacks(*model, {});
  const ModelOutput output = model->forward(inputs);
  return output.logits.defined() ? output.logits : output.last_hidden_state;
}

}  // namespace

TEST_CASE("Packed encoders of all families compute what their modules compute") {
  const auto [family, config] = GENERATE(from_range(test::small_encoders()));
  const std::int64_t length = GENERATE(1, 8, 25);
  CAPTURE(family, length);
  const at::NoGradGuard no_grad;
  const at::Tensor mask = length > 8 ? ragged_mask(length) : at::ones({3, length}, at::kLong);
  const ModelInputs inputs{.input_ids = ids_for(config, mask, 4),
                           .attention_mask = length > 8 ? mask.ne(0) : at::Tensor()};
  const auto model = test::random_model(family, config, Head::kTokenClassification, 3);
  const at::Tensor expected = model->forward(inputs).logits, kept = mask.unsqueeze(-1);
  const at::Tensor found = packed_forward(model, inputs);
  CHECK(test::relative_error(found * kept, expected * kept) <= 2e-6);
}

TEST_CASE("Packed decoders that write no text compute what their modules compute") {
  const auto [family, config] = GENERATE(from_range(small_decoders()));
  const std::int64_t length = GENERATE(1, 8, 25);
  CAPTURE(static_cast<int>(config.position), static_cast<int>(config.norm_placement), length);
  const at::NoGradGuard no_grad;
  const at::Tensor mask = length > 8 ? ragged_mask(length) : at::ones({3, length}, at::kLong);
  const ModelInputs inputs{.input_ids = ids_for(config, mask, 4),
                           .attention_mask = length > 8 ? mask : at::Tensor()};
  const auto bare = test::random_model(family, config, Head::kBase, 3);
  const at::Tensor states = bare->forward(inputs).last_hidden_state, kept = mask.unsqueeze(-1);
  CHECK(test::relative_error(packed_forward(bare, inputs) * kept, states * kept) <= 1e-5);
  const auto classifier = test::random_model(family, config, Head::kSequenceClassification, 3);
  const at::Tensor logits = classifier->forward(inputs).logits;
  CHECK(test::relative_error(packed_forward(classifier, inputs), logits) <= 1e-5);
}

TEST_CASE("Packed encoder-decoders without words compute what their modules compute") {
  const auto [family, config] = GENERATE(from_range(test::small_encoder_decoders()));
  CAPTURE(family);
  const at::NoGradGuard no_grad;
  const at::Tensor mask = ragged_mask(12), decoder_mask = ragged_mask(9);
  ModelInputs inputs{.input_ids = ids_for(config, mask, 4),
                     .attention_mask = mask,
                     .decoder_input_ids = ids_for(config, decoder_mask, 5),
                     .decoder_attention_mask = decoder_mask};
  const auto bare = test::random_model(family, config, Head::kBase, 3);
  const at::Tensor states = bare->forward(inputs).last_hidden_state, kept = decoder_mask.unsqueeze(-1);
  CHECK(test::relative_error(packed_forward(bare, inputs) * kept, states * kept) <= 1e-5);
  if (family != "bart") return;  // the others have no such heads
  inputs.decoder_input_ids = inputs.decoder_attention_mask = at::Tensor();
  for (const std::int64_t row : {0, 1, 2}) inputs.input_ids[row][row == 1 ? 6 : 11] = config.eos_token_id;
  const auto classifier = test::random_model(family, config, Head::kSequenceClassification, 3);
  const at::Tensor logits = classifier->forward(inputs).logits;
  CHECK(test::relative_error(packed_forward(classifier, inputs), logits) <= 1e-5);
  const auto finder = test::random_model(family, config, Head::kQuestionAnswering, 3);
  const ModelOutput expected = finder->forward(inputs);
  pack_stacks(*finder, {});
  const ModelOutput found = finder->forward(inputs);
  CHECK(test::relative_error(found.start_logits, expected.start_logits) <= 1e-5);
  CHECK(test::relative_error(found.end_logits, expected.end_logits) <= 1e-5);
}

TEST_CASE("Packed stacks divide a large batch into passes that compute the same") {
  const auto [family, config] = GENERATE(
      values<test::FamilyConfig>({test::small_encoders().front(), test::small_encoder_decoders().front()}));
  CAPTURE(family);
  const at::NoGradGuard no_grad;
  const std::int64_t batch = 300, length = 12;  // 2,558 rows without padding: several passes
  at::Tensor mask = at::ones({batch, length}, at::kLong);
  for (std::int64_t i = 0; i < batch; ++i) mask[i].slice(0, length - i % 8) = 0;
  const at::Tensor ids = ids_for(config, mask, 4);
  ModelInputs inputs{.input_ids = ids, .attention_mask = mask};
  if (config.shape == Shape::kEncoderDecoder) {
    inputs.decoder_input_ids = ids.flip(0);
    inputs.decoder_attention_mask = mask.flip(0);
  }
  const auto model = test::random_model(family, config, Head::kBase, 3);
  const at::Tensor kept = (inputs.decoder_attention_mask.defined() ? mask.flip(0) : mask).unsqueeze(-1);
  const at::Tensor expected = model->forward(inputs).last_hidden_state * kept;
  CHECK(test::relative_error(packed_forward(model, inputs) * kept, expected) <= 1e-5);
}

TEST_CASE("Packed stacks refuse what they would compute otherwise than their modules") {
  using Catch::Contains;
  TransformerConfig config = test::small_config();
  config.position = PositionKind::kRotary;
  const auto model = test::random_model("llama", config, Head::kBase, 3);
  pack_stacks(*model, {});
  const ModelInputs plain{.input_ids = test::random_ids(config, 1, 5, 4)};
  const auto refusal = [&](const ModelInputs& inputs) {
    return test::c10_error_of([&] { model->forward(inputs); });
  };
  CHECK_THAT(refusal(plain), Contains("no gradients"));
  const at::NoGradGuard no_grad;
  CHECK(refusal(plain) == "");
  ModelInputs inputs = plain;
  inputs.output_hidden_states = true;
  CHECK_THAT(refusal(inputs), Contains("record no activations"));
  inputs = plain;
  KeyValueCache cache(config, 1, 8, at::TensorOptions());
  inputs.cache = &cache;
  CHECK_THAT(refusal(inputs), Contains("no cache"));
  inputs = plain;
  inputs.position_ids = at::tensor({0, 1, 5, 6, 7}, at::kLong);
  CHECK_THAT(refusal(inputs), Contains("count positions themselves"));
  inputs = plain;
  inputs.attention_mask = at::tensor({1, 1, 0, 1, 1}, at::kLong).unsqueeze(0);
  CHECK_THAT(refusal(inputs), Contains("changes their distances"));
  inputs.attention_mask = at::ones({1, 4}, at::kLong);
  CHECK_THAT(refusal(inputs), Contains("attention_mask must be [1, 5]"));
}

TEST_CASE("A packed decoder that classifies balances no experts, whatever its configuration asks for") {
  TransformerConfig config = test::small_config();
  config.num_experts = 4;
  config.experts_per_token = 2;
  config.router_loss = true;
  config.feed_forward_bias = false;
  const auto model = test::random_model("gpt2", config, Head::kSequenceClassification, 3);
  const at::NoGradGuard no_grad;
  const ModelInputs inputs{.input_ids = test::random_ids(config, 1, 5, 4),
                           .labels = at::tensor({1}, at::kLong),
                           .loss = {.router = true}};
  const at::Tensor expected = model->forward(inputs).loss;
  pack_stacks(*model, {});
  CHECK(test::relative_error(model->forward(inputs).loss, expected) <= 1e-5);
}

TEST_CASE("A packed decoder refuses a row of memory that a mask hides whole") {
  const auto [family, config] = test::small_encoder_decoders().front();
  const auto model = test::random_model(family, config, Head::kBase, 3);
  pack_stacks(*model, {});
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 5, 4);
  at::Tensor mask = at::ones({2, 5}, at::kLong);
  mask[1] = 0;
  CHECK_THAT(test::c10_error_of([&] {
               model->forward({.input_ids = ids, .attention_mask = mask, .decoder_input_ids = ids});
             }),
             Catch::Contains("hides a whole row"));
}

TEST_CASE("Threads that share packed stacks get the outputs of lone passes") {
  const std::vector<test::FamilyConfig> forms{test::small_encoders().front(),
                                              test::small_encoder_decoders().front()};
  const auto [family, config] = GENERATE_COPY(from_range(forms));
  const auto model = test::random_model(family, config, Head::kBase, 3);
  pack_stacks(*model, {});
  const at::Tensor ids = test::random_ids(config, 4, 16, 4);
  CHECK(test::same_in_threads([&](std::int64_t row) {
    const at::NoGradGuard no_grad;
    const at::Tensor own = ids[row].slice(0, 0, 16 - row).unsqueeze(0);
    return model->forward({.input_ids = own, .decoder_input_ids = own}).last_hidden_state;
  }));
}

TEST_CASE("A model whose weights are packed is counted as before, and is not written") {
  const auto model = test::random_model("bert", test::small_encoder_config(), Head::kTokenClassification, 3);
  const std::int64_t count = model->parameter_count();
  const auto trace = [&] { graph::forward_pass(*model, /*token_types=*/true); };
  pack_stacks(*model, {});
  CHECK_THAT(test::c10_error_of(trace), Catch::Contains("cannot be exported"));
  pack_stacks(*model, {.release = true});
  CHECK(model->parameter_count() == count);
  const test::TemporaryDirectory directory;
  const auto refused = Catch::Contains("to write the model, load it with 'weights' modules");
  CHECK_THAT(test::error_of([&] {
               save_model(*model, find_family("bert"), Head::kTokenClassification, directory.path());
             }),
             refused);
  CHECK(std::filesystem::is_empty(directory.path()));
  CHECK_THAT(test::error_of(trace), refused);
}
