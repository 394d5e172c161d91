#include "models/gguf/gguf_architecture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "models/formats/config_reader.h"

namespace zoo {
namespace {

using nlohmann::json;

const GgufFile::Tensor* find_tensor(const GgufFile& file, std::string_view name) {
  for (const GgufFile::Tensor& tensor : file.tensors())
    if (tensor.name == name) return &tensor;
  return nullptr;
}

bool same_bytes(const GgufFile& file, const GgufFile::Tensor& a, const GgufFile::Tensor& b) {
  const bool alike = a.type == b.type && a.shape == b.shape;
  return alike && std::memcmp(file.data(a), file.data(b), a.end - a.begin) == 0;
}

// Files hold 32-bit numbers, of which config.json has the short form: 1e-05, not 9.99999974e-06.
double shortest(double number) {
  const auto value = static_cast<float>(number);
  if (value != number) return number;
  for (int digits = 6; digits < 9; ++digits) {
    std::ostringstream text;
    text.precision(digits);
    text << value;
    if (std::stof(text.str()) == value) return std::stod(text.str());
  }
  return number;
}

// All other numbers are integers.
bool is_real(const std::string& key) {
  constexpr std::array kEndings{"epsilon",        "freq_base",    "freq_base_swa", "softcapping",
                                "scaling.factor", "scale_linear", "scale"};
  return std::ranges::any_of(kEndings, [&](const char* ending) { return key.ends_with(ending); });
}

// Keys of one architecture: each that is asked for counts as known.
class ArchitectureKeys {
 public:
  explicit ArchitectureKeys(const GgufFile& file)
      : metadata_(architecture_metadata(file)),
        reader_(metadata_, file.path().string()),
        name_(file.text("general.architecture")) {}

  // Null: not there.
  json number(const char* key, bool required) {
    const std::string full = known(key);
    if (!reader_.has(full.c_str())) {
      if (required) throw Error(reader_.source(), ": the key '", full, "' is missing");
      return {};
    }
    if (!is_real(full)) return reader_.get_int(full.c_str(), 0);
    return shortest(reader_.get_double(full.c_str(), 0));
  }

  void expect(const char* key, const json& value, const char* why) {
    const std::string full = known(key);
    if (!reader_.is(full.c_str(), value)) reader_.refuse(full.c_str(), why);
  }

  [[noreturn]] void refuse(const char* key, const char* why) { reader_.refuse(known(key).c_str(), why); }

  std::string text(const char* key) { return reader_.get_string(known(key).c_str(), ""); }

  // What changes no number.
  void ignore(const char* key) { known(key); }

  void refuse_others() const {
    for (const auto& [key, value] : metadata_.items())
      if (known_.count(key) == 0)
        reader_.refuse(key.c_str(), "a key that the zoo does not know; it may change the model's numbers");
  }

 private:
  std::string known(const char* key) { return *known_.insert(name_ + "." + key).first; }

  const json metadata_;
  ConfigReader reader_;
  std::string name_;
  std::set<std::string> known_;
};

// Keys that other architectures or parts of files use; here only these values have a meaning.
void expect_plain(ArchitectureKeys& keys, const json& config, bool causal) {
  if (!config.contains("num_experts_per_tok")) {
    keys.expect("expert_count", 0, "a mixture of experts, which the architecture does not have");
    keys.expect("expert_used_count", 0, "a mixture of experts, which the architecture does not have");
  }
  keys.expect("attention.causal", causal, "another mask than the architecture's");
  const auto head_dim = config.find(config.contains("d_kv") ? "d_kv" : "head_dim");
  if (head_dim != config.end())
    keys.expect("attention.value_length", *head_dim, "expected the length of keys");
}

// Llama 3's scaling is stored as its divisors of the frequencies: those of Dubey et al. (2024) with the
// factor of the lowest frequency are compared with them.
void read_rope_factors(const GgufFile& file, const GgufFile::Tensor& tensor, json& config) {
  const std::string what = file.path().string() + ": tensor '" + tensor.name + "'";
  if (std::string_view(tensor.type->name) != "F32")
    throw Error(what, " is ", tensor.type->name, "; expected F32");
  std::vector<float> factors(static_cast<std::size_t>(tensor.end - tensor.begin) / sizeof(float));
  std::memcpy(factors.data(), file.data(tensor), tensor.end - tensor.begin);
  RopeScaling scaling{.kind = RopeScalingKind::kLlama3, .original_max_positions = 8192};
  scaling.low_frequency_factor = 1;
  scaling.high_frequency_factor = 4;
  scaling.factor = shortest(*std::max_element(factors.begin(), factors.end()));
  const std::vector<double> expected = llama3_divisors(scaling, config.at("rope_theta"), factors.size());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!(std::abs(factors[i] - expected[i]) <= 1e-5 * expected[i]))
      throw Error(what, " scales rotary positions in a way that the zoo does not have: not as Llama 3 does");
  }
  config["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", scaling.factor},
                            {"low_freq_factor", scaling.low_frequency_factor},
                            {"high_freq_factor", scaling.high_frequency_factor},
                            {"original_max_position_embeddings", scaling.original_max_positions}};
}

