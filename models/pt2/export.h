#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final");
///     const zoo::graph::Graph graph = zoo::export_pt2(*loaded.model, "kjv.pt2");
///     // Python: torch.export.load("kjv.pt2").module()(input_ids, attention_mask)

#include <filesystem>

#include "models/graph/graph.h"
#include "models/graph/verify.h"
#include "models/model.h"

namespace zoo {

/// Writes the model's forward pass as an ExportedProgram of PyTorch, atomically, with its weights under the
/// modules' names, in their type. torch.export.load(file).module() takes int64 tensors
///
///   (input_ids, attention_mask)                     [B, T] each, or of an encoder-decoder
///   (input_ids, attention_mask, decoder_input_ids)  [B, S], [B, S], [B, T]
///
/// for any batch and any length up to the context, and returns exported_outputs(). Token types are all 0.
/// Returns the graph of this program.
///
/// With `decoding` the file also has the programs "step" and, of an encoder-decoder, "encode" and "start"
/// (graph::DecodingPasses), for torch.export.pt2_archive.load_pt2(file).exported_programs.
///
/// Throws Error naming what no such program can express (graph::trace), or a file that cannot be written.
graph::Graph export_pt2(Model& model, const std::filesystem::path& file, bool decoding = false);

/// Runs the graph by LibTorch's dispatcher, at shapes that were not traced, beside the model.
VerifyReport verify_pt2(const graph::Graph& graph, Model& model);

/// True for a file that export_pt2() or torch.export.save wrote.
bool is_pt2(const std::filesystem::path& file);

}  // namespace zoo
