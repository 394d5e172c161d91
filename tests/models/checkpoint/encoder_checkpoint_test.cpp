
#include "tests/models/checkpoint/checkpoint_support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;

namespace {

// A family's smallest configuration, as its config.json.
nlohmann::json config_json(const std::string& family) {
  nlohmann::json json{{"vocab_size", 11},         {"hidden_size", 6},       {"num_hidden_layers", 2},
                      {"num_attention_heads", 2}, {"intermediate_size", 8}, {"max_position_embeddings", 9}};
  if (family == "albert") json["embedding_size"] = 4;
  if (family == "distilbert") {
    json = {{"vocab_size", 11}, {"dim", 6},        {"n_layers", 2},
            {"n_heads", 2},     {"hidden_dim", 8}, {"max_position_embeddings", 9}};
  }
  return json;
}

TransformerConfig read(const std::string& family, const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json json = config_json(family);
  json.update(changes);
  return find_family(family).read_config(json, "config.json");
}

std::string fault_of(const std::string& family, const nlohmann::json& changes) {
  return test::error_of([&] { read(family, changes); });
}

// A saved model of the family, whose files a test changes.
class Saved {
 public:
  Saved(const std::string& family, Head head, const nlohmann::json& changes = nlohmann::json::object())
      : family_(find_family(family)), model(test::random_model(family, read(family, changes), head, 31)) {
    save_model(*model, family_, head, path());
    config = read_json(path() / "config.json");
    const SafetensorsFile file(path() / "model.safetensors");
    for (const std::string& name : file.names()) tensors[name] = file.tensor(name).clone();
  }

  void write() const {
    write_json(path() / "config.json", config);
    write_safetensors(path() / "model.safetensors", NamedTensors(tensors.begin(), tensors.end()));
  }

  void rename(const std::string& from, const std::string& to) {
    std::map<std::string, at::Tensor> renamed;
    for (const auto& [name, tensor] : tensors) {
      std::string other = name;
      if (const std::size_t at = name.find(from); at != std::string::npos) other.replace(at, from.size(), to);
      renamed[other] = tensor;
    }
    tensors = renamed;
  }

  LoadedModel load(std::optional<Head> head = std::nullopt) const {
    return load_model(path(), {.head = head});
  }

  std::string fault(std::optional<Head> head = std::nullopt) const {
    return test::error_of([&] { load(head); });
  }

  bool same_weights(const Model& other) const {
    const auto mine = model->named_parameters(), theirs = other.named_parameters();
    if (mine.size() != theirs.size()) return false;
    for (const auto& item : mine) {
      if (!theirs.contains(item.key()) || !theirs[item.key()].equal(item.value())) return false;
    }
    return true;
  }

  std::filesystem::path path() const { return directory_.path(); }

 private:
  const Family& family_;
  test::TemporaryDirectory directory_;

 public:
  std::shared_ptr<Model> model;
  nlohmann::json config;
  std::map<std::string, at::Tensor> tensors;
};

}  // namespace

TEST_CASE("what is saved of an encoder loads equal, with every head") {
  for (const char* name : {"bert", "roberta", "distilbert", "albert"}) {
    for (const auto& entry : find_family(name).heads) {
      CAPTURE(name, entry.architecture);
      const Saved saved(name, entry.head, {{"num_labels", entry.head == Head::kQuestionAnswering ? 2 : 3}});
      CHECK(saved.same_weights(*saved.load().model));
      CHECK(saved.load().head == entry.head);
    }
  }
}

TEST_CASE("a bare model is written without a prefix, and read with and without it") {
  Saved saved("bert", Head::kBase);
  CHECK(saved.tensors.count("embeddings.word_embeddings.weight") == 1);
  CHECK(saved.config["architectures"][0] == "BertModel");
  std::map<std::string, at::Tensor> prefixed;
  for (const auto& [tensor, value] : saved.tensors) prefixed["bert." + tensor] = value;
  saved.tensors = prefixed;
  saved.write();
  CHECK(saved.same_weights(*saved.load().model));
}

TEST_CASE("gamma and beta of old checkpoints are the weight and bias of a norm") {
  Saved saved("bert", Head::kMaskedLm);
  saved.rename("LayerNorm.weight", "LayerNorm.gamma");
  saved.rename("LayerNorm.bias", "LayerNorm.beta");
  saved.tensors["bert.embeddings.position_ids"] = at::arange(9).unsqueeze(0);
  saved.write();
  CHECK(saved.same_weights(*saved.load().model));
  const LoadReport report = inspect_weights(read_checkpoint_config(saved.path()));
  CHECK(report.ignored == std::vector<std::string>{"bert.embeddings.position_ids"});
  CHECK(report.unexpected.empty());
}

