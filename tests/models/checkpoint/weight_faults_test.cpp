#include <fstream>

#include "tests/models/checkpoint/checkpoint_support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;
using zoo::test::Checkpoint;

namespace {

// The error of a checkpoint whose config.json has `value` at `key`.
std::string fault_with(const char* key, const nlohmann::json& value) {
  Checkpoint checkpoint;
  checkpoint.config[key] = value;
  checkpoint.write();
  return checkpoint.fault();
}

std::string fault_without(const char* key) {
  Checkpoint checkpoint;
  checkpoint.config.erase(key);
  checkpoint.write();
  return checkpoint.fault();
}

void write_text(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("missing, unexpected and mis-shaped tensors are told all at once, by name") {
  Checkpoint checkpoint;
  checkpoint.remove_if([](const std::string& name) {
    return name == "transformer.ln_f.bias" || name == "transformer.h.1.attn.c_attn.weight";
  });
  checkpoint.tensors.emplace_back("transformer.h.1.attn.c_attn.wieght", at::ones({2}));
  checkpoint.tensors.emplace_back("extra", at::ones({2}));
  checkpoint.find("transformer.h.0.mlp.c_fc.weight") = at::ones({20, 12});  // [in, out] would be [12, 20]
  checkpoint.find("transformer.wpe.weight") = at::ones({16});
  checkpoint.write();
  const std::string fault = checkpoint.fault();
  CHECK_THAT(fault, Contains(checkpoint.path().string()));
  CHECK_THAT(fault, Contains("missing 2") && Contains("transformer.ln_f.bias") &&
                        Contains("h.1.attn.c_attn.weight"));
  CHECK_THAT(fault, Contains("unexpected 2") && Contains("h.1.attn.c_attn.wieght") && Contains("extra"));
  CHECK_THAT(fault, Contains("mismatched 2") &&
                        Contains("transformer.h.0.mlp.c_fc.weight: expected [12, 20], found [20, 12]") &&
                        Contains("transformer.wpe.weight: expected [16, 12], found [16]"));
  CHECK_THAT(fault, !Contains("\n"));
  const LoadReport report = checkpoint.report();
  CHECK_FALSE(report.good());
  CHECK(report.loaded.size() == checkpoint.tensors.size() - 4);
}

TEST_CASE("a square matrix that is turned over cannot be told by its shape, but a swapped pair of names is") {
  Checkpoint checkpoint;
  std::swap(checkpoint.find("transformer.h.0.mlp.c_fc.weight"),
            checkpoint.find("transformer.h.0.mlp.c_proj.weight"));
  checkpoint.write();
  CHECK_THAT(checkpoint.fault(), Contains("mismatched 2"));
}

TEST_CASE(
    "a tied copy that differs is a projection of its own, as in transformers; it must have the shape of "
    "one") {
  Checkpoint checkpoint;
  at::Tensor copy = checkpoint.find("transformer.wte.weight").clone();
  std::string fault;
  SECTION("by one value") { copy[3][4] += 1e-3; }
  SECTION("by its type") { copy = copy.to(at::kHalf); }
  SECTION("by its shape") {
    copy = copy.slice(0, 1);
    fault = "lm_head.weight: expected [13, 12], found [12, 12]";
  }
  checkpoint.tensors.emplace_back("lm_head.weight", copy);
  checkpoint.write();
  if (fault.empty()) CHECK_FALSE(load_model(checkpoint.path()).model->config().tie_word_embeddings);
  else CHECK_THAT(checkpoint.fault(), Contains(fault));
}

TEST_CASE("an untied model needs its output weights") {
  Checkpoint checkpoint;
  checkpoint.config["tie_word_embeddings"] = false;
  checkpoint.write();
  CHECK_THAT(checkpoint.fault(), Contains("missing 1: lm_head.weight"));
}

TEST_CASE("a head that the file lacks is refused with what makes a new one") {
  const Checkpoint checkpoint;  // of a causal language model
  LoadOptions options{.head = Head::kSequenceClassification};
  const auto load = [&] { return load_model(checkpoint.path(), options); };
  CHECK_THAT(test::error_of(load),
             Contains("missing 1: score.weight") && Contains("LoadOptions::fresh_head_seed"));
  options.fresh_head_seed = 1;
  CHECK(load().report.fresh == std::vector<std::string>{"score.weight"});
}

TEST_CASE("messages of models, as of files, have no stack trace") {
  const auto model = load_model(Checkpoint().path()).model;
  std::string message;
  try {
    model->forward({.input_ids = at::full({1, 1}, 13, at::kLong)});  // ids are below 13
  } catch (const std::exception& error) {
    CHECK_THAT(error.what(), Contains("Exception raised from"));
    message = plain_message(error);
  }
  CHECK_THAT(message, Contains("13") && !Contains("Exception raised from") && !Contains("\n"));
  CHECK(plain_message(Error("a file")) == "a file");
}

TEST_CASE("weights that are no floating-point numbers are refused") {
  Checkpoint checkpoint;
  checkpoint.find("transformer.wpe.weight") = at::ones({16, 12}, at::kLong);
  checkpoint.write();
  CHECK_THAT(checkpoint.fault(),
             Contains("transformer.wpe.weight: expected floating-point numbers, found I64"));
}

TEST_CASE("a file that is damaged is named") {
  const Checkpoint checkpoint;
  const auto path = checkpoint.path() / "model.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK_THAT(checkpoint.fault(), Contains("model.safetensors") && Contains("truncated"));
}

TEST_CASE("a pickle is refused with the command that converts it") {
  const Checkpoint checkpoint;
  std::filesystem::rename(checkpoint.path() / "model.safetensors", checkpoint.path() / "pytorch_model.bin");
  CHECK_THAT(checkpoint.fault(), Contains("pytorch_model.bin") &&
                                     Contains("AutoModel.from_pretrained(DIR).save_pretrained(DIR)"));
  std::filesystem::remove(checkpoint.path() / "pytorch_model.bin");
  CHECK_THAT(checkpoint.fault(), Contains("has no model.safetensors"));
}

TEST_CASE("what a directory holds instead of a checkpoint is named") {
  const Checkpoint checkpoint;
  const auto weights = checkpoint.path() / "model.safetensors";
  SECTION("weights of another name") {
    std::filesystem::rename(weights, checkpoint.path() / "model.fp16.safetensors");
    CHECK_THAT(checkpoint.fault(), Contains("has no model.safetensors but 'model.fp16.safetensors'"));
  }
  SECTION("weights of other programs") {
    std::filesystem::rename(weights, checkpoint.path() / "tf_model.h5");
    CHECK_THAT(checkpoint.fault(), Contains("has no model.safetensors: tf_model.h5 is of TensorFlow"));
    write_file(checkpoint.path() / "model.gguf", "");
    CHECK_THAT(checkpoint.fault(), Contains("give the GGUF file itself, ") && Contains("model.gguf"));
  }
  SECTION("a pointer of Git LFS") {
    write_file(weights, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 548105171\n");
    CHECK_THAT(checkpoint.fault(), Contains("model.safetensors") && Contains("git lfs pull"));
    write_file(checkpoint.path() / "config.json", "version https://git-lfs.github.com/spec/v1\n");
    CHECK_THAT(checkpoint.fault(), Contains("config.json") && Contains("git lfs pull"));
    const auto file = checkpoint.path() / "model.gguf";
    write_file(file, "version https://git-lfs.github.com/spec/v1\n");
    CHECK_THAT(message_of([&] { zoo::read_checkpoint_config(file); }), Contains("git lfs pull"));
  }
  std::filesystem::remove(checkpoint.path() / "config.json");
  SECTION("a checkpoint of nanoGPT") {
    write_file(checkpoint.path() / "ckpt.pt", "PK");
    CHECK_THAT(checkpoint.fault(), Contains("config.json") && Contains("ckpt.pt") && Contains("pickle"));
  }
  SECTION("an adapter") {
    write_file(checkpoint.path() / "adapter_config.json", R"({"base_model_name_or_path": "gpt2"})");
    CHECK_THAT(checkpoint.fault(), Contains("PEFT adapter of 'gpt2'") && Contains("'adapter'"));
  }
}

TEST_CASE("an index that does not fit its shards is refused") {
  Checkpoint checkpoint;
  checkpoint.write_shards(2);
  REQUIRE(checkpoint.fault().empty());
  const auto index = checkpoint.path() / "model.safetensors.index.json";
  nlohmann::json json = read_json(index);
  SECTION("a shard that is not there") {
    std::filesystem::remove(checkpoint.path() / Checkpoint::shard_name(1));
    CHECK_THAT(checkpoint.fault(), Contains(Checkpoint::shard_name(1)));
  }
  SECTION("a tensor that its shard does not hold") {
    json["weight_map"]["nowhere"] = Checkpoint::shard_name(0);
    write_json(index, json);
    CHECK_THAT(checkpoint.fault(), Contains("'nowhere' is not in model-0-of-N.safetensors"));
  }
  SECTION("a tensor listed in another shard than the one that holds it") {
    json["weight_map"]["transformer.wte.weight"] = Checkpoint::shard_name(1);
    write_json(index, json);
    CHECK_THAT(checkpoint.fault(), Contains("'transformer.wte.weight' is not in model-1-of-N.safetensors"));
  }
  SECTION("a path out of the directory") {
    json["weight_map"]["transformer.wte.weight"] = "../model-0.safetensors";
    write_json(index, json);
    CHECK_THAT(checkpoint.fault(), Contains("../model-0.safetensors") && Contains("not the name of a file"));
  }
  SECTION("a tensor in two shards") {
    write_safetensors(checkpoint.path() / Checkpoint::shard_name(1), checkpoint.tensors);
    CHECK_THAT(checkpoint.fault(), Contains("in another shard too"));
  }
  SECTION("no weight_map") {
    write_text(index, "{}");
    CHECK_THAT(checkpoint.fault(), Contains("weight_map"));
  }
  SECTION("a file that is not a string") {
    json["weight_map"]["transformer.wte.weight"] = 3;
    write_json(index, json);
    CHECK_THAT(checkpoint.fault(), Contains("'transformer.wte.weight' must be a string"));
  }
}

TEST_CASE("config.json: a key that is missing, of another type or out of range is named with the file") {
  for (const char* key : {"vocab_size", "n_embd", "n_layer", "n_head", "model_type"}) {
    CAPTURE(key);
    CHECK_THAT(fault_without(key), Contains("config.json") && Contains(key) && Contains("missing"));
  }
  CHECK_THAT(fault_without("n_positions"), Contains("n_ctx") && Contains("missing"));
  CHECK_THAT(fault_with("n_embd", "12"),
             Contains("config.json") && Contains("'n_embd' must be an integer, got \"12\""));
  CHECK_THAT(fault_with("n_layer", 2.5), Contains("'n_layer' must be an integer, got 2.5"));
  CHECK_THAT(fault_with("tie_word_embeddings", 1),
             Contains("'tie_word_embeddings' must be true or false, got 1"));
  CHECK_THAT(fault_with("layer_norm_epsilon", "x"), Contains("'layer_norm_epsilon' must be a number"));
  CHECK_THAT(fault_with("activation_function", 7), Contains("'activation_function' must be a string, got 7"));
  CHECK_THAT(fault_with("n_head", 5), Contains("config.json") && Contains("(12)") && Contains("n_head (5)"));
  CHECK_THAT(fault_with("n_layer", -1), Contains("n_layer must be positive, got -1"));
  CHECK_THAT(fault_with("attn_pdrop", 1.5), Contains("attn_pdrop must be in [0, 1), got 1.5"));
  CHECK_THAT(fault_with("vocab_size", 18446744073709551615ULL),
             Contains("vocab_size") && Contains("got 18446744073709551615"));
  CHECK_THAT(fault_with("n_layer", 4000000000LL),
             Contains("n_layer must be at most") && Contains("4000000000"));
  CHECK_THAT(fault_with("n_embd", 4611686018427387904LL),
             Contains("n_embd must be at most") && Contains("4611686018427387904"));
  CHECK_THAT(fault_with("layer_norm_epsilon", 0), Contains("layer_norm_epsilon must be positive, got 0"));
}

TEST_CASE("config.json: what the zoo does not have is refused by name") {
  CHECK_THAT(fault_with("model_type", "gtp2"), Contains("config.json") && Contains("did you mean 'gpt2'?"));
  CHECK_THAT(fault_with("scale_attn_by_inverse_layer_idx", true),
             Contains("scale_attn_by_inverse_layer_idx"));
  CHECK_THAT(fault_with("scale_attn_weights", false), Contains("scale_attn_weights"));
  CHECK_THAT(fault_with("add_cross_attention", true), Contains("add_cross_attention"));
  CHECK_THAT(fault_with("activation_function", "prelu"), Contains("\"prelu\"") && Contains("gelu_new"));
  CHECK_THAT(fault_with("architectures", {"GPT2DoubleHeadsModel"}),
             Contains("GPT2DoubleHeadsModel") && Contains("GPT2LMHeadModel"));
  CHECK_THAT(fault_with("architectures", "GPT2LMHeadModel"), Contains("'architectures' must be a list"));
  CHECK(fault_with("architectures", nullptr).empty());
}

TEST_CASE("a directory without a readable config.json is refused") {
  const Checkpoint checkpoint;
  const auto path = checkpoint.path() / "config.json";
  write_text(path, "{\"model_type\":");
  CHECK_THAT(checkpoint.fault(), Contains("config.json") && Contains("not valid JSON"));
  write_text(path, "[]");
  CHECK_THAT(checkpoint.fault(), Contains("config.json") && Contains("expected a JSON object"));
  std::filesystem::remove(path);
  CHECK_THAT(checkpoint.fault(), Contains("config.json"));
  CHECK_THAT(test::error_of([&] { load_model(checkpoint.path() / "absent"); }),
             Contains("is not a directory"));
  CHECK_THAT(test::error_of([&] { load_model(checkpoint.path() / "model.safetensors"); }),
             Contains("not a directory"));
}

TEST_CASE("a configuration that config.json cannot say is not written as another") {
  struct Case {
    void (*choose)(TransformerConfig&);
    const char* message;
  };
  const std::vector<Case> cases{
      {[](auto& c) { c.position = PositionKind::kRotary; }, "position = rotary (only learned)"},
      {[](auto& c) { c.norm = NormKind::kRmsNorm; }, "norm = rms_norm"},
      {[](auto& c) { c.norm_placement = NormPlacement::kPost; }, "norm_placement = post"},
      {[](auto& c) { c.activation = Activation::kSwiGlu; }, "activation"},
      {[](auto& c) { c.num_kv_heads = 1; }, "num_kv_heads = 1 (only 2)"},
      {[](auto& c) { c.head_dim = 4; }, "head_dim = 4 (only 6)"},
      {[](auto& c) { c.qkv_bias = false; }, "qkv_bias = false (only true)"},
      {[](auto& c) { c.sparse_window = 3; }, "sparse_window = 3"},
      {[](auto& c) { c.attention = AttentionKind::kSlidingWindow; }, "attention = sliding_window"},
      {[](auto& c) { c.logits_scale = 0.5; }, "logits_scale = 0.5"},
      {[](auto& c) { c.attention_scale = 0.5; }, "attention_scale = 0.5"},
      {[](auto& c) { c.sharing = Sharing::kAllLayers; }, "sharing = all_layers"},
      {[](auto& c) { c.embedding_size = 5; }, "embedding_size = 5"},
      {[](auto& c) { c.embedding_norm = true; }, "embedding_norm = true"},
      {[](auto& c) { c.type_vocab_size = 2; }, "type_vocab_size = 2"},
      {[](auto& c) { c.final_dropout = 0.5; }, "final_dropout = 0.5"},
  };
  for (const Case& each : cases) {
    TransformerConfig config = test::small_config();
    each.choose(config);
    CAPTURE(each.message);
    CHECK_THAT(test::error_of([&] { find_family("gpt2").write_config(config); }), Contains(each.message));
  }
}
