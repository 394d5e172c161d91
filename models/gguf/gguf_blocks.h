#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/base/gguf_file.h"
#include "models/formats/tensor_file.h"

namespace zoo {

/// The numbers of blocks of a quantized type (Q4_0 to Q6_K), as float32, bit for bit as ggml has them.
at::Tensor dequantized(const GgufType& type, const std::byte* blocks, const std::vector<std::int64_t>& shape);

/// Appends as many blocks, taken apart.
void append_blocks(const GgufType& type, const std::byte* blocks, std::size_t count, BlockRows& rows);

/// Blocks of the type, Q8_0 or Q4_0, nearest to the tensor's numbers: the bytes that ggml's reference writes.
/// Rows must be a multiple of the block. Throws Error for numbers that are not finite or too large
/// for a scale in float16.
std::string quantized(const GgufType& type, const at::Tensor& tensor);

}  // namespace zoo
