#include "slicing/cost/cost_model.h"

#include <cmath>

#include "base/error.h"

namespace teratron::slicing {
namespace {

using Column = std::vector<double>;

double dot_from(std::size_t first, const Column& a, const Column& b) {
  double sum = 0;
  for (std::size_t i = first; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Reflects `column` in the plane across `normal`, whose elements before `first` count as zero.
void reflect(Column& column, const Column& normal, std::size_t first, double squared_length) {
  const double factor = 2 * dot_from(first, normal, column) / squared_length;
  for (std::size_t i = first; i < column.size(); ++i) column[i] -= factor * normal[i];
}

}  // namespace

std::optional<std::vector<double>> least_squares(const std::vector<std::vector<double>>& rows,
                                                 std::span<const double> b) {
  check_equal(b.size(), rows.size(), "values to fit");
  if (rows.empty() || rows.size() < rows[0].size()) return std::nullopt;
  const std::size_t unknowns = rows[0].size();
  // Columns of length 1, so that what counts as dependent does not hang on units.
  std::vector<Column> a(unknowns, Column(rows.size()));
  std::vector<double> lengths(unknowns);
  for (std::size_t j = 0; j < unknowns; ++j) {
    for (std::size_t i = 0; i < rows.size(); ++i) a[j][i] = rows[i][j];
    lengths[j] = std::sqrt(dot_from(0, a[j], a[j]));
    if (!(lengths[j] > 0)) return std::nullopt;
    for (double& value : a[j]) value /= lengths[j];
  }
  Column right(b.begin(), b.end());
  for (std::size_t j = 0; j < unknowns; ++j) {
    Column normal = a[j];
    const double length = std::sqrt(dot_from(j, normal, normal));
    if (length < 1e-10) return std::nullopt;
    normal[j] += normal[j] < 0 ? -length : length;
    const double squared_length = dot_from(j, normal, normal);
    for (std::size_t k = j; k < unknowns; ++k) reflect(a[k], normal, j, squared_length);
    reflect(right, normal, j, squared_length);
  }
  std::vector<double> x(unknowns);
  for (std::size_t j = unknowns; j-- > 0;) {
    double rest = right[j];
    for (std::size_t k = j + 1; k < unknowns; ++k) rest -= a[k][j] * x[k];
    x[j] = rest / a[j][j];
  }
  for (std::size_t j = 0; j < unknowns; ++j) x[j] /= lengths[j];
  return x;
}

}  // namespace teratron::slicing
