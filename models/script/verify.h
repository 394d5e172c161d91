#pragma once

/// @file
/// Use:
///
///     const zoo::VerifyReport report = zoo::verify_torchscript("kjv.pt", model);
///     if (!report.good()) std::cerr << "the file differs by " << report.largest_error() << "\n";

#include <filesystem>

#include "models/graph/verify.h"

namespace zoo {

/// Loads the file as a program without the zoo would. Compares its outputs (verify_outputs()), and its
/// generate(), if any, with models/generation, greedily. Throws Error if it cannot be loaded.
VerifyReport verify_torchscript(const std::filesystem::path& file, Model& model);

}  // namespace zoo
