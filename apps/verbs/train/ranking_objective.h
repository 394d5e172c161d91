#pragma once

#include <filesystem>
#include <memory>

#include "apps/training/objective.h"
#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// The training of a cross-encoder (Nogueira and Cho, 2019): a classifier with one label reads a query and a
/// document. The figures of an evaluation are accuracy, MRR@10 and nDCG@10 of the queries that have a
/// relevant document beside another one (of equal logits the less relevant ranks first), else Spearman's
/// correlation of logits and labels. Throws Error naming the data if it does not have what the loss needs,
/// UsageError for flags of other tasks.
std::unique_ptr<Objective> ranking_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                             const TaskData& data, const BatchPlan& plan);

/// Adds the activation of the trained loss to the config.json of a saved cross-encoder, unless the directory
/// names one: CrossEncoder.predict() applies it.
void name_activation(const TrainFlags& flags, const std::filesystem::path& directory);

}  // namespace zoo
