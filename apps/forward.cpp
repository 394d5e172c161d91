#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/torch_options.h"
#include "apps/verbs.h"
#include "models/io/checkpoint.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct ForwardFlags {
  fs::path model, output;
  std::string input_ids;
  std::optional<std::string> attention_mask, decoder_input_ids, labels, head;
  bool gradients = false;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, ForwardFlags& values) {
  Flags flags(
      arguments.command,
      "Runs a model on ids and writes all that it computes, for comparing with another implementation: "
      "logits, loss, hidden_states.N, attentions.N and, if asked for, grad.NAME under Hugging Face's names.");
  flags.add("model", values.model, "checkpoint directory").placeholder("DIR").required();
  flags.add("input_ids", values.input_ids, "a list of rows of ids, all as long: '[[1, 2], [3, 4]]'")
      .placeholder("JSON")
      .required();
  flags
      .add("attention_mask", values.attention_mask,
           "1 keeps a token, 0 hides it; rows as those of --input_ids")
      .placeholder("JSON");
  flags
      .add("decoder_input_ids", values.decoder_input_ids,
           "what the decoder of an encoder-decoder reads; without them, --labels shifted right")
      .placeholder("JSON");
  flags.add("labels", values.labels, "aligned with --input_ids; -100 is ignored. They make the loss")
      .placeholder("JSON");
  flags.add("head", values.head, "the head, instead of that of config.json").placeholder("NAME");
  flags.add("gradients", values.gradients, "write the gradients of the loss too");
  flags.add("output", values.output, "the safetensors file to write").placeholder("FILE").required();
  flags.add_compute(values.compute);
  flags.example("tzoo forward --model gpt2 --input_ids '[[464, 3797]]' --output out.safetensors");
  if (!flags.parse(arguments)) return false;
  if (values.gradients && !values.labels) throw UsageError("--gradients needs --labels: they are the loss's");
  return true;
}

// What a flag accepts: rows of integers from `smallest` to `largest`, or `ignored`.
struct IdRange {
  std::int64_t smallest, largest;
  std::optional<std::int64_t> ignored;
};

