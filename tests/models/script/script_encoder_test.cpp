#include "models/script/verify.h"
#include "tests/models/script/script_support.h"

using namespace zoo;
using namespace zoo::test;

namespace {

TransformerConfig encoder_config(const std::string& family) {
  TransformerConfig config = tiny();
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.embedding_norm = true;
  config.trains_padding = false;
  config.type_vocab_size = family == "distilbert" ? 0 : 2;
  if (family == "roberta") {
    config.position_count = PositionCount::kNotPadding;
    config.pad_token_id = 2;
  }
  if (family == "albert") {
    config.sharing = Sharing::kAllLayers;
    config.embedding_size = 10;
  }
  return config;
}

}  // namespace

TEST_CASE("a TorchScript file of an encoder computes what each of its heads computes") {
  for (const char* name : {"bert", "roberta", "distilbert", "albert", "gpt2"}) {
    for (const auto& entry : find_family(name).heads) {
      CAPTURE(name, entry.architecture);
      TransformerConfig config = find_family(name).model_type == "gpt2" ? tiny() : encoder_config(name);
      if (entry.head != Head::kQuestionAnswering) config.num_labels = 3;
      config.tie_word_embeddings = entry.architecture.find("PreTraining") == std::string::npos;
      config.pad_token_id = 2;
      const auto model = make(config, name, entry.head);
      Exported exported(*model, {}, name, entry.head);
      const VerifyReport report = verify_torchscript(exported.path(), *model);
      CHECK(report.largest_error() <= 1e-5);
      CHECK(report.logits.size() == 3);
      CHECK((report.greedy_tokens > 0) == (entry.head == Head::kCausalLm));
      CHECK(report.good());
      if (config.shape == Shape::kEncoder && name != std::string("bert")) continue;
      const at::NoGradGuard no_grad;
      for (auto& parameter : model->named_parameters()) {
        if (parameter.key().ends_with("out.weight"))
          parameter.value().add_(at::randn_like(parameter.value()));
      }
      CHECK_FALSE(verify_torchscript(exported.path(), *model).good());
    }
  }
}

TEST_CASE("a TorchScript file of ELECTRA, MPNet, DeBERTa and ModernBERT computes what each head computes") {
  for (auto& [name, small] : small_encoders()) {
    for (const auto& entry : find_family(name).heads) {
      CAPTURE(name, entry.architecture);
      TransformerConfig config = small;
      if (name == "modernbert" && entry.head == Head::kSequenceClassification)
        config.sentence_pooling = SentencePooling::kMean;
      const auto model = make(config, name, entry.head);
      Exported exported(*model, {}, name, entry.head);
      CHECK(verify_torchscript(exported.path(), *model).largest_error() <= 1e-5);
    }
  }
}

TEST_CASE("a TorchScript file of an encoder takes token types after the mask") {
  const TransformerConfig config = encoder_config("bert");
  const auto model = make(config, "bert", Head::kTokenClassification);
  Exported exported(*model, {}, "bert", Head::kTokenClassification);
  const c10::InferenceMode inference;
  const at::Tensor ids = some_ids(3, 9), mask = ragged_mask(9), types = ids.remainder(2);
  const at::Tensor expected =
      model->forward({.input_ids = ids, .attention_mask = mask, .token_type_ids = types}).logits;
  CHECK(relative_error(exported.module.forward({ids, mask, types}).toTensor(), expected) <= 1e-5);
  CHECK(relative_error(exported.logits(ids, mask), expected) > 1e-3);
}

TEST_CASE("a TorchScript file that classifies needs to know what padding is") {
  TransformerConfig config = tiny();
  const auto model = make(config, "gpt2", Head::kSequenceClassification);
  Exported exported(*model, {}, "gpt2", Head::kSequenceClassification);
  CHECK(exported.logits(some_ids(1, 5)).sizes() == at::IntArrayRef({1, 2}));
  CHECK_THROWS_WITH(exported.logits(some_ids(2, 5)), Catch::Contains("pad_token_id"));
  CHECK(verify_torchscript(exported.path(), *model).good());
}
