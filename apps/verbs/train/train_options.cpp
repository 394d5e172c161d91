#include "apps/verbs/train/train_options.h"

#include <algorithm>

#include "apps/command/tokenizer_choice.h"
#include "apps/training/retrieval_losses.h"
#include "apps/training/training_fields.h"
#include "apps/verbs/train/train_data.h"
#include "models/registry.h"

namespace zoo {

void declare_prompt_names(Flags& flags, EmbeddingFlags& v) {
  flags.add("query_prompt_name", v.query_prompt_name,
            "the model's prompt of this name before each anchor or first sentence; default: no prompt",
            {.placeholder = "NAME"});
  flags.add("document_prompt_name", v.document_prompt_name,
            "the same before each positive and negative or second sentence", {.placeholder = "NAME"});
}

namespace {

void declare_model(Flags& flags, ModelFlags& v) {
  flags.group("Model (a checkpoint has its own)");
  flags.add("model_type", v.model_type,
            "model family, see 'tzoo models'; default: gpt2, bert or t5, depending on the task",
            {.placeholder = "NAME", .suggestions = family_names()});
  flags.add("n_layer", v.n_layer, "number of layers; for an encoder-decoder, in each of its two stacks",
            at_least(1));
  flags.add("n_head", v.n_head, "number of attention heads; must divide n_embd", at_least(1));
  flags.add("n_kv_head", v.n_kv_head,
            "llama: number of key/value heads (grouped-query attention); default: n_head", at_least(1));
  flags.add("n_embd", v.n_embd, "hidden size of the model", at_least(1));
  flags.add("n_inner", v.n_inner, "width of the feed-forward layers; default: 4 n_embd", at_least(1));
  flags.add("n_expert", v.n_expert,
            "mixtral, qwen2_moe, qwen3_moe: number of experts of a layer; default: the family's own",
            at_least(1));
  flags.add("n_expert_used", v.n_expert_used,
            "number of experts that read each token, at most n_expert; default: the family's own",
            at_least(1));
  flags.choice("activation", v.activation, kActivations,
               "activation of the feed-forward layers, gated ones only for t5; default: the family's own");
  flags.add("dropout", v.dropout, "dropout rate of embeddings, attention weights and sublayers",
            between(0, 0.99));
  flags.add("initializer_range", v.initializer_range,
            "standard deviation of the initial weights, default 0.02; for t5 a factor on its own, default 1",
            between(1e-6, 10));
  flags.add("bias", v.bias, "gpt2: use biases in projections and norms");
}

void declare_embedding(Flags& flags, EmbeddingFlags& v) {
  flags.group("Embeddings and rankers");
  std::vector<std::string> losses = kEmbeddingLossNames;
  losses.insert(losses.end(), kRankingLossNames.begin(), kRankingLossNames.end());
  flags.choice(
      "loss", v.loss, std::move(losses),
      "embedding: multiple_negatives_ranking (default: each anchor's positive among all documents of the "
      "batch), of pairs with a score cosent (default: the order of the scores) or cosine (the mean square "
      "of cosine - score), of texts with a label batch_all_triplet (each nearer to those of its label); "
      "ranking: binary_cross_entropy (default), mse, listwise_softmax (a query's "
      "positive among its negatives), or lambda (the order of a query's documents by their labels)");
  flags.add("scale", v.scale,
            "multiplies the cosines of multiple_negatives_ranking and cosent; default: 20, a temperature of "
            "0.05",
            above(0));
  flags.add("margin", v.margin, "batch_all_triplet: by how much nearer, of Euclidean distances; default: 5",
            above(0));
  flags.add("symmetric", v.symmetric,
            "multiple_negatives_ranking: also find each positive's anchor, and take the mean of both losses");
  flags.add("matryoshka_dims", v.matryoshka_dims,
            "sizes to which vectors may be cut: the loss is the sum over them, as in 384,128,64",
            {.placeholder = "SIZE,..."});
  flags.add("mini_batch_size", v.mini_batch_size,
            "texts whose activations are kept at a time (GradCache); the gradients are those of the whole "
            "batch, which needs less memory and more time",
            at_least(1));
  declare_prompt_names(flags, v);
}

// Declares the fields of TrainerOptions from one name to another, as apps/training states them.
void add_fields(Flags& flags, TrainerOptions& options, std::string_view first, std::string_view last) {
  const std::vector<TrainingField> all = training_fields(options);
  const auto end = std::ranges::find(all, last, &TrainingField::name);
  for (auto field = std::ranges::find(all, first, &TrainingField::name); field <= end; ++field) {
    const std::string name(field->name), help(field->help);
    const auto add = [&](auto* member) {
      if constexpr (std::is_enum_v<std::remove_pointer_t<decltype(member)>>)
        flags.choice(name, *member, field->choices, help);
      else flags.add(name, *member, help, field->range);
    };
    std::visit(add, field->member);
  }
}

}  // namespace

void declare_data(Flags& flags, DataFlags& v) {
  flags.group("Task and data");
  flags.choice("task", v.task, kTaskNames, "training objective");
  flags.add("dataset", v.dataset,
            "text file in UTF-8, table (.csv, .tsv, .jsonl or .parquet), name from 'tzoo data list', or "
            "directory with train.bin and val.bin or with splits as the Hugging Face hub has them (train, "
            "validation); .gz and .zst files are unpacked, and a pattern such as "
            "'shards/*.jsonl' takes all its files; 'a.jsonl:0.7,b.txt:0.3' draws rows of lm, mlm and "
            "span_corruption from both, in proportion to their weights",
            {.placeholder = "PATH|NAME", .suggestions = dataset_names()});
  flags.add("val_dataset", v.val_dataset,
            "the same for validation; default: the last tenth of a text, every tenth example of a table",
            {.placeholder = "PATH|NAME", .suggestions = dataset_names()});
  flags.add(
      "columns", v.columns,
      "names in a table with other names than the task's, such as text=sentence1,label=class; names that "
      "the task does not read are ignored with a note, or an error if they resemble one that it reads",
      {.placeholder = "OURS=THEIRS,..."});
  flags.add(
      "tokenizer", v.tokenizer,
      "kind of tokenizer to train on the dataset, or a directory with a trained one; default: wordpiece "
      "for encoders, else char",
      {.placeholder = "char|byte|byte_bpe|wordpiece|sentencepiece|DIR", .suggestions = kTokenizerKinds});
  flags.add("vocab_size", v.vocab_size,
            "vocabulary size of a tokenizer trained on the dataset; not for char and byte",
            at_least(kLeastVocabulary));
  flags.add(
      "block_size", v.block_size,
      "tokens per training example: the context length; default for chat and preference: the model's, at "
      "most 1024; for embedding at most 512, and never more than the model reads",
      at_least(1));
  flags.choice("documents", v.documents, {"stream", "pack"},
               "pack: rows of complete documents or conversations, each of which sees only itself; stream: "
               "documents run on from row to row (lm), a row has one conversation (chat)");
  flags.add("target_size", v.target_size, "seq2seq: most tokens in a target; default: block_size",
            at_least(1));
  flags.add("source_prefix", v.source_prefix, "seq2seq: text put before each source");
  flags.add("source_lang", v.source_lang,
            "seq2seq: language of the sources, such as en, de_DE or fra_Latn; default: the tokenizer's",
            {.placeholder = "LANG"});
  flags.add("target_lang", v.target_lang,
            "seq2seq: language of the targets, where the tokenizer puts one beside texts (NLLB, M2M-100)",
            {.placeholder = "LANG"});
  flags.add("chat_template", v.chat_template,
            "chat, preference: Jinja template to use instead of the checkpoint's; the trained model keeps it",
            {.placeholder = "FILE"});
  // The names stand in the order of ProblemType.
  flags.choice(
      "problem_type", v.problem_type,
      {"auto", "regression", "single_label_classification", "multi_label_classification"},
      "classification: a text has one label, any number of them (a list in JSON, commas between them "
      "in a table) or a number; auto: as the model, else several labels if the first one of a .jsonl "
      "file is a list");
  flags.add("labels", v.labels, "classification: a label of the model; default: the labels in the dataset",
            {.placeholder = "LABEL"});
  flags.choice("class_weights", v.class_weights, {"none", "balanced"},
               "classification: balanced makes rare classes count as much as frequent ones");
  flags.add("label_smoothing", v.label_smoothing,
            "share of a target's probability that is spread over all tokens or classes", between(0, 0.99));
  flags.add("mlm_probability", v.masking.probability, "mlm: share of the tokens to predict",
            between(0.001, 1));
  flags.add("whole_word", v.masking.whole_words, "mlm: mask all tokens of a word together");
  flags.add("noise_density", v.spans.noise_density, "span_corruption: share of the tokens to mask",
            between(0.001, 0.9));
  flags.add("mean_noise_span_length", v.spans.mean_span_length,
            "span_corruption: mean length of a masked span, in tokens", at_least(1));
}

void declare_training(Flags& flags, TrainFlags& v) {
  declare_data(flags, v.data);
  declare_model(flags, v.model);
  declare_embedding(flags, v.embedding);

  flags.group("Preferences");
  flags.choice(
      "preference_loss", v.preference.loss, kPreferenceLossNames,
      "dpo (label_smoothing: share of pairs whose order is wrong), ipo (log-probabilities per token), "
      "kto (each answer alone, also of a file with labels), or orpo (no reference model; adds the "
      "loss of a language model on prompt and chosen answer)");
  flags.add("beta", v.preference.beta,
            "how strongly the weights of the start hold the model; of orpo the weight of the odds ratio",
            above(0));

  flags.group("Fine-tuning");
  flags.add("freeze", v.freeze, "parameters to leave unchanged, such as 'embeddings.*'",
            {.placeholder = "PATTERN"});
  flags.add("lora_rank", v.lora.rank, "LoRA: train adapters of this rank instead of the weights; 0: no LoRA",
            between(0, 65536));
  flags.add("lora_alpha", v.lora.alpha, "LoRA: scale the adapters by lora_alpha / lora_rank", above(0));
  flags.add("lora_rslora", v.lora.rslora,
            "LoRA: scale them by lora_alpha / sqrt(lora_rank), which suits large ranks (rsLoRA)");
  flags.add("lora_dora", v.lora.dora,
            "LoRA: also train the magnitude of each row of the adapted weights (DoRA)");
  flags.add("lora_targets", v.lora.targets, "LoRA: projections that get an adapter; default: '*attention*'",
            {.placeholder = "PATTERN"});
  flags.choice(
      "weights", v.weights, {"float32", "bfloat16", "int8", "int4"},
      "LoRA: number format in which the projections of the layers are kept, which are not trained: "
      "int8 takes a quarter and int4 a seventh of float32's memory (QLoRA); final/ and best/ are then "
      "adapters, for --adapter beside --model");

  flags.group("Optimisation");
  flags.add("batch_size", v.batch_size, "examples per micro batch", between(1, kMostBatchRows));
  add_fields(flags, v.trainer, "gradient_accumulation_steps", "cautious_weight_decay");
  flags.choice("disagreement", v.disagreement, kDisagreementNames,
               "penalty on attention heads that are alike: in the positions they attend to, in their values "
               "(subspaces) or in their outputs");
  flags.add("disagreement_weight", v.disagreement_weight, "weight of that penalty in the loss", at_least(0));
  add_fields(flags, v.trainer, "grad_clip", "skip_spikes");
  flags.add("activation_checkpointing", v.activation_checkpointing,
            "gradient checkpointing: compute activations inside layers again in the backward pass; less "
            "memory, more time");
  add_fields(flags, v.trainer, "ema_decay", "loss_scale");

  flags.group("Several processes");
  flags.add("processes", v.processes,
            "start so many processes on this machine, which train together; torchrun, srun and mpirun do so, "
            "too",
            between(1, 1024));
  flags.add(
      "restart", v.restart,
      "with processes: start them again so many times if one fails; they go on from the last checkpoint",
      between(0, 1000));
  flags.add("master_addr", v.session.place.master_addr,
            "host of rank 0; default: MASTER_ADDR, or as the launcher says", {.placeholder = "HOST"});
  flags.add("master_port", v.session.place.master_port,
            "port of rank 0; default: MASTER_PORT, else 29500, with srun one by the job's number",
            between(1, 65535));
  flags.add("rank_timeout", v.session.rank_timeout,
            "seconds in which all ranks must arrive, and after which a silent one is dead; all end then",
            between(1, 86400));
  flags.choice("gradient_wire", v.session.gradient_wire, kGradientWireNames,
               "number format in which gradients travel between ranks; bfloat16 halves the bytes");
  flags.choice("shard", v.shard, kShardNames,
               "what is divided among the ranks, for less memory: the optimizer's state (ZeRO-1), also "
               "gradients (ZeRO-2), also the weights of layers (as FSDP, with gradient checkpointing)");
  flags.add("shard_optimizer", v.shard_optimizer, "the same as --shard optimizer");
  add_fields(flags, v.trainer, "local_steps", "outer_momentum");

  flags.group("Evaluation and checkpoints");
  add_fields(flags, v.trainer, "eval_interval", "eval_iters");
  flags.add("sample_interval", v.sample_interval,
            "lm: updates between texts that the model writes while it learns; 0: none", at_least(0));
  flags.add("sample_prompt", v.sample_prompt, "how these texts begin; default: with a line break");
  add_fields(flags, v.trainer, "log_interval", "early_stopping_patience");
  flags.add("keep_checkpoints", v.keep_checkpoints, "number of step checkpoints to keep, the newest; 0: all",
            at_least(0));
  flags.add_compute(v.compute);
}

void declare(Flags& flags, TrainFlags& v) {
  flags.group("Run");
  flags.add_recipes();
  flags.add("out_dir", v.out_dir,
            "directory for the run's checkpoints, metrics (also for TensorBoard) and loss curve; needed, "
            "except by --dry_run",
            {.placeholder = "DIR"});
  flags.add("init_from", v.init_from,
            "scratch, resume (continue the run in out_dir), or a directory: a checkpoint to fine-tune, or a "
            "PEFT adapter, which is trained on and decides the flags of LoRA",
            {.placeholder = "scratch|resume|DIR", .suggestions = {"scratch", "resume"}});
  flags.add("adapter", v.adapter,
            "directory of a PEFT adapter that is merged into the weights of --init_from before training",
            {.placeholder = "DIR"});
  flags.add(
      "depth", v.depth,
      "lm: one number for a modern decoder from scratch: N layers, N heads of 64 features, its optimizer, "
      "rates and 20 tokens per parameter; any flag beside it goes before",
      between(1, 1024));
  flags.add(
      "tokens_per_parameter", v.tokens_per_parameter,
      "lm, mlm, span_corruption: sets max_iters, so that so many tokens are read for each parameter; 20 make "
      "the best model that a given amount of computing can (Hoffmann et al., 2022)",
      FieldRange{.above = 0, .most = 1e6});
  flags.add("dry_run", v.dry_run, "print the memory and time that an update takes, without training");
  flags.add("overwrite", v.overwrite, "replace a run that out_dir already holds");

  flags.group("Distillation");  // not of tzoo bench train
  DistillationOptions& options = v.distillation;
  flags.add(
      "teacher", v.teacher,
      "lm, chat: directory or GGUF file of a model with the same vocabulary, whose distribution of each "
      "next token is learnt; embedding: an embedding model, whose vectors are, or a cross-encoder, whose "
      "margins between documents are",
      {.placeholder = "DIR"});
  flags.choice("distillation", options.divergence, kDivergenceNames,
               "lm, chat: forward_kl covers all that the teacher holds possible, reverse_kl keeps to what it "
               "holds likely");
  flags.add("distillation_weight", options.weight, "its share of the loss; the text has the rest",
            between(0, 1));
  flags.add("distillation_temperature", options.temperature,
            "divides the logits of both before they are compared", above(0));
  flags.add("teacher_top_k", options.top_k,
            "lm, chat: compare the teacher's K most probable tokens, and all others as one; 0: every token",
            at_least(0));
  flags.add("teacher_file", v.teacher_file,
            "file that keeps these K tokens of each document, so that the teacher reads it only once; with "
            "several processes, each has its own",
            {.placeholder = "FILE"});

  declare_training(flags, v);
  flags.example("tzoo train --recipe kjv-char --out_dir runs/kjv");
}

}  // namespace zoo
