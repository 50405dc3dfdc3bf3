// The table of a search's points and scores, for people.
#pragma once

#include <string>
#include <vector>

#include "finetune/finetuning.h"

namespace teratron {

// A row a point, after a line that says what it is; the chosen one is marked.
std::string search_table(const std::vector<SearchedPoint>& points, std::size_t chosen);

}  // namespace teratron
