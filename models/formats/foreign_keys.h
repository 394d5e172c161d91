#pragma once

#include <string>

#include "models/formats/config_reader.h"

namespace zoo {

/// Keys that change the numbers of some architecture. One that the family has asked of the reader is known;
/// another must be absent, null or the value that changes nothing. Throws Error naming it and `family`.
void refuse_foreign_keys(const ConfigReader& reader, const std::string& family);

/// True for the keys that refuse_foreign_keys() knows.
bool is_foreign_key(const std::string& key);

/// True for keys that no architecture's numbers depend on: those about the file, training, generation and the
/// program that runs the model.
bool changes_no_numbers(const std::string& key);

}  // namespace zoo
