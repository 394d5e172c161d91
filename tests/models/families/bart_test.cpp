#include <nlohmann/json.hpp>

#include "models/checkpoint/checkpoint.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using Catch::Contains;

namespace {

std::shared_ptr<Model> random_one(const std::string& wanted) {
  for (auto& [family, config] : test::small_encoder_decoders())
    if (family == wanted) return test::random_model(family, config, Head::kSeq2SeqLm, 5);
  throw Error("no ", wanted);
}

std::string fault(const std::string& family, const nlohmann::json& changes) {
  nlohmann::json json{{"vocab_size", 20},
                      {"d_model", 8},
                      {"encoder_layers", 1},
                      {"encoder_attention_heads", 2},
                      {"decoder_attention_heads", 2},
                      {"encoder_ffn_dim", 12},
                      {"decoder_ffn_dim", 12}};
  json.update(changes);
  return test::error_of([&] { find_family(family).read_config(json, "config.json"); });
}

// Saves the model without the tensors whose names end so, and loads it again.
std::shared_ptr<Model> saved_without(const Model& model, const std::string& family,
                                     const std::string& ending) {
  const test::TemporaryDirectory directory;
  save_model(model, find_family(family), Head::kSeq2SeqLm, directory.path());
  NamedTensors tensors;
  for (auto& entry : export_weights(model, find_family(family).weight_table(model.config())))
    if (!entry.first.ends_with(ending)) tensors.push_back(entry);
  write_safetensors(directory / "model.safetensors", tensors);
  return load_model(directory.path()).model;
}

}  // namespace

TEST_CASE("BART's two stacks have one width, one number of heads and one token table") {
  CHECK(fault("bart", nlohmann::json::object()).empty());
  CHECK_THAT(fault("bart", {{"decoder_attention_heads", 4}}),
             Contains("decoder_attention_heads") && Contains("expected encoder_attention_heads, 2"));
  CHECK_THAT(fault("bart", {{"decoder_ffn_dim", 13}}), Contains("decoder_ffn_dim") && Contains("12"));
  // Absent, it is transformers' default.
  CHECK_THAT(fault("bart", {{"decoder_ffn_dim", nullptr}}), Contains("decoder_ffn_dim"));
  CHECK_THAT(fault("m2m_100", {{"pad_token_id", nullptr}}), Contains("pad_token_id"));
  CHECK_THAT(fault("marian", {{"share_encoder_decoder_embeddings", false}}),
             Contains("share_encoder_decoder_embeddings"));
  CHECK_THAT(fault("marian", {{"pad_token_id", 1}, {"decoder_vocab_size", 21}}),
             Contains("decoder_vocab_size"));
}

TEST_CASE("Only M2M-100 scales its embeddings where the file says nothing, as in transformers") {
  for (const std::string family : {"bart", "pegasus", "m2m_100"}) {
    CAPTURE(family);
    auto config = random_one(family)->config();
    nlohmann::json json = find_family(family).write_config(config);
    json["model_type"] = family;
    json.erase("scale_embedding");
    config = find_family(family).read_config(json, "config.json");
    CHECK((config.token_scale() != 1.0) == (family == "m2m_100"));
  }
}

TEST_CASE("mBART's decoder begins with each row's last label") {
  TransformerConfig config = random_one("bart")->config();
  config.shifted_labels = ShiftedLabels::kLastLabel;
  config.decoder_start_token_id = -1;
  config.pad_token_id = 1;
  const auto model = test::random_model("mbart", config, Head::kSeq2SeqLm, 6);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 4, 2);
  const at::Tensor labels = at::tensor({7, 9, 2, -100, 4, 3, 5, 6}, at::kLong).view({2, 4});
  const at::Tensor shifted = at::tensor({2, 7, 9, 2, 6, 4, 3, 5}, at::kLong).view({2, 4});
  CHECK(at::equal(model->forward({.input_ids = ids, .labels = labels}).logits,
                  model->forward({.input_ids = ids, .decoder_input_ids = shifted}).logits));
}

TEST_CASE("A bias of the logits moves them, and a file without one means zeros") {
  const auto model = random_one("bart");
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(model->config(), 1, 4, 2);
  const ModelInputs inputs{.input_ids = ids, .decoder_input_ids = ids};
  const at::Tensor plain = model->forward(inputs).logits, bias = at::arange(17).to(at::kFloat).view({1, 17});
  model->named_buffers()["output_bias"].copy_(bias);
  CHECK(at::allclose(model->forward(inputs).logits, plain + bias));
  CHECK(at::allclose(saved_without(*model, "bart", "nothing")->forward(inputs).logits, plain + bias));
  CHECK(at::equal(saved_without(*model, "bart", "final_logits_bias")->forward(inputs).logits, plain));
}

TEST_CASE("A file's table of sinusoids is the one that the model adds") {
  const auto model = random_one("pegasus");
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(model->config(), 1, 4, 2);
  const ModelInputs inputs{.input_ids = ids, .decoder_input_ids = ids};
  const at::Tensor expected = model->forward(inputs).logits;
  CHECK(at::equal(saved_without(*model, "pegasus", "embed_positions.weight")->forward(inputs).logits,
                  expected));
  model->named_buffers()["decoder_embeddings.sinusoids"].mul_(2);
  const at::Tensor other = model->forward(inputs).logits;
  CHECK_FALSE(at::allclose(other, expected));
  CHECK(at::equal(saved_without(*model, "pegasus", "nothing")->forward(inputs).logits, other));
}