void read_rope(const GgufFile& file, ArchitectureKeys& keys, json& config) {
  if (config["rope_theta"].is_null()) config["rope_theta"] = 10000.0;
  const json dimensions = keys.number("rope.dimension_count", false);
  const std::int64_t heads = config.at("num_attention_heads");
  const std::int64_t head_dim = config.value(
      "head_dim", config.at("hidden_size").get<std::int64_t>() / std::max<std::int64_t>(heads, 1));
  if (!dimensions.is_null() && dimensions != head_dim)
    config["partial_rotary_factor"] = dimensions.get<double>() / static_cast<double>(head_dim);
  const std::string type = keys.text("rope.scaling.type");
  if (type != "" && type != "none" && type != "linear")
    keys.expect("rope.scaling.type", nullptr, "expected none or linear");
  json factor = keys.number("rope.scaling.factor", type == "linear");
  const json older = keys.number("rope.scale_linear", false);
  const char* of_factor = factor.is_null() ? "rope.scale_linear" : "rope.scaling.factor";
  if (factor.is_null()) factor = older;
  if (type != "none" && !factor.is_null() && factor != 1)
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
  keys.ignore("rope.scaling.original_context_length");  // of other scalings
  keys.ignore("rope.scaling.finetuned");
  keys.ignore("tensor_data_layout");
  const auto* factors = find_tensor(file, "rope_freqs.weight");
  if (factors == nullptr) return;
  // llama.cpp applies both scalings; the zoo has one.
  if (config.contains("rope_scaling"))
    keys.refuse(of_factor, "a scaling of rotary positions beside that of the tensor 'rope_freqs.weight'");
  read_rope_factors(file, *factors, config);
}

void complete_decoder(const GgufFile& file, const std::string& name, ArchitectureKeys& keys, json& config) {
  if (config["num_key_value_heads"].is_null()) config["num_key_value_heads"] = config["num_attention_heads"];
  const std::int64_t heads = config["num_attention_heads"], hidden = config["hidden_size"];
  if (heads <= 0) keys.expect("attention.head_count", nullptr, "expected a positive number");
  if (config["head_dim"].is_null()) config["head_dim"] = hidden / heads;
  read_rope(file, keys, config);
  if (name == "gemma2" || name == "gemma3") {
    // llama.cpp tells the models of 27B, which scale by the mean width of a head, by their layers.
    const bool largest = config["num_hidden_layers"] == (name == "gemma2" ? 46 : 62);
    config["query_pre_attn_scalar"] = largest ? hidden / heads : config["head_dim"].get<std::int64_t>();
    if (name == "gemma2") {
      for (const char* key : {"sliding_window", "attn_logit_softcapping", "final_logit_softcapping"})
        if (config[key].is_null()) config.erase(key);
    } else if (config["sliding_window"].is_null() || config["sliding_window"] == 0) {
      config["sliding_window"] = nullptr;
      config["sliding_window_pattern"] = 1;  // no layer has a window
    }
  } else if (name == "phi3") {
    const json window = keys.number("attention.sliding_window", false);
    if (!window.is_null() && window != 0) config["sliding_window"] = window;
  } else {
    keys.expect("attention.sliding_window", nullptr, "a window, which the architecture does not have");
  }
  if (name == "qwen3moe") config["norm_topk_prob"] = true;
  if (name == "qwen2moe") {
    config["norm_topk_prob"] = false;
    config["qkv_bias"] = find_tensor(file, "blk.0.attn_q.bias") != nullptr;
  }
  if (name == "smollm3" || name == "granite" || config.at("model_type") == "llama") {
    config["attention_bias"] = find_tensor(file, "blk.0.attn_q.bias") != nullptr;
    config["mlp_bias"] = find_tensor(file, "blk.0.ffn_up.bias") != nullptr;
  }
}

// T5 1.0 has no gate and scales the input of its projection, which is the embedding.
void complete_t5(const GgufArchitecture& architecture, ArchitectureKeys& keys, json& config) {
  const bool gated = architecture.marker != nullptr;
  config["feed_forward_proj"] = gated ? "gated-gelu" : "relu";
  config["scale_decoder_outputs"] = !gated;
  if (config["num_decoder_layers"].is_null()) config["num_decoder_layers"] = config["num_layers"];
  if (config["decoder_start_token_id"].is_null()) config["decoder_start_token_id"] = 0;
  keys.ignore("attention.layer_norm_epsilon");  // of its LayerNorms, of which it has none
}

