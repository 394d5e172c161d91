#include <algorithm>
#include <iostream>

#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/checkpoint_files.h"
#include "apps/verbs/measure/evaluations.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/named_tensors.h"
#include "models/model.h"
#include "models/registry.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

struct ForwardFlags {
  ModelPath model;
  std::filesystem::path output;
  // JSON
  std::string input_ids;
  std::optional<std::string> attention_mask, token_type_ids, decoder_input_ids, labels, next_sentence_label;
  std::optional<std::string> head;
  bool gradients = false, attentions = true;
  ComputeOptions compute{.weights = "modules"};

  bool packed() const { return compute.weights != "modules"; }
};

std::vector<std::string> head_names() {
  std::vector<std::string> names;
  for (const Family& family : families())
    for (const auto& entry : family.heads)
      if (std::ranges::count(names, name_of(entry.head)) == 0) names.push_back(name_of(entry.head));
  return names;
}

// Each row up to its padding: an encoder's input.
std::vector<TokenIds> sources_of(const ModelInputs& inputs) {
  std::vector<TokenIds> sources = rows_of(inputs.input_ids);
  if (!inputs.attention_mask.defined()) return sources;
  const std::vector<TokenIds> masks = rows_of(inputs.attention_mask.to(at::kLong));
  for (std::size_t row = 0; row < sources.size(); ++row) {
    const auto end = std::ranges::find(masks[row], 0);
    if (end == masks[row].begin() || std::find(end, masks[row].end(), 1) != masks[row].end())
      throw Error(
          "--attention_mask: with packed weights an encoder-decoder reads rows with padding at their end "
          "alone, row ",
          row, " has it elsewhere");
    sources[row].resize(static_cast<std::size_t>(end - masks[row].begin()));
  }
  return sources;
}

// The answer of packed weights, which have no hidden states or attention weights to show and give zeros for
// what the mask of an encoder hides.
ModelOutput packed_output(const ForwardFlags& flags, const LoadedModel& loaded, ModelInputs inputs) {
  inputs.output_hidden_states = inputs.output_attentions = false;
  const bool translates = loaded.head == Head::kSeq2SeqLm;
  if (loaded.head != Head::kCausalLm && !translates) {
    make_ready(loaded, flags.compute);
    return loaded.model->forward(inputs);
  }
  if (flags.attention_mask && !translates)
    throw UsageError("--attention_mask: a decoder with packed weights reads rows without padding");
  const auto model = decoding_model(loaded, flags.compute);
  const at::Tensor& read = translates ? inputs.decoder_input_ids : inputs.input_ids;
  const auto session =
      translates ? model->begin(sources_of(inputs), read.size(1)) : model->begin(read.size(0), read.size(1));
  ModelOutput output;
  output.logits = session->read(rows_of(read), DecodingSession::Logits::kAll);
  return output;
}

constexpr std::int64_t kIgnored = -100;

// Ids that a flag accepts: integers from `smallest` to `largest`, or `ignored`.
struct IdRange {
  std::int64_t smallest, largest;
  std::optional<std::int64_t> ignored = {};
};