TEST_CASE("tensors of other heads are told and left alone, others are refused") {
  Saved saved("bert", Head::kMaskedLm);
  saved.tensors["cls.seq_relationship.weight"] = at::ones({2, 6});
  saved.tensors["cls.seq_relationship.bias"] = at::ones({2});
  saved.tensors["bert.pooler.dense.weight"] = at::ones({6, 6});
  saved.tensors["bert.pooler.dense.bias"] = at::ones({6});
  saved.write();
  CHECK(saved.load().head == Head::kMaskedLm);
  CHECK(saved.same_weights(*saved.load().model));
  LoadReport report = inspect_weights(read_checkpoint_config(saved.path()));
  CHECK(report.good());
  CHECK(report.unused.size() == 4);
  saved.tensors["cls.seq_relationship.extra"] = at::ones({2});
  saved.tensors["bert.encoder.layer.2.output.dense.bias"] = at::ones({6});
  saved.write();
  report = inspect_weights(read_checkpoint_config(saved.path()));
  CHECK(report.unexpected.size() == 2);
  CHECK_THAT(saved.fault(), Contains("cls.seq_relationship.extra") && Contains("layer.2.output.dense.bias"));
}

TEST_CASE("a pre-trained BERT loads with each head that it has") {
  Saved saved("bert", Head::kMaskedLm);
  const Saved next("bert", Head::kNextSentence);
  for (const auto& [name, tensor] : next.tensors) saved.tensors.emplace(name, tensor);
  saved.write();
  CHECK(saved.load(Head::kNextSentence).head == Head::kNextSentence);
  CHECK(saved.load(Head::kBase).head == Head::kBase);
  CHECK_THAT(saved.fault(Head::kQuestionAnswering), Contains("missing 2") && Contains("qa_outputs.weight"));
}

TEST_CASE("copies of tied weights must be equal; of transformers 4's untied ones the bias is shared") {
  SECTION("tied") {
    Saved saved("bert", Head::kMaskedLm);
    saved.tensors["cls.predictions.decoder.weight"] =
        saved.tensors["bert.embeddings.word_embeddings.weight"].clone();
    saved.tensors["cls.predictions.decoder.bias"] = saved.tensors["cls.predictions.bias"].clone();
    saved.write();
    CHECK(saved.same_weights(*saved.load().model));
    saved.tensors["cls.predictions.decoder.bias"][3] += 1;
    saved.write();
    CHECK_THAT(saved.fault(), Contains("cls.predictions.decoder.bias: differs from cls.predictions.bias"));
    saved.tensors["cls.predictions.decoder.bias"] = saved.tensors["cls.predictions.bias"];
    saved.tensors.erase("cls.predictions.bias");
    saved.write();
    CHECK(saved.same_weights(*saved.load().model));
  }
  SECTION("untied") {
    Saved saved("bert", Head::kMaskedLm, {{"tie_word_embeddings", false}});
    CHECK(saved.same_weights(*saved.load().model));
    const at::Tensor bias = saved.tensors["cls.predictions.bias"];
    CHECK_FALSE(bias.equal(saved.tensors["cls.predictions.decoder.bias"]));
    saved.tensors.erase("cls.predictions.decoder.bias");
    saved.write();
    CHECK(saved.load().model->named_parameters()["decoder.bias"].equal(bias));
  }
}

TEST_CASE("missing, mis-shaped and renamed tensors of an encoder are named") {
  Saved saved("bert", Head::kTokenClassification);
  saved.tensors["bert.embeddings.token_type_embeddings.weight"] = at::ones({3, 6});
  saved.tensors["bert.encoder.layer.1.attention.self.key.weight"] = at::ones({5, 6});
  saved.tensors.erase("bert.encoder.layer.0.attention.self.value.bias");
  saved.rename("intermediate.dense.weight", "intermediate.dense.wieght");
  saved.write();
  const std::string fault = saved.fault();
  CHECK_THAT(fault, Contains("layer.0.attention.self.value.bias") &&
                        Contains("layer.0.intermediate.dense.weight") &&
                        Contains("layer.1.intermediate.dense.wieght"));
  CHECK_THAT(fault, Contains("token_type_embeddings.weight: expected [2, 6], found [3, 6]"));
  CHECK_THAT(fault, Contains("layer.1.attention.self."));
}

TEST_CASE("config.json of transformers 4 and 5 mean the same") {
  const auto with = [](nlohmann::json extra) {
    return find_family("bert").write_config(read("bert", extra));
  };
  const nlohmann::json old = with({{"torch_dtype", "float32"},
                                   {"position_embedding_type", "absolute"},
                                   {"transformers_version", "4.30.0"},
                                   {"use_cache", true},
                                   {"gradient_checkpointing", false}});
  CHECK(old == with({{"dtype", "float32"}, {"is_decoder", false}, {"add_cross_attention", false}}));
}

