#include "models/encoder/encoder.h"

#include <cmath>

#include <torch/optim/adamw.h>

#include "models/layers/initial_weights.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;
using test::relative_error;

namespace {

const std::vector<std::string> kFamilies{"bert", "roberta", "distilbert", "albert"};

TransformerConfig config_of(const std::string& family) {
  TransformerConfig config = test::small_encoder_config();
  if (family == "roberta") {
    config.position_count = PositionCount::kNotPadding;
    config.pad_token_id = 1;
  }
  if (family == "distilbert") config.type_vocab_size = 0;
  if (family == "albert") {
    config.sharing = Sharing::kAllLayers;
    config.embedding_size = 5;
  }
  return config;
}

// Ids of which none is padding.
at::Tensor words(const TransformerConfig& config, std::int64_t batch, std::int64_t length,
                 std::uint64_t seed) {
  const at::Tensor ids = test::random_ids(config, batch, length, seed);
  return ids.masked_fill(ids.eq(config.pad_token_id), 7);
}

at::Tensor main_output(const ModelOutput& output) {
  if (output.start_logits.defined()) return at::stack({output.start_logits, output.end_logits}, -1);
  return output.logits.defined() ? output.logits : output.last_hidden_state;
}

std::string fault_of(Model& model, const ModelInputs& inputs) {
  return test::c10_error_of([&] { model.forward(inputs); });
}

}  // namespace

TEST_CASE("embeddings are the norm of word, position and segment together") {
  const TransformerConfig config = test::small_encoder_config();
  Embeddings embeddings(config);
  const at::NoGradGuard no_grad;
  embeddings->norm->weight.uniform_(0.5, 2.0);
  const at::Tensor ids = at::tensor({3, 5}, at::kLong).unsqueeze(0),
                   types = at::tensor({0, 1}, at::kLong).unsqueeze(0);
  const at::Tensor found = embeddings->forward({.ids = ids, .token_type_ids = types});
  for (std::int64_t t = 0; t < 2; ++t) {
    const at::Tensor sum = embeddings->token->weight[ids[0][t].item<std::int64_t>()] +
                           embeddings->position->weight[t] + embeddings->token_type->weight[t];
    const at::Tensor centred = sum - sum.mean();
    const at::Tensor expected =
        centred / (centred.square().mean() + config.layer_norm_eps).sqrt() * embeddings->norm->weight;
    CHECK(relative_error(found[0][t], expected) < 1e-5);
  }
}

TEST_CASE("without token types every token is of the first") {
  const auto model = test::random_model("bert", test::small_encoder_config(), Head::kBase, 1);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = words(model->config(), 2, 6, 2), zeros = at::zeros_like(ids);
  const at::Tensor without = model->forward({.input_ids = ids}).last_hidden_state;
  CHECK(at::equal(model->forward({.input_ids = ids, .token_type_ids = zeros}).last_hidden_state, without));
  at::Tensor types = zeros.clone();
  types[1][3] = 1;
  const at::Tensor changed = model->forward({.input_ids = ids, .token_type_ids = types}).last_hidden_state;
  CHECK(relative_error(changed[0], without[0]) < 1e-6);
  CHECK(relative_error(changed[1], without[1]) > 1e-4);
}

TEST_CASE("RoBERTa counts the tokens that are not padding, from after the padding's position") {
  const TransformerConfig config = config_of("roberta");  // pad_token_id 1
  Embeddings embeddings(config);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = at::tensor({1, 5, 6, 1, 7, 1}, at::kLong).unsqueeze(0);
  const at::Tensor positions = at::tensor({1, 2, 3, 1, 4, 1}, at::kLong).unsqueeze(0);
  TransformerConfig plain = config;
  plain.position_count = PositionCount::kAll;
  Embeddings told(plain);
  for (auto& parameter : told->named_parameters()) {
    parameter.value().copy_(embeddings->named_parameters()[parameter.key()]);
  }
  CHECK(at::equal(embeddings->forward({.ids = ids}), told->forward({.ids = ids, .position_ids = positions})));
  CHECK(config.max_length() == 14);
  CHECK_NOTHROW(embeddings->forward({.ids = at::full({1, 14}, 3, at::kLong)}));
  CHECK_THAT(test::c10_error_of([&] {
               embeddings->forward({.ids = at::full({1, 15}, 3, at::kLong)});
             }),
             Contains("15 tokens") && Contains("14 positions"));
}

