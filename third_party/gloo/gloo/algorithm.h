#pragma once
// Included by c10d's ProcessGroupGloo.hpp, which needs nothing of it.