TEST_CASE("keys of encoders that ask for what there is not are refused by name") {
  for (const char* name : {"bert", "roberta"}) {
    CAPTURE(name);
    CHECK_THAT(fault_of(name, {{"hidden_act", "prelu"}}), Contains("hidden_act") && Contains("prelu"));
    CHECK_THAT(fault_of(name, {{"is_decoder", true}}), Contains("is_decoder"));
    CHECK_THAT(fault_of(name, {{"add_cross_attention", true}}), Contains("add_cross_attention"));
    CHECK_THAT(fault_of(name, {{"position_embedding_type", "relative_key"}}),
               Contains("position_embedding_type"));
    CHECK_THAT(fault_of(name, {{"problem_type", "guess"}}), Contains("problem_type") && Contains("guess"));
    CHECK_THAT(fault_of(name, {{"id2label", {{"0", "A"}, {"2", "B"}}}}), Contains("id2label"));
    CHECK_THAT(fault_of(name, {{"hidden_size", nullptr}}), Contains("'hidden_size' is missing"));
  }
  CHECK_THAT(fault_of("roberta", {{"pad_token_id", nullptr}}), Contains("pad_token_id"));
  CHECK_THAT(fault_of("albert", {{"num_hidden_groups", 2}}),
             Contains("num_hidden_groups") && Contains("expected 1"));
  CHECK_THAT(fault_of("albert", {{"inner_group_num", 3}}),
             Contains("inner_group_num") && Contains("expected 1"));
  CHECK_THAT(fault_of("albert", {{"embedding_size", 0}}), Contains("embedding_size"));
  CHECK_THAT(fault_of("distilbert", {{"activation", "prelu"}}), Contains("activation"));
  CHECK_THAT(fault_of("distilbert", {{"sinusoidal_pos_embds", 1}}), Contains("sinusoidal_pos_embds"));
  const nlohmann::json deberta{{"relative_attention", true},     {"share_att_key", true},
                               {"norm_rel_ebd", "layer_norm"},   {"position_biased_input", false},
                               {"pos_att_type", {"p2c", "c2p"}}, {"position_buckets", 4}};
  for (const auto& [key, value] : deberta.items()) {  // another value is what its absence means
    nlohmann::json changes = deberta;
    changes[key] = nullptr;
    CHECK_THAT(fault_of("deberta-v2", changes), Contains("'" + key + "'"));
  }
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"conv_kernel_size", 3},
                                   {"pooler_dropout", 0.1},
                                   {"pooler_hidden_size", 99},
                                   {"embedding_size", 99},
                                   {"attention_head_size", 99},
                                   {"legacy", false},
                                   {"pos_att_type", "c2p"}}) {
    nlohmann::json changes = deberta;
    changes[key] = value;
    CHECK_THAT(fault_of("deberta-v2", changes), Contains(std::string("'") + key + "'"));
  }
  Saved saved("bert", Head::kBase);
  saved.config["pad_token_id"] = 11;
  saved.write();
  CHECK_THAT(saved.fault(), Contains("pad_token_id must be in [0, 11), got 11"));
}

TEST_CASE("a configuration that does not fit the head is named with its file") {
  const Saved saved("bert", Head::kTokenClassification, {{"num_labels", 3}});
  CHECK_THAT(saved.fault(Head::kQuestionAnswering),
             Contains("config.json") && Contains("2 labels") && Contains("got 3"));
}

TEST_CASE("labels, dropouts and padding are read as Hugging Face reads them, and written back") {
  TransformerConfig config = read("bert", {{"id2label", {{"0", "no"}, {"1", "yes"}, {"2", "maybe"}}},
                                           {"problem_type", "multi_label_classification"},
                                           {"classifier_dropout", 0.3}});
  CHECK(config.num_labels == 3);
  CHECK(config.label_names == std::vector<std::string>{"no", "yes", "maybe"});
  CHECK(config.problem_type == ProblemType::kMultiLabel);
  CHECK(config.classifier_dropout == 0.3);
  CHECK(config.token_dropout == 0.3);
  const nlohmann::json written = find_family("bert").write_config(config);
  CHECK(written["id2label"]["2"] == "maybe");
  CHECK(written["label2id"]["yes"] == 1);
  CHECK(written["problem_type"] == "multi_label_classification");
  CHECK(read("bert").num_labels == 2);
  CHECK(read("bert", {{"num_labels", 5}}).num_labels == 5);
  CHECK(read("bert", {{"hidden_dropout_prob", 0.25}}).classifier_dropout == 0.25);
  CHECK(read("bert").pad_token_id == 0);
  CHECK(read("bert", {{"pad_token_id", nullptr}}).pad_token_id == -1);
  CHECK(
      find_family("bert").write_config(read("bert", {{"pad_token_id", nullptr}}))["pad_token_id"].is_null());
  CHECK(read("roberta").pad_token_id == 1);
  CHECK(read("albert").classifier_dropout == 0.1);
  CHECK(read("albert").dropout == 0);
  config = read("distilbert");
  CHECK(config.classifier_dropout == 0.2);
  CHECK(config.token_dropout == 0.1);
  CHECK(config.answer_dropout == 0.1);
  CHECK(config.layer_norm_eps == 1e-12);
}