TEST_CASE("a factorised embedding has narrow tables and a projection to the encoder's width") {
  const TransformerConfig config = config_of("albert");
  Embeddings embeddings(config);
  CHECK(embeddings->token->weight.sizes() == at::IntArrayRef({13, 5}));
  CHECK(embeddings->position->weight.sizes() == at::IntArrayRef({16, 5}));
  CHECK(embeddings->norm->weight.sizes() == at::IntArrayRef({5}));
  CHECK(embeddings->projection->weight.sizes() == at::IntArrayRef({12, 5}));
  CHECK(embeddings->forward({.ids = words(config, 2, 3, 3)}).sizes() == at::IntArrayRef({2, 3, 12}));
}

TEST_CASE("padding on the right changes nothing for the tokens that are kept, with any head") {
  for (const std::string& family : kFamilies) {
    for (const auto& entry : find_family(family).heads) {
      CAPTURE(family, name_of(entry.head));
      const TransformerConfig config = config_of(family);
      const auto model = test::random_model(family, config, entry.head, 4);
      const at::NoGradGuard no_grad;
      const at::Tensor ids = words(config, 2, 5, 5),
                       padding = at::full({2, 3}, config.pad_token_id, at::kLong);
      const at::Tensor mask = at::cat({at::ones({2, 5}, at::kLong), at::zeros({2, 3}, at::kLong)}, 1);
      const at::Tensor alone = main_output(model->forward({.input_ids = ids}));
      const at::Tensor padded =
          main_output(model->forward({.input_ids = at::cat({ids, padding}, 1), .attention_mask = mask}));
      const bool whole = alone.dim() == 2;  // [B, labels] of a head that classifies sequences
      CHECK(relative_error(whole ? padded : padded.slice(1, 0, 5), alone) < 1e-5);
      CHECK(padded.isfinite().all().item<bool>());
    }
  }
}

TEST_CASE("padding on the left moves a BERT's positions but not a RoBERTa's") {
  for (const std::string family : {"bert", "roberta"}) {
    const TransformerConfig config = config_of(family);
    const auto model = test::random_model(family, config, Head::kTokenClassification, 6);
    const at::NoGradGuard no_grad;
    const at::Tensor ids = words(config, 1, 5, 7), padding = at::full({1, 3}, config.pad_token_id, at::kLong);
    const at::Tensor mask = at::cat({at::zeros({1, 3}, at::kLong), at::ones({1, 5}, at::kLong)}, 1);
    const at::Tensor alone = model->forward({.input_ids = ids}).logits;
    const at::Tensor padded =
        model->forward({.input_ids = at::cat({padding, ids}, 1), .attention_mask = mask}).logits.slice(1, 3);
    const double error = relative_error(padded, alone);
    if (family == "roberta") {
      CHECK(error < 1e-5);
    } else {
      CHECK(error > 1e-2);
    }
  }
}

TEST_CASE("the embedding of padding gets no gradient") {
  const TransformerConfig config = config_of("roberta");
  const auto model = test::random_model("roberta", config, Head::kTokenClassification, 8);
  const at::Tensor ids = at::tensor({1, 5, 6, 1}, at::kLong).unsqueeze(0);
  model->forward({.input_ids = ids, .labels = at::tensor({0, 1, 0, 1}, at::kLong).unsqueeze(0)})
      .loss.backward();
  const auto& parameters = model->named_parameters();
  for (const char* name : {"embeddings.token.weight", "embeddings.position.weight"}) {
    CHECK(parameters[name].grad()[1].count_nonzero().item<int>() == 0);
  }
  CHECK(parameters["embeddings.token.weight"].grad()[5].count_nonzero().item<int>() > 0);
  CHECK(parameters["embeddings.position.weight"].grad()[2].count_nonzero().item<int>() > 0);
}

