#pragma once

#include "models/family.h"

namespace zoo::gpt {

Family family();

}  // namespace zoo::gpt
