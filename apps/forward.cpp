#include <iostream>

#include "apps/command/flags.h"
#include "apps/forward_inputs.h"
#include "apps/torch_options.h"
#include "apps/verbs.h"
#include "models/io/checkpoint.h"
#include "models/io/named_tensors.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct ForwardFlags {
  fs::path model, output;
  ForwardTexts texts;
  std::optional<std::string> head;
  bool gradients = false;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, ForwardFlags& values) {
  Flags flags(
      arguments.command,
      "Runs a model on ids and writes all that it computes, for comparing with another implementation: "
      "logits (or start_logits and end_logits, or last_hidden_state and pooler_output), loss, "
      "hidden_states.N, attentions.N (of an encoder-decoder encoder_hidden_states.N, cross_attentions.N, …) "
      "and, if asked for, grad.NAME under Hugging Face's names.");
  flags.add("model", values.model, "checkpoint directory").placeholder("DIR").required();
  flags.add("input_ids", values.texts.input_ids, "a list of rows of ids, all as long: '[[1, 2], [3, 4]]'")
      .placeholder("JSON")
      .required();
  flags
      .add("attention_mask", values.texts.attention_mask,
           "1 keeps a token, 0 hides it; rows as those of --input_ids")
      .placeholder("JSON");
  flags
      .add("token_type_ids", values.texts.token_type_ids,
           "the segment of each token; rows as those of --input_ids")
      .placeholder("JSON");
  flags
      .add("decoder_input_ids", values.texts.decoder_input_ids,
           "what the decoder of an encoder-decoder reads; without them, --labels shifted right")
      .placeholder("JSON");
  flags
      .add("labels", values.texts.labels,
           "they make the loss: rows as those of --input_ids, where -100 is ignored; '[0, 2]' to classify "
           "sequences; '[[START, END], [START, END]]' to answer questions")
      .placeholder("JSON");
  flags.add("head", values.head, "the head, instead of that of config.json").placeholder("NAME");
  flags.add("gradients", values.gradients, "write the gradients of the loss too");
  flags.add("output", values.output, "the safetensors file to write").placeholder("FILE").required();
  flags.add_compute(values.compute);
  flags.example("tzoo forward --model gpt2 --input_ids '[[464, 3797]]' --output out.safetensors");
  if (!flags.parse(arguments)) return false;
  if (values.gradients && !values.texts.labels)
    throw UsageError("--gradients needs --labels: they are the loss's");
  return true;
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
  const ModelInputs inputs = read_forward_inputs(flags.texts, loaded, options.device);

  const at::AutoGradMode record(flags.gradients);
  const ModelOutput output = loaded.model->forward(inputs);
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
