#pragma once

namespace zoo::kernels {

/// True if the kernels of this folder may run: they are compiled for AVX-512 on x86-64 and use nothing
/// special elsewhere.
bool supported_by_cpu();

}  // namespace zoo::kernels