std::int64_t read_id(const char* flag, const nlohmann::json& value, const IdRange& range) {
  // A number beyond 64 bits with a sign is not in any range either.
  const bool is_id = value.is_number_integer() &&
                     (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  const std::int64_t id = is_id ? value.get<std::int64_t>() : 0;
  const bool ignored = is_id && range.ignored && id == *range.ignored;
  if (is_id && (ignored || (id >= range.smallest && id <= range.largest))) return id;
  std::string expected = std::to_string(range.smallest) + " to " + std::to_string(range.largest);
  if (range.ignored) expected += ", or " + std::to_string(*range.ignored);
  throw Error("--", flag, ": expected integers from ", expected, ", got ", value.dump());
}

// [B, T] from "[[…], …]".
at::Tensor read_ids(const char* flag, const std::string& text, const IdRange& range) {
  const nlohmann::json rows = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool is_list = rows.is_array() && !rows.empty();
  if (!is_list)
    throw Error("--", flag, ": expected a list of rows such as [[1, 2], [3, 4]], got '", text, "'");
  std::vector<std::int64_t> ids;
  for (const nlohmann::json& row : rows) {
    if (!row.is_array() || row.empty()) throw Error("--", flag, ": expected rows of ids, got ", row.dump());
    if (row.size() != rows[0].size()) {
      throw Error("--", flag, ": the rows must be equally long, got ", rows[0].size(), " and ", row.size(),
                  "; pad them and give --attention_mask");
    }
    for (const nlohmann::json& id : row) ids.push_back(read_id(flag, id, range));
  }
  return at::tensor(ids).view({static_cast<std::int64_t>(rows.size()), -1});
}

ModelInputs read_inputs(const ForwardFlags& flags, const TransformerConfig& config,
                        const c10::Device& device) {
  const std::int64_t last = config.vocab_size - 1;
  ModelInputs inputs{.output_hidden_states = true, .output_attentions = true};
  inputs.input_ids = read_ids("input_ids", flags.input_ids, {0, last, std::nullopt}).to(device);
  const at::IntArrayRef sizes = inputs.input_ids.sizes();
  const auto read_beside = [&](const char* flag, const std::optional<std::string>& text,
                               const IdRange& range) {
    if (!text) return at::Tensor();
    const at::Tensor ids = read_ids(flag, *text, range);
    if (ids.sizes() == sizes) return ids.to(device);
    throw Error("--", flag, ": must be ", sizes, " as --input_ids, got ", ids.sizes());
  };
  inputs.attention_mask = read_beside("attention_mask", flags.attention_mask, {0, 1, std::nullopt});
  if (config.shape != Shape::kEncoderDecoder) {
    inputs.labels = read_beside("labels", flags.labels, {0, last, -100});
    return inputs;
  }
  if (flags.decoder_input_ids)
    inputs.decoder_input_ids =
        read_ids("decoder_input_ids", *flags.decoder_input_ids, {0, last, std::nullopt}).to(device);
  if (flags.labels) inputs.labels = read_ids("labels", *flags.labels, {0, last, -100}).to(device);
  return inputs;
}

// The gradient of every weight under its Hugging Face name; zeros where the loss does not reach it.
NamedTensors gradients_of(const LoadedModel& loaded) {
  const WeightTable table = loaded.family->weight_table(loaded.model->config());
  const auto parameters = loaded.model->named_parameters();
  NamedTensors gradients;
  for (const WeightName& name : expand_layers(table.names, loaded.model->config().num_layers)) {
    const at::Tensor* parameter = parameters.find(name.ours);
    if (parameter == nullptr) continue;
    const at::Tensor gradient = parameter->grad().defined() ? parameter->grad() : at::zeros_like(*parameter);
    for (const auto& [theirs, tensor] : export_tensor(name, gradient, table)) {
      gradients.emplace_back("grad." + theirs, tensor);
    }
  }
  return gradients;
}

NamedTensors tensors_of(const ModelOutput& output) {
  NamedTensors tensors;
  const auto add_list = [&](const std::string& name, const std::vector<at::Tensor>& list) {
    for (std::size_t i = 0; i < list.size(); ++i)
      tensors.emplace_back(name + "." + std::to_string(i), list[i]);
  };
  tensors.emplace_back(output.logits.defined() ? "logits" : "last_hidden_state",
                       output.logits.defined() ? output.logits : output.last_hidden_state);
  if (output.loss.defined()) tensors.emplace_back("loss", output.loss);
  const std::string decoder = output.encoder_last_hidden_state.defined() ? "decoder_" : "";
  add_list("encoder_hidden_states", output.encoder_hidden_states);
  add_list("encoder_attentions", output.encoder_attentions);
  add_list(decoder + "hidden_states", output.hidden_states);
  add_list(decoder + "attentions", output.attentions);
  add_list("cross_attentions", output.cross_attentions);
  return tensors;
}

}  // namespace

int run_forward(const Arguments& arguments) {
  ForwardFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  apply_threads(flags.compute);
  LoadOptions options{.dtype = dtype_of(flags.compute), .device = device_of(flags.compute)};
  options.trainable = flags.gradients;
  if (flags.head) options.head = head_named(*flags.head);
  const LoadedModel loaded = load_model(flags.model, options);
  const ModelInputs inputs = read_inputs(flags, loaded.model->config(), options.device);

  const at::AutoGradMode record(flags.gradients);
  const ModelOutput output = loaded.model->forward(inputs);
  NamedTensors tensors = tensors_of(output);
  if (flags.gradients) {
    output.loss.backward();
    for (auto& entry : gradients_of(loaded)) tensors.push_back(std::move(entry));
  }
  write_safetensors(flags.output, tensors);
  std::cerr << "wrote " << tensors.size() << " tensors to " << flags.output.string() << "\n";
  return 0;
}

}  // namespace zoo
