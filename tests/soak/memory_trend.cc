#include "tests/soak/memory_trend.h"

#include <unistd.h>

#include <cmath>
#include <fstream>

namespace cipherd::testing {

Trend::Line Trend::Fit(double from_x) const {
  std::vector<std::pair<double, double>> points;
  for (const auto& point : points_) {
    if (point.first >= from_x) points.push_back(point);
  }
  const double count = static_cast<double>(points.size());
  if (count < 3) return {};
  double x_mean = 0;
  Line line;
  for (const auto& [x, y] : points) {
    x_mean += x / count;
    line.mean += y / count;
  }
  double xx = 0;
  double xy = 0;
  for (const auto& [x, y] : points) {
    xx += (x - x_mean) * (x - x_mean);
    xy += (x - x_mean) * (y - line.mean);
  }
  if (xx == 0) return {};
  line.slope = xy / xx;
  double squares = 0;
  for (const auto& [x, y] : points) {
    const double residual = y - line.mean - line.slope * (x - x_mean);
    squares += residual * residual;
  }
  line.deviation = std::sqrt(squares / (count - 2));
  line.slope_error = line.deviation / std::sqrt(xx);
  return line;
}

double ResidentBytes(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  double total_pages = 0;
  double resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace cipherd::testing
