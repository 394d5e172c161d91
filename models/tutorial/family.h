#pragma once

#include "models/family.h"

namespace zoo::tutorial {

/// model_type "tutorial-embeddings", "tutorial-ambiguous" and "tutorial-disagreement", as the demos that
/// train them are called.
Family embeddings_family();
Family ambiguous_family();
Family disagreement_family();

}  // namespace zoo::tutorial