TEST_CASE("each head has outputs of its own shape") {
  TransformerConfig config = test::small_encoder_config();
  const at::Tensor ids = words(config, 2, 5, 9);
  const auto output = [&](Head head) {
    return test::random_model("bert", config, head, 9)->forward({.input_ids = ids});
  };
  const ModelOutput bare = output(Head::kBase);
  CHECK(bare.last_hidden_state.sizes() == at::IntArrayRef({2, 5, 12}));
  CHECK(bare.pooler_output.sizes() == at::IntArrayRef({2, 12}));
  CHECK(output(Head::kMaskedLm).logits.sizes() == at::IntArrayRef({2, 5, 13}));
  CHECK(output(Head::kNextSentence).logits.sizes() == at::IntArrayRef({2, 2}));
  const ModelOutput answer = output(Head::kQuestionAnswering);
  CHECK(answer.start_logits.sizes() == at::IntArrayRef({2, 5}));
  CHECK(answer.end_logits.sizes() == at::IntArrayRef({2, 5}));
  CHECK_FALSE(at::equal(answer.start_logits, answer.end_logits));
  config.num_labels = 3;
  CHECK(output(Head::kSequenceClassification).logits.sizes() == at::IntArrayRef({2, 3}));
  CHECK(output(Head::kTokenClassification).logits.sizes() == at::IntArrayRef({2, 5, 3}));
  CHECK_FALSE(output(Head::kTokenClassification).pooler_output.defined());
  CHECK_THAT(test::c10_error_of([&] { output(Head::kQuestionAnswering); }),
             Contains("2 labels") && Contains("got 3"));
}

TEST_CASE("a pretraining head has both heads' logits, and the sum of the losses whose labels are given") {
  const TransformerConfig config = test::small_encoder_config();
  const auto model = test::random_model("bert", config, Head::kPretraining, 19);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = words(config, 2, 5, 20), labels = words(config, 2, 5, 21);
  const at::Tensor order = at::tensor({1, 0}, at::kLong);
  const ModelOutput both = model->forward({.input_ids = ids, .labels = labels, .sentence_labels = order});
  CHECK(both.logits.sizes() == at::IntArrayRef({2, 5, 13}));
  CHECK(both.sentence_logits.sizes() == at::IntArrayRef({2, 2}));
  const at::Tensor words_alone = model->forward({.input_ids = ids, .labels = labels}).loss;
  const at::Tensor order_alone = model->forward({.input_ids = ids, .sentence_labels = order}).loss;
  CHECK(at::equal(words_alone, cross_entropy(both.logits, labels)));
  CHECK(at::equal(order_alone, cross_entropy(both.sentence_logits, order)));
  CHECK(at::equal(both.loss, words_alone + order_alone));
  CHECK_THAT(fault_of(*model, {.input_ids = ids, .sentence_labels = ids}),
             Contains("must be [2], got [2, 5]"));
}

TEST_CASE("a tied masked-lm head projects with the word embedding") {
  TransformerConfig config = test::small_encoder_config();
  const auto model = test::random_model("bert", config, Head::kMaskedLm, 10);
  CHECK_FALSE(model->named_parameters().contains("decoder.weight"));
  const at::NoGradGuard no_grad;
  const at::Tensor ids = at::tensor({3, 5, 7, 2}, at::kLong).unsqueeze(0);
  const at::Tensor before = model->forward({.input_ids = ids}).logits;
  // A word that the input does not hold changes its own logits alone.
  const std::int64_t unseen = 12;
  model->named_parameters()["embeddings.token.weight"][unseen] += 1.0;
  const at::Tensor after = model->forward({.input_ids = ids}).logits;
  CHECK(relative_error(after.slice(2, 0, unseen), before.slice(2, 0, unseen)) < 1e-6);
  CHECK(relative_error(after.select(2, unseen), before.select(2, unseen)) > 1e-2);
}

