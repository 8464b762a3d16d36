// Whether a series of measurements grows: a straight line through it, by least squares.
//
//   Trend trend;
//   trend.Add(minutes, megabytes);
//   Trend::Line line = trend.Fit();       // line.slope ± line.slope_error
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cipherd::testing {

class Trend {
 public:
  struct Line {
    double slope = 0;
    // One standard deviation of the slope, from the residuals, which are taken for independent.
    double slope_error = 0;
    double mean = 0;
    // Of the residuals.
    double deviation = 0;
  };

  void Add(double x, double y) { points_.emplace_back(x, y); }
  size_t size() const { return points_.size(); }
  double first_x() const { return points_.front().first; }
  double last_x() const { return points_.back().first; }

  // Of the points from `from_x` on. All zero for fewer than three of them.
  Line Fit(double from_x) const;

 private:
  std::vector<std::pair<double, double>> points_;
};

// Resident memory of a process in bytes, from /proc; 0 where there is no such process.
double ResidentBytes(int pid);

}  // namespace cipherd::testing