// A vocabulary's size, whether the projection is the embedding, and ids of special tokens.
void read_vocabulary(const GgufFile& file, ArchitectureKeys& keys, json& config) {
  const auto* embedding = find_tensor(file, "token_embd.weight");
  if (embedding == nullptr) throw Error(file.path(), ": there is no tensor 'token_embd.weight'");
  config["vocab_size"] = embedding->shape.front();
  keys.expect("vocab_size", config["vocab_size"], "another size than the rows of token_embd.weight");
  const auto* output = find_tensor(file, "output.weight");
  config["tie_word_embeddings"] = output == nullptr || same_bytes(file, *embedding, *output);
  const ConfigReader reader(file.metadata(), file.path().string());
  const auto id_of = [&](const std::string& role) -> json {
    const std::string key = "tokenizer.ggml." + role + "_token_id";
    if (!reader.has(key.c_str())) return nullptr;
    const std::int64_t id = reader.get_int(key.c_str(), 0);
    if (id < 0 || id >= embedding->shape.front())
      reader.refuse(key.c_str(), "which is no token of the vocabulary");
    return id;
  };
  config["bos_token_id"] = id_of("bos");
  config["eos_token_id"] = id_of("eos");
  config["pad_token_id"] = id_of("padding");
  // Ends of a turn and of a message end a text in llama.cpp, too.
  for (const char* role : {"eot", "eom"}) {
    const json id = id_of(role);
    json& ends = config["eos_token_id"];
    if (id.is_null() || id == ends) continue;
    if (ends.is_null()) ends = json::array();
    if (!ends.is_array()) ends = json::array({ends});
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  }
}

void check_kind(const GgufFile& file) {
  const ConfigReader reader(file.metadata(), file.path().string());
  if (!reader.is("general.type", "model")) reader.refuse("general.type", "expected model");
  if (reader.get_int("split.count", 1) > 1)
    reader.refuse("split.count", "a part of a model; llama-gguf-split --merge joins the parts");
}

}  // namespace

const GgufArchitecture& architecture_of(const GgufFile& file) {
  const std::string name = file.text("general.architecture");
  std::vector<std::string> known;
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    if (architecture.name == name &&
        (architecture.marker == nullptr || find_tensor(file, architecture.marker)))
      return architecture;
    known.emplace_back(architecture.name);
  }
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw Error(file.path(), ": 'general.architecture' is '", name, "', which the zoo does not read; it reads ",
              joined(known));
}

json architecture_metadata(const GgufFile& file) {
  const std::string prefix = file.text("general.architecture") + ".";
  json own = json::object();
  for (const auto& [key, value] : file.metadata().items()) {
    if (!key.starts_with(prefix)) continue;
    const bool differs = std::adjacent_find(value.begin(), value.end(), std::not_equal_to()) != value.end();
    own[key] = value.is_array() && !value.empty() && !differs ? value.front() : value;
  }
  return own;
}

std::vector<double> llama3_divisors(const RopeScaling& scaling, double theta, std::size_t count) {
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  std::vector<double> divisors;
  for (std::size_t i = 0; i < count; ++i) {
    const double turns = static_cast<double>(scaling.original_max_positions) / (2 * M_PI) *
                         std::pow(theta, -static_cast<double>(i) / static_cast<double>(count));
    const double smooth = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    divisors.push_back(1 / ((1 - smooth) / scaling.factor + smooth));
  }
  return divisors;
}

json config_of(const GgufFile& file) {
  check_kind(file);
  const GgufArchitecture& architecture = architecture_of(file);
  const std::string name = architecture.name;
  ArchitectureKeys keys(file);
  json config{{"model_type", architecture.model_type}, {"architectures", {architecture.head_class}}};
  for (const GgufKey& key : architecture.keys) config[key.ours] = keys.number(key.theirs, key.required);
  read_vocabulary(file, keys, config);
  if (keys.number("block_count", true) > file.tensors().size())
    keys.expect("block_count", nullptr, "more layers than the file has tensors");
  const bool is_bert = name == "bert" || name == "nomic-bert";
  if (const auto* types = find_tensor(file, "token_types.weight"); is_bert)
    config["type_vocab_size"] = types == nullptr ? 0 : types->shape.front();
  if (name == "nomic-bert") read_rope(file, keys, config);
  if (name == "t5") complete_t5(architecture, keys, config);
  if (config.contains("rms_norm_eps")) complete_decoder(file, name, keys, config);
  expect_plain(keys, config, /*causal=*/!is_bert);
  // What the file leaves to a default is absent here, too: transformers refuses null. Only no window is null.
  for (const GgufKey& key : architecture.keys) {
    const auto found = config.find(key.ours);
    if (found != config.end() && found->is_null() && found.key() != "sliding_window") config.erase(found);
  }
  if (name == "nomic-bert" && config.at("pad_token_id").is_null()) config.erase("pad_token_id");
  keys.ignore("pooling_type");  // SentenceConfig reads it
  keys.refuse_others();
  return config;
}

}  // namespace zoo