TEST_CASE("an encoder with any head learns one batch by heart") {
  const auto learns = [](const std::string& family, Head head) {
    CAPTURE(family, name_of(head));
    const TransformerConfig config = config_of(family);
    const auto model = build_model(find_family(family), config, head, 12);
    model->train();
    const at::Tensor ids = words(config, 2, 5, 13);
    at::Tensor labels = at::tensor({1, 0}, at::kLong);
    ModelInputs inputs{.input_ids = ids};
    if (head == Head::kPretraining) inputs.sentence_labels = labels;
    if (head == Head::kMaskedLm || head == Head::kPretraining) labels = words(config, 2, 5, 14);
    if (head == Head::kTokenClassification) labels = ids.remainder(2);
    if (head == Head::kQuestionAnswering) labels = at::tensor({1, 2, 0, 4}, at::kLong).view({2, 2});
    inputs.labels = labels;
    torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(0.0));
    std::vector<double> losses;
    for (int step = 0; step < 40; ++step) {
      optimizer.zero_grad();
      const at::Tensor loss = model->forward(inputs).loss;
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item<double>());
    }
    CHECK(losses.back() < losses.front() / 4);
  };
  for (const Head head :
       {Head::kMaskedLm, Head::kNextSentence, Head::kPretraining, Head::kSequenceClassification,
        Head::kTokenClassification, Head::kQuestionAnswering}) {
    learns("bert", head);
  }
  for (const char* family : {"roberta", "distilbert", "albert"})
    learns(family, Head::kSequenceClassification);
}

TEST_CASE("dropout acts in training only, and before the classifier") {
  TransformerConfig config = test::small_encoder_config();
  config.classifier_dropout = 0.5;
  const auto model = test::random_model("bert", config, Head::kSequenceClassification, 15);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = words(config, 1, 5, 16);
  const auto logits = [&] { return model->forward({.input_ids = ids}).logits; };
  const at::Tensor still = logits();
  CHECK(at::equal(logits(), still));
  model->train();
  CHECK_FALSE(at::equal(logits(), logits()));
  // The encoder itself has none here.
  CHECK(at::equal(model->forward({.input_ids = ids}).last_hidden_state,
                  model->forward({.input_ids = ids}).last_hidden_state));
}

// As in transformers.
TEST_CASE("DistilBERT drops no output of attention, ALBERT none of the feed-forward network") {
  const std::string attention = "attention.out", feed_forward = "feed_forward.down";
  const auto is_random = [](const std::string& family, const std::string& silent) {
    TransformerConfig config = config_of(family);
    config.dropped_outputs = find_family(family).base.dropped_outputs;
    config.dropout = 0.5;
    const auto model = test::random_model(family, config, Head::kBase, 15);
    const at::NoGradGuard no_grad;
    for (const auto& parameter : model->named_parameters())
      if (parameter.key().find(silent) != std::string::npos) parameter.value().zero_();
    model->train();
    const at::Tensor ids = words(config, 1, 5, 16);
    const auto hidden = [&] { return model->forward({.input_ids = ids}).last_hidden_state; };
    return !at::equal(hidden(), hidden());
  };
  CHECK_FALSE(is_random("distilbert", feed_forward));
  CHECK(is_random("distilbert", attention));
  CHECK_FALSE(is_random("albert", attention));
  CHECK(is_random("albert", feed_forward));
  CHECK(is_random("bert", attention));
  CHECK(is_random("bert", feed_forward));
}

TEST_CASE("fresh weights are BERT's: normal with the configured deviation, no biases, nothing for padding") {
  TransformerConfig config = test::small_encoder_config();
  config.vocab_size = 300;
  config.hidden_size = 64;
  config.num_heads = 4;
  config.initializer_range = 0.05;
  config.tie_word_embeddings = false;
  const auto model = build_model(find_family("bert"), config, Head::kMaskedLm, 17);
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    const at::Tensor value = item.value().detach();
    CAPTURE(name);
    if (name.find("bias") != std::string::npos) {
      CHECK(value.count_nonzero().item<int>() == 0);
    } else if (name.find("norm") != std::string::npos) {
      CHECK(at::equal(value, at::ones_like(value)));
    } else {
      // Five standard errors of a deviation.
      CHECK(std::abs(value.std().item<double>() - 0.05) <
            5 * 0.05 / std::sqrt(2.0 * static_cast<double>(value.numel())));
    }
  }
  CHECK(model->named_parameters()["embeddings.token.weight"][0].count_nonzero().item<int>() == 0);
}

