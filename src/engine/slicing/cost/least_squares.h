// Small dense least squares.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace teratron::slicing {

// x that minimises |A x - b|, by Householder reflections; rows[i] is a row of A, all of one length. Nothing where the
// columns of A are not independent, to 1e-10 of their lengths.
std::optional<std::vector<double>> least_squares(const std::vector<std::vector<double>>& rows,
                                                 std::span<const double> b);

}  // namespace teratron::slicing
