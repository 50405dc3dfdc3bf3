// Names of a classification head's labels. Two models of one task may list the same names in another order; then the
// head's rows are taken by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// Whether both name one label: "not duplicate", "Not-Duplicate" and "NOT_DUPLICATE" do.
bool is_same_label(std::string_view one, std::string_view other);

// One text for all names of a label, to look it up by: "not_duplicate".
std::string plain_label(std::string_view name);

// "LABEL_2", as transformers call a label that nobody has named.
std::string default_label_name(std::size_t row);

// Whether they only count: LABEL_0, LABEL_1, .. or 0, 1, .. Such names say nothing.
bool are_numbers(std::span<const std::string> names);

// "a number" of one label; else "3 labels", and their names, if they have any: "3 labels (no, yes, maybe)".
std::string text_of_labels(std::int64_t count, std::span<const std::string> names);

// For each of `asked` the row of `stored` that it names. Rows stay in their order where either list is empty: their
// labels are not known. Nothing where the two are not the same labels, once each.
std::optional<std::vector<std::size_t>> rows_by_label(std::span<const std::string> stored,
                                                      std::span<const std::string> asked);

}  // namespace teratron