std::int64_t read_id(const char* flag, const nlohmann::json& value, const IdRange& range) {
  // An integer beyond int64 is never in range.
  const bool is_id = value.is_number_integer() &&
                     (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  const std::int64_t id = is_id ? value.get<std::int64_t>() : 0;
  const bool ignored = is_id && range.ignored && id == *range.ignored;
  if (is_id && (ignored || (id >= range.smallest && id <= range.largest))) return id;
  std::string expected = std::to_string(range.smallest) + " to " + std::to_string(range.largest);
  if (range.ignored) expected += ", or " + std::to_string(*range.ignored);
  throw UsageError("--", flag, ": expected integers from ", expected, ", got ", value.dump());
}

void check_row(const char* flag, const nlohmann::json& row, const nlohmann::json& first) {
  if (!row.is_array() || row.empty()) throw UsageError("--", flag, ": expected rows, got ", row.dump());
  if (row.size() == first.size()) return;
  throw UsageError("--", flag, ": the rows must be equally long, got ", first.size(), " and ", row.size(),
                   "; pad them and give --attention_mask");
}

// Parses "[…]" as [B] or "[[…], …]" as [B, T]; `read` checks each number.
template <class Read>
at::Tensor read_tensor(const char* flag, const std::string& text, const char* expected, const Read& read) {
  const nlohmann::json list = parse_json(text);
  if (!list.is_array() || list.empty())
    throw UsageError("--", flag, ": expected a list of ", expected, ", got '", text, "'");
  const bool rows = list[0].is_array();
  std::vector<decltype(read(list))> numbers;
  for (const nlohmann::json& row : list) {
    if (rows) check_row(flag, row, list[0]);
    for (const nlohmann::json& number : rows ? row : nlohmann::json::array({row}))
      numbers.push_back(read(number));
  }
  const at::Tensor flat = at::tensor(numbers);
  return rows ? flat.view({static_cast<std::int64_t>(list.size()), -1}) : flat;
}

at::Tensor read_ids(const char* flag, const std::string& text, const IdRange& range, std::int64_t dim = 2) {
  const char* expected = dim == 2 ? "rows such as [[1, 2], [3, 4]]" : "classes such as [0, 2]";
  const at::Tensor ids =
      read_tensor(flag, text, expected, [&](const auto& id) { return read_id(flag, id, range); });
  if (ids.dim() == dim) return ids;
  throw UsageError("--", flag, ": expected a list of ", expected, ", got '", text, "'");
}

// Integers are class labels unless the configuration says otherwise; a row is one number per label.
at::Tensor read_sequence_labels(const std::string& text, const TransformerConfig& config) {
  const nlohmann::json parsed = parse_json(text);
  const bool rows = parsed.is_array() && !parsed.empty() && parsed[0].is_array();
  const ProblemType problem = config.problem_type;
  const bool classes = problem == ProblemType::kSingleLabel ||
                       (problem == ProblemType::kByLabels && config.num_labels > 1 && !rows);
  if (classes) return read_ids("labels", text, {0, config.num_labels - 1, kIgnored}, /*dim=*/1);
  const auto number = [](const nlohmann::json& value) {
    if (value.is_number()) return value.get<float>();
    throw UsageError("--labels: expected numbers, got ", value.dump());
  };
  return read_tensor("labels", text, "numbers such as [0.5, 2] or of rows of them", number);
}

void check_sizes(const char* flag, const at::Tensor& found, at::IntArrayRef expected, const char* why) {
  if (found.sizes() != expected)
    throw UsageError("--", flag, ": must be ", expected, why, ", got ", found.sizes());
}

// Rows of another length than those of --input_ids.
at::Tensor read_rows(const char* flag, const std::string& text, const IdRange& range, std::int64_t batch) {
  const at::Tensor ids = read_ids(flag, text, range);
  if (ids.size(0) == batch) return ids;
  throw UsageError("--", flag, ": must have ", batch, " rows as --input_ids, got ", ids.size(0));
}

at::Tensor read_sentence_labels(const char* flag, const std::string& text, std::int64_t batch) {
  const at::Tensor labels = read_ids(flag, text, {0, 1, kIgnored}, /*dim=*/1);
  check_sizes(flag, labels, {batch}, " as there are rows of --input_ids");
  return labels;
}

at::Tensor read_labels_of(const LoadedModel& loaded, const std::string& text, at::IntArrayRef sizes) {
  const TransformerConfig& config = loaded.model->config();
  const std::int64_t batch = sizes[0];
  const auto beside_ids = [&](std::int64_t classes) {
    const at::Tensor labels = read_ids("labels", text, {0, classes - 1, kIgnored});
    check_sizes("labels", labels, sizes, " as --input_ids");
    return labels;
  };
  switch (loaded.head) {
    case Head::kBase: throw UsageError("--labels: the base head has no loss (--head chooses another)");
    case Head::kSequenceClassification: {
      const at::Tensor labels = read_sequence_labels(text, config);
      if (labels.dim() == 1) check_sizes("labels", labels, {batch}, " as there are rows of --input_ids");
      if (labels.dim() == 2) check_sizes("labels", labels, {batch, config.num_labels}, ", a number a label");
      return labels;
    }
    case Head::kNextSentence: return read_sentence_labels("labels", text, batch);
    case Head::kQuestionAnswering: {
      const at::Tensor labels = read_ids("labels", text, {INT32_MIN, INT32_MAX});
      check_sizes("labels", labels, {batch, 2}, ", [start, end] of each row of --input_ids");
      return labels;
    }
    case Head::kSeq2SeqLm:  // as long as the decoder's input
      return read_rows("labels", text, {0, config.vocab_size - 1, kIgnored}, batch);
    case Head::kTokenClassification: return beside_ids(config.num_labels);
    case Head::kReplacedTokens: return beside_ids(2);
    default: return beside_ids(config.vocab_size);
  }
}

void read_decoder_ids(const ForwardFlags& flags, const LoadedModel& loaded, ModelInputs& inputs) {
  const TransformerConfig& config = loaded.model->config();
  const bool decodes = config.shape == Shape::kEncoderDecoder;
  if (!flags.decoder_input_ids) {
    // Those of a head that classifies or answers are the encoder's.
    const bool shifted = loaded.head == Head::kSequenceClassification ||
                         loaded.head == Head::kQuestionAnswering ||
                         (flags.labels && loaded.head != Head::kBase);
    if (decodes && !shifted)
      throw UsageError("--decoder_input_ids: an encoder-decoder needs them, or --labels");
    return;
  }
  if (!decodes)
    throw UsageError("--decoder_input_ids: ", loaded.family->model_type, " is no encoder-decoder");
  inputs.decoder_input_ids = read_rows("decoder_input_ids", *flags.decoder_input_ids,
                                       {0, config.vocab_size - 1}, inputs.input_ids.size(0))
                                 .to(inputs.input_ids.device());
}

// Labels depend on the head: rows of ids as input_ids, a number or row of numbers a row, or [start, end].
ModelInputs read_forward_inputs(const ForwardFlags& flags, const LoadedModel& loaded,
                                const c10::Device& device) {
  const TransformerConfig& config = loaded.model->config();
  ModelInputs inputs{.loss = {.router = true}, .output_hidden_states = true, .output_attentions = true};
  inputs.input_ids = read_ids("input_ids", flags.input_ids, {0, config.vocab_size - 1}).to(device);
  const at::IntArrayRef sizes = inputs.input_ids.sizes();
  const auto read_beside = [&](const char* flag, const std::optional<std::string>& text,
                               const IdRange& range) {
    if (!text) return at::Tensor();
    const at::Tensor ids = read_ids(flag, *text, range);
    check_sizes(flag, ids, sizes, " as --input_ids");
    return ids.to(device);
  };
  inputs.attention_mask = read_beside("attention_mask", flags.attention_mask, {0, 1});
  if (flags.token_type_ids && config.type_vocab_size == 0)
    throw UsageError("--token_type_ids: ", loaded.family->model_type, " has no token types");
  inputs.token_type_ids =
      read_beside("token_type_ids", flags.token_type_ids, {0, config.type_vocab_size - 1});
  read_decoder_ids(flags, loaded, inputs);
  if (flags.labels) inputs.labels = read_labels_of(loaded, *flags.labels, sizes).to(device);
  if (flags.next_sentence_label) {
    if (loaded.head != Head::kPretraining)
      throw UsageError("--next_sentence_label: only a pretraining head has two losses");
    inputs.sentence_labels =
        read_sentence_labels("next_sentence_label", *flags.next_sentence_label, sizes[0]).to(device);
  }
  return inputs;
}

}  // namespace

