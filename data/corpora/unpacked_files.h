#pragma once

/// @file
/// Use:
///
///     if (zoo::is_packed("train-*.parquet")) file = zoo::unpacked("train-*.parquet");

#include <filesystem>
#include <string>

namespace zoo {

/// Whether a dataset is a pattern of files, such as "shards/*.jsonl", or a file to unpack: .gz, .zst,
/// .parquet.
bool is_packed(const std::string& dataset);

/// One file in data_directory()/unpacked with the content of all, in the order of their names: texts, or rows
/// as .jsonl. It is written at first use and when a file has changed; the rows stream through gzip, zstd or
/// tzoo-parquet. Throws Error naming a file that is missing, broken or of another kind than the first.
std::filesystem::path unpacked(const std::string& dataset);

}  // namespace zoo
