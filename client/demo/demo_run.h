// The demo: classifies encrypted images, several requests at a time, and compares with the float64
// model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/demo/demo_report.h"
#include "client/demo/polynomial_model.h"
#include "client/slot_layout.h"

namespace cipherd::client {

struct DemoData {
  // Pixels in [0, 1], row by row.
  Vectors images;
  std::vector<uint8_t> labels;
};

// The first `image_count` test images of the data set in `directory` (t10k-images-idx3-ubyte.gz and
// t10k-labels-idx1-ubyte.gz). InvalidArgument where there are fewer.
absl::StatusOr<DemoData> ReadDemoData(const std::string& directory, int64_t image_count);

struct DemoOptions {
  std::string program = "fashion_mlp";
  int requests_in_flight = 2;
};

// Makes and uploads keys, evaluates, drops the keys. Shows progress on standard error.
absl::StatusOr<DemoReport> RunDemo(const Client& client, const PolynomialModel& model,
                                   const DemoData& data, const DemoOptions& options);

}  // namespace cipherd::client
