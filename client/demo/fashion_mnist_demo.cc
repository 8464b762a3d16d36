// cipherd-demo: classifies encrypted Fashion-MNIST images on a daemon and prints what came of it.
//
// Exits 0 exactly where every arg-max agrees with the float64 model.
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "client/ctl/connection_flags.h"
#include "client/demo/demo_run.h"
#include "core/base/allocator_policy.h"
#include "core/base/status_macros.h"

namespace {

using namespace cipherd::client;  // NOLINT: the program is an application of it

struct Flags {
  ConnectionFlags connection;
  DemoOptions demo;
  int64_t image_count = 128;
  std::string data_directory = "/usr/share/datasets/fashion-mnist";
  std::string weights = "deploy/programs/fashion_mlp/weights.safetensors";
};

absl::StatusOr<DemoReport> Run(const Flags& flags) {
  CIPHERD_ASSIGN_OR_RETURN(const PolynomialModel model,
                           PolynomialModel::FromSafetensors(flags.weights));
  CIPHERD_ASSIGN_OR_RETURN(const DemoData data,
                           ReadDemoData(flags.data_directory, flags.image_count));
  const ClientOptions options = flags.connection.ToOptions();
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(options));
  return RunDemo(*client, model, data, flags.demo);
}

}  // namespace

int main(int argc, char** argv) {
  cipherd::base::KeepLargeBlocks();
  Flags flags;
  CLI::App app("Classifies encrypted Fashion-MNIST images on a daemon.");
  flags.connection.AddTo(app);
  app.add_option("--images", flags.image_count, "Images to classify")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--in-flight", flags.demo.requests_in_flight, "Requests at a time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--program", flags.demo.program, "Program of the daemon")->capture_default_str();
  app.add_option("--data", flags.data_directory, "Directory of the data set")
      ->capture_default_str();
  app.add_option("--weights", flags.weights, "Weights of the float64 model, safetensors")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const absl::StatusOr<DemoReport> report = Run(flags);
  if (!report.ok()) {
    std::cerr << "cipherd-demo: " << DescribeError(report.status()) << "\n";
    return 1;
  }
  std::cout << FormatReport(*report);
  return report->all_agree() ? 0 : 1;
}