int run_forward(const Arguments& arguments) {
  ForwardFlags values;
  Flags flags(arguments.command,
              "Runs a model on token ids and saves everything that it computes, to compare it with another "
              "implementation: logits (or start_logits and end_logits, or prediction_logits and "
              "seq_relationship_logits, or last_hidden_state and pooler_output), "
              "loss, hidden_states.N, attentions.N (for an encoder-decoder encoder_hidden_states.N, "
              "cross_attentions.N, …) and, with --gradients, grad.NAME under Hugging Face's names.");
  add_model_flag(flags, values.model);
  flags.add("input_ids", values.input_ids, "rows of token ids, all of the same length: '[[1, 2], [3, 4]]'",
            {.placeholder = "JSON", .required = true});
  flags.add("attention_mask", values.attention_mask, "1 keeps a token, 0 hides it; same shape as --input_ids",
            {.placeholder = "JSON"});
  flags.add("token_type_ids", values.token_type_ids,
            "segment of each token, counted from 0; same shape as --input_ids", {.placeholder = "JSON"});
  flags.add("decoder_input_ids", values.decoder_input_ids,
            "token ids that the decoder of an encoder-decoder reads; default: --labels shifted right",
            {.placeholder = "JSON"});
  flags.add("labels", values.labels,
            "targets of the loss: same shape as --input_ids, where -100 is ignored; '[0, 2]' for sequence "
            "classification; '[[START, END], [START, END]]' for question answering",
            {.placeholder = "JSON"});
  flags.add(
      "next_sentence_label", values.next_sentence_label,
      "'[0, 1]': targets of a pretraining head's second loss, whether each row's second segment follows "
      "the first (0; for ALBERT: is in order)",
      {.placeholder = "JSON"});
  flags.add("head", values.head, "head of the model; default: the one in config.json",
            {.placeholder = "NAME", .choices = head_names()});
  flags.add("gradients", values.gradients, "also save the gradients of the loss; needs --labels");
  flags.add(
      "attentions", values.attentions,
      "save the attention weights; false: leave them out, so that the fused kernels run, as in training "
      "and generation");
  flags.add_weights(values.compute);
  flags.add("output", values.output, "safetensors file to write", {.placeholder = "FILE", .required = true});
  flags.add_compute(values.compute);
  flags.example("tzoo forward --model gpt2 --input_ids '[[464, 3797]]' --output out.safetensors");
  if (!flags.parse(arguments)) return 0;
  if (values.gradients && !values.labels)
    throw UsageError("--gradients needs --labels, from which the loss is computed");
  if (values.packed() && (values.gradients || values.labels))
    throw UsageError("--labels: packed weights are for inference, without a loss; use --weights modules");
  apply_threads(values.compute);
  check_output_file(values.model, values.output);
  std::optional<Head> head;
  if (values.head) head = head_named(*values.head);
  const CheckpointConfig checkpoint = read_checkpoint_config(values.model, head);
  const LoadOptions options{.dtype = dtype_of(values.compute),
                            .device = device_of(values.compute, checkpoint),
                            .trainable = values.gradients,
                            .stored = packs(checkpoint, values.compute)};
  const LoadedModel loaded = load_model(checkpoint, options);
  ModelInputs inputs = read_forward_inputs(values, loaded, options.device);
  inputs.output_attentions = values.attentions;

  const at::AutoGradMode record(values.gradients);
  const ModelOutput output =
      values.packed() ? packed_output(values, loaded, inputs) : loaded.model->forward(inputs);
  NamedTensors tensors = tensors_of(output, loaded.head);
  if (values.gradients) {
    output.loss.backward();
    for (auto& entry : gradients_of(loaded)) tensors.push_back(std::move(entry));
  }
  write_safetensors(values.output, tensors);
  std::cerr << "wrote " << tensors.size() << " tensors to " << values.output.string() << "\n";
  return 0;
}

}  // namespace zoo
