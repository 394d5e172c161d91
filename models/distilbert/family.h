#pragma once

#include "models/family.h"

namespace zoo::distilbert {

Family family();

}  // namespace zoo::distilbert