TEST_CASE("inputs that do not fit an encoder are refused with what they are") {
  const TransformerConfig config = test::small_encoder_config();
  const auto model = test::random_model("bert", config, Head::kMaskedLm, 18);
  const at::Tensor ids = words(config, 2, 5, 19);
  at::Tensor types = at::zeros_like(ids);
  types[1][2] = 2;
  CHECK_THAT(fault_of(*model, {}), Contains("input_ids must be"));
  CHECK_THAT(fault_of(*model, {.input_ids = ids[0]}), Contains("[batch, length], got [5]"));
  CHECK_THAT(fault_of(*model, {.input_ids = at::full({1, 2}, 13, at::kLong)}),
             Contains("13") && Contains("[0, 13)"));
  CHECK_THAT(fault_of(*model, {.input_ids = at::ones({1, 17}, at::kLong)}),
             Contains("17 tokens") && Contains("16"));
  CHECK_THAT(fault_of(*model, {.input_ids = ids, .token_type_ids = types}),
             Contains("the id 2 is not in [0, 2)"));
  CHECK_THAT(fault_of(*model, {.input_ids = ids, .token_type_ids = types[0]}),
             Contains("token_type_ids must be [2, 5]"));
  CHECK_THAT(fault_of(*model, {.input_ids = ids, .attention_mask = at::ones({2, 4})}),
             Contains("got [2, 4]"));
  CHECK_THAT(fault_of(*model, {.input_ids = ids, .labels = ids.slice(1, 1)}),
             Contains("labels must be [2, 5]"));
  const auto next = test::random_model("bert", config, Head::kNextSentence, 18);
  CHECK_THAT(fault_of(*next, {.input_ids = ids, .labels = ids}), Contains("must be [2], got [2, 5]"));
  const auto bare = test::random_model("bert", config, Head::kBase, 18);
  CHECK_THAT(fault_of(*bare, {.input_ids = ids, .labels = ids}), Contains("labels need a head"));
  const auto distilled = test::random_model("distilbert", config_of("distilbert"), Head::kBase, 18);
  CHECK_THAT(fault_of(*distilled, {.input_ids = ids, .token_type_ids = types}),
             Contains("without token types"));
  TransformerConfig decoder = config;
  decoder.shape = Shape::kDecoder;
  CHECK_THAT(test::c10_error_of([&] { encoder::EncoderModel(decoder, Head::kBase, {}); }),
             Contains("is an encoder"));
}

TEST_CASE("encoders that rotate take the positions that they are given") {
  const auto* family = GENERATE("modernbert", "nomic_bert");
  TransformerConfig config = test::small_encoder_config();
  config.position = PositionKind::kRotary;
  const auto model = test::random_model(family, config, Head::kBase, 3);
  const at::NoGradGuard no_grad;
  const at::Tensor alone = words(config, 1, 6, 4);
  // A hidden token stands between the third and the fourth, which keep their distance.
  const at::Tensor ids = at::cat({alone.slice(1, 0, 3), words(config, 1, 1, 5), alone.slice(1, 3)}, 1);
  at::Tensor mask = at::ones_like(ids);
  mask[0][3] = 0;
  const at::Tensor positions = at::tensor({0, 1, 2, 9, 3, 4, 5}, at::kLong);
  const auto states = [&](const at::Tensor& given) {
    const at::Tensor all =
        model->forward({.input_ids = ids, .attention_mask = mask, .position_ids = given}).last_hidden_state;
    return at::cat({all.slice(1, 0, 3), all.slice(1, 4)}, 1);
  };
  const at::Tensor expected = model->forward({.input_ids = alone}).last_hidden_state;
  CHECK(relative_error(states(positions), expected) < 1e-5);
  CHECK(relative_error(states({}), expected) > 1e-4);
}

TEST_CASE("positions are refused where none are looked up, and in another shape") {
  TransformerConfig config = test::small_encoder_config();
  const at::Tensor ids = words(config, 2, 3, 1), positions = at::tensor({0, 1, 2}, at::kLong);
  const auto learned = test::random_model("bert", config, Head::kBase, 1);
  CHECK(fault_of(*learned, {.input_ids = ids, .position_ids = positions}).empty());
  CHECK_THAT(fault_of(*learned, {.input_ids = ids, .position_ids = positions.slice(0, 1)}),
             Contains("position_ids must be [3] or [2, 3], got [2]"));
  config.position = PositionKind::kAlibi;
  const auto distances = test::random_model("bert", config, Head::kBase, 1);
  CHECK_THAT(fault_of(*distances, {.input_ids = ids, .position_ids = positions}),
             Contains("position_ids were given to a model that takes none (position = alibi)"));
}
