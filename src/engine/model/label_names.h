// Names of a classification head's labels. Two models of one task may list the same names in another order; then the
// head's rows are taken by name.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// Whether both name one label: "not duplicate", "Not-Duplicate" and "NOT_DUPLICATE" do.
bool is_same_label(std::string_view one, std::string_view other);

// "LABEL_2", as transformers call a label that nobody has named.
std::string default_label_name(std::size_t row);

// Whether they only count: LABEL_0, LABEL_1, .. or 0, 1, .. Such names say nothing.
bool are_numbers(std::span<const std::string> names);

// For each of `asked` the row of `stored` that it names. Rows stay in their order where either list is empty: their
// labels are not known. Nothing where the two are not the same labels, once each.
std::optional<std::vector<std::size_t>> rows_by_label(std::span<const std::string> stored,
                                                      std::span<const std::string> asked);

}  // namespace teratron
