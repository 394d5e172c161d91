#include "apps/train_options.h"

#include "apps/training/disagreement_loss.h"
#include "apps/training/optimizer.h"
#include "apps/training/schedule.h"

namespace zoo {
namespace {

void declare_run(Flags& flags, TrainFlags& v) {
  flags.group("Run");
  flags.add_recipes();
  flags.add("out_dir", v.out_dir, "where the run keeps its checkpoints, metrics and plot")
      .required()
      .placeholder("DIR");
  flags.add("init_from", v.init_from,
            "scratch, resume (the run in out_dir), or a checkpoint folder to start from");
  flags.add("dry_run", v.dry_run, "say how much memory and time an update takes, and train nothing");
  flags.add("overwrite", v.overwrite, "let init_from scratch replace a run in out_dir");
}

void declare_model(Flags& flags, ModelFlags& v) {
  flags.group("Model (a checkpoint brings its own)");
  flags.add("model_type", v.model_type, "the family; gpt2, bert or t5 as the task needs it, unless given");
  flags.add("n_layer", v.n_layer, "blocks, of an encoder-decoder in each of its two stacks").at_least(1);
  flags.add("n_head", v.n_head, "attention heads; n_embd must be a multiple").at_least(1);
  flags.add("n_kv_head", v.n_kv_head, "llama: heads of keys and values; n_head unless given").at_least(1);
  flags.add("n_embd", v.n_embd, "width of the residual stream").at_least(1);
  flags.add("n_inner", v.n_inner, "width of the feed-forward layers; 4 n_embd unless given").at_least(1);
  flags.choice("activation", v.activation,
               {"gelu_new", "gelu", "relu", "silu", "gated-gelu", "gated-silu", "gated-relu"},
               "of the feed-forward layers; the family's own unless given, gated ones of t5");
  flags.add("dropout", v.dropout, "rate on embeddings, attention weights and sublayers").between(0, 0.99);
  flags
      .add("initializer_range", v.initializer_range,
           "standard deviation of fresh weights, of t5 the factor of its own; 0.02 and 1 unless given")
      .between(1e-6, 10);
  flags.add("bias", v.bias, "gpt2: biases in projections and norms");
}

void declare_adaptation(Flags& flags, TrainFlags& v) {
  flags.group("Fine-tuning");
  flags.add("freeze", v.freeze, "parameters that stay as they are, such as 'embeddings.*'; may be repeated")
      .placeholder("PATTERN");
  flags.add("lora_rank", v.lora_rank, "train low-rank adapters of this rank in place of the weights; 0: none")
      .at_least(0);
  flags.add("lora_alpha", v.lora_alpha, "the adapters count alpha / rank times").above(0);
  flags
      .add("lora_targets", v.lora_targets,
           "projections that get one; '*attention*' unless given; may be repeated")
      .placeholder("PATTERN");
}

void declare_optimisation(Flags& flags, TrainFlags& v) {
  flags.group("Optimisation");
  flags.add("batch_size", v.batch_size, "examples in a micro batch").at_least(1);
  flags.add("gradient_accumulation_steps", v.gradient_accumulation_steps, "micro batches in an update")
      .at_least(1);
  flags.add("max_iters", v.max_iters, "updates").at_least(0);
  flags.choice("optimizer", v.optimizer, optimizer_names(), "how the weights follow the gradient");
  flags.add("learning_rate", v.learning_rate, "the highest").above(0);
  flags.add("min_lr", v.min_lr, "the learning rate at the end of the decay").at_least(0);
  flags.add("warmup_iters", v.warmup_iters, "updates until the learning rate is at its highest").at_least(0);
  flags.add("lr_decay_iters", v.lr_decay_iters, "where the decay ends; max_iters unless given").at_least(0);
  flags.choice("lr_schedule", v.lr_schedule, schedule_names(), "how the learning rate falls");
  flags.add("lr_cycles", v.lr_cycles, "linear and cosine: so many falls, each from the highest (restarts)")
      .at_least(1);
  flags
      .add("cooldown_iters", v.cooldown_iters,
           "wsd: updates of the fall at the end; a tenth of lr_decay_iters unless given")
      .at_least(0);
  flags.add("decay_lr", v.decay_lr, "false: keep learning_rate throughout, without warm-up (nanoGPT's flag)");
  flags.add("beta1", v.beta1, "AdamW and Lion: decay of the first moment").between(0, 0.999999);
  flags.add("beta2", v.beta2, "AdamW and Lion: decay of the second moment").between(0, 0.999999);
  flags.add("adam_eps", v.adam_eps, "AdamW: added to the root of the second moment").above(0);
  flags.add("momentum", v.momentum, "SGD: of the velocity").between(0, 0.999999);
  flags.add("weight_decay", v.weight_decay, "of matrices and embeddings").at_least(0);
  flags.choice(
      "disagreement", v.disagreement, disagreement_names(),
      "a penalty on heads that are alike in what they attend to, in their values or in their outputs");
  flags.add("disagreement_weight", v.disagreement_weight, "of that penalty beside the loss").at_least(0);
  flags.add("grad_clip", v.grad_clip, "largest norm of the gradient; 0: not clipped").at_least(0);
  flags.add("activation_checkpointing", v.activation_checkpointing,
            "keep no activations inside of blocks but compute them again: less memory, more time");
  flags
      .add("ema_decay", v.ema_decay,
           "of an average of the weights, which is then evaluated and saved; 0: none")
      .between(0, 0.9999999);
  flags.add("loss_scale", v.loss_scale, "float16: the first factor of the loss; overflow halves it").above(0);
}

void declare_record(Flags& flags, TrainFlags& v) {
  flags.group("Evaluation and checkpoints");
  flags.add("eval_interval", v.eval_interval, "updates between evaluations, and checkpoints").at_least(1);
  flags.add("eval_iters", v.eval_iters, "batches of each split in an evaluation").at_least(1);
  flags.add("log_interval", v.log_interval, "updates between lines of metrics.jsonl").at_least(1);
  flags.add("always_save_checkpoint", v.always_save_checkpoint,
            "a step checkpoint at every evaluation; false: only where the validation loss is the best yet");
  flags
      .add("early_stopping_patience", v.early_stopping_patience,
           "evaluations in a row without a better validation loss that end the run; 0: none do")
      .at_least(0);
  flags.add("keep_checkpoints", v.keep_checkpoints, "step checkpoints that stay; 0: all").at_least(0);
}

}  // namespace

void declare_data(Flags& flags, DataFlags& v) {
  flags.group("Task and data");
  flags.choice("task", v.task, task_names(), "what is learnt");
  flags.add(
      "dataset", v.dataset,
      "a UTF-8 text or a table (.tsv, .jsonl), a corpus or toy set of 'tzoo data list', or a folder with "
      "train.bin and val.bin");
  flags.add(
      "val_dataset", v.val_dataset,
      "the same for validation; unless given, the last tenth of a text, every tenth example of a table");
  flags.add("tokenizer", v.tokenizer,
            "char, byte, byte_bpe, wordpiece, sentencepiece, or a folder that holds a tokenizer; unless "
            "given char, "
            "or wordpiece for encoders");
  flags.add("vocab_size", v.vocab_size, "size of a vocabulary learnt from the dataset; not for char and byte")
      .at_least(8);
  flags.add("block_size", v.block_size, "tokens in a training example, and the longest context").at_least(1);
  flags.add("target_size", v.target_size, "seq2seq: tokens in a target; block_size unless given").at_least(1);
  flags.add("source_prefix", v.source_prefix, "seq2seq: put before each source").placeholder("TEXT");
  flags.add("labels", v.labels, "of a classification; may be repeated; those of the dataset unless given")
      .placeholder("LABEL");
  flags.choice("class_weights", v.class_weights, {"none", "balanced"},
               "classification: balanced lets rare classes count as much as frequent ones");
  flags
      .add("label_smoothing", v.label_smoothing,
           "so much of a target's weight goes to all tokens or classes alike")
      .between(0, 0.99);
  flags.add("mlm_probability", v.mlm_probability, "mlm: the share of the tokens that is predicted")
      .between(0.001, 1);
  flags.add("whole_word", v.whole_word, "mlm: hide the tokens of a word together");
  flags.add("noise_density", v.noise_density, "span_corruption: the share of the tokens that is hidden")
      .between(0.001, 0.9);
  flags.add("mean_noise_span_length", v.mean_noise_span_length, "span_corruption: tokens of a hidden span")
      .at_least(1);
}

void declare_training(Flags& flags, TrainFlags& values) {
  declare_data(flags, values.data);
  declare_model(flags, values.model);
  declare_adaptation(flags, values);
  declare_optimisation(flags, values);
  declare_record(flags, values);
  flags.add_compute(values.compute);
}

void declare(Flags& flags, TrainFlags& values) {
  declare_run(flags, values);
  declare_training(flags, values);
  flags.example("tzoo train --recipe kjv-char --out_dir runs/kjv");
}

}  // namespace zoo
