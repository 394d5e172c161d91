#include <algorithm>
#include <iostream>

#include "apps/command/flags.h"
#include "apps/compute/threads.h"
#include "apps/hub/find_model.h"
#include "apps/verbs/checkpoint_files.h"
#include "apps/verbs/look/forward_inputs.h"
#include "apps/verbs/measure/packed_evaluation.h"
#include "apps/verbs/verbs.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/named_tensors.h"
#include "models/registry.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct ForwardFlags {
  ModelPath model;
  fs::path output;
  ForwardTexts texts;
  std::optional<std::string> head;
  bool gradients = false, attentions = true;
  ComputeOptions compute{.weights = "modules"};

  bool packed() const { return compute.weights != "modules"; }
};

// Names of all heads of all families.
std::vector<std::string> head_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    for (const auto& entry : family.heads) {
      const std::string& name = name_of(entry.head);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

bool read_flags(const Arguments& arguments, ForwardFlags& values) {
  Flags flags(arguments.command,
              "Runs a model on token ids and saves everything that it computes, to compare it with another "
              "implementation: logits (or start_logits and end_logits, or prediction_logits and "
              "seq_relationship_logits, or last_hidden_state and pooler_output), "
              "loss, hidden_states.N, attentions.N (for an encoder-decoder encoder_hidden_states.N, "
              "cross_attentions.N, …) and, with --gradients, grad.NAME under Hugging Face's names.");
  add_model_flag(flags, values.model);
  flags.add("input_ids", values.texts.input_ids,
            "rows of token ids, all of the same length: '[[1, 2], [3, 4]]'",
            {.placeholder = "JSON", .required = true});
  flags.add("attention_mask", values.texts.attention_mask,
            "1 keeps a token, 0 hides it; same shape as --input_ids", {.placeholder = "JSON"});
  flags.add("token_type_ids", values.texts.token_type_ids,
            "segment of each token, counted from 0; same shape as --input_ids", {.placeholder = "JSON"});
  flags.add("decoder_input_ids", values.texts.decoder_input_ids,
            "token ids that the decoder of an encoder-decoder reads; default: --labels shifted right",
            {.placeholder = "JSON"});
  flags.add("labels", values.texts.labels,
            "targets of the loss: same shape as --input_ids, where -100 is ignored; '[0, 2]' for sequence "
            "classification; '[[START, END], [START, END]]' for question answering",
            {.placeholder = "JSON"});
  flags.add(
      "next_sentence_label", values.texts.next_sentence_label,
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
  if (!flags.parse(arguments)) return false;
  if (values.gradients && !values.texts.labels)
    throw UsageError("--gradients needs --labels, from which the loss is computed");
  if (values.packed() && (values.gradients || values.texts.labels))
    throw UsageError("--labels: packed weights are for inference, without a loss; use --weights modules");
  return true;
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
  if (flags.texts.attention_mask && !translates)
    throw UsageError("--attention_mask: a decoder with packed weights reads rows without padding");
  const auto model = decoding_model(loaded, flags.compute);
  const at::Tensor& read = translates ? inputs.decoder_input_ids : inputs.input_ids;
  const auto session =
      translates ? model->begin(sources_of(inputs), read.size(1)) : model->begin(read.size(0), read.size(1));
  ModelOutput output;
  output.logits = session->read(rows_of(read), DecodingSession::Logits::kAll);
  return output;
}

}  // namespace

int run_forward(const Arguments& arguments) {
  ForwardFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  apply_threads(flags.compute);
  check_output_file(flags.model, flags.output);
  std::optional<Head> head;
  if (flags.head) head = head_named(*flags.head);
  const CheckpointConfig checkpoint = read_checkpoint_config(flags.model, head);
  const LoadOptions options{.dtype = dtype_of(flags.compute),
                            .device = device_of(flags.compute, checkpoint),
                            .trainable = flags.gradients,
                            .stored = packs(checkpoint, flags.compute)};
  const LoadedModel loaded = load_model(checkpoint, options);
  ModelInputs inputs = read_forward_inputs(flags.texts, loaded, options.device);
  inputs.output_attentions = flags.attentions;

  const at::AutoGradMode record(flags.gradients);
  const ModelOutput output =
      flags.packed() ? packed_output(flags, loaded, inputs) : loaded.model->forward(inputs);
  NamedTensors tensors = tensors_of(output, loaded.head);
  if (flags.gradients) {
    output.loss.backward();
    for (auto& entry : gradients_of(loaded)) tensors.push_back(std::move(entry));
  }
  write_safetensors(flags.output, tensors);
  std::cerr << "wrote " << tensors.size() << " tensors to " << flags.output.string() << "\n";
  return 0;
}

}  // namespace zoo
