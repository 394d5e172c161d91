#pragma once

#include <filesystem>
#include <memory>

#include "apps/training/objective.h"
#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"
#include "models/tasks/text_embedder.h"

namespace zoo {

/// A model of vectors in training: the modules of its Sentence-Transformers directory, whose weights are
/// trained with the model's, the loss and the figures. A plain checkpoint gets mean pooling.
class EmbeddingTask {
 public:
  /// Adds the modules' weights to the model. Throws Error for what cannot be trained: an encoder-decoder, a
  /// Dropout, several processes, flags of other tasks.
  EmbeddingTask(const TrainFlags& flags, const CheckpointConfig& checkpoint, const LoadedModel& loaded,
                c10::Device device);

  /// Throws Error naming the data if its pairs do not have what the loss needs.
  std::unique_ptr<Objective> objective(const TaskData& data, const BatchPlan& plan) const;

  /// Writes the modules' weights into a saved directory, and the files of Sentence-Transformers if it lacks
  /// them.
  void save(const std::filesystem::path& directory) const;

 private:
  const TrainFlags& flags_;
  std::shared_ptr<Model> model_;
  std::shared_ptr<const TextEmbedder> embedder_;
  SentenceConfig config_;
};

}  // namespace zoo
