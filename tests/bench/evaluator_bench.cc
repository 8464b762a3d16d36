// Times of CKKS operations on one device, as replayed graphs, against the time that moving their
// operands alone would take.
//
//   evaluator_bench [--device=cuda] [--log_n=14,16] [--batch=1,4] [--json=FILE] [--once]
//
// A line gives the parameters, the median over repetitions of a run of replays (events of the
// device around the run), the least and the greatest, the floor (inputs and keys read once, outputs
// written once, at --copy_tb_s terabytes a second) and the ratio to it, and the largest error of
// the decrypted result. An operation whose result is wrong fails the run. Operands stay where they
// are between replays: caches are as warm as they can be.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/ckks/linear_transform.h"
#include "core/ckks/sum_of_rotations.h"
#include "tests/bench/evaluator_world.h"

namespace cipherd::bench {
namespace {

using ckks::Ciphertext;

struct Options {
  std::string device = "cuda";
  std::vector<int> log_n = {14, 16};
  std::vector<int> batch = {1, 2, 4, 8, 16};
  std::string json;
  double copy_tb_s = 4.3;
  bool with_matrix = true;
  // Runs every operation once, without a graph and unchecked: for a profiler.
  bool once = false;
};

struct Figure {
  std::string operation;
  int log_n;
  int batch;
  int limbs;
  int special_limbs;
  int digits;
  double log_q;
  double log_qp;
  double median_us;
  double least_us;
  double greatest_us;
  double floor_us;
  double error;
};

// Words that an operation must move, in limbs of N words: per item of a batch, and shared.
struct Traffic {
  double item_limbs;
  double shared_limbs;
};

class Runner {
 public:
  Runner(World& world, const Options& options, int batch, std::vector<Figure>& figures)
      : world_(world), options_(options), batch_(batch), figures_(figures) {}

  // Captures `run`, replays it, and compares item 0 and the last one of what it returns (none for a
  // launch whose words `check` compares by itself).
  absl::Status Measure(const std::string& operation, Traffic traffic,
                       const std::function<absl::StatusOr<Ciphertext>()>& run,
                       const std::function<Slots(int item)>& expected) {
    runtime::Stream& stream = *world_.stream;
    // Once without a graph, so that modules are loaded.
    CIPHERD_RETURN_IF_ERROR(run().status());
    CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
    if (options_.once) return absl::OkStatus();
    CIPHERD_RETURN_IF_ERROR(stream.BeginCapture(/*check_liveness=*/false));
    absl::StatusOr<Ciphertext> captured = run();
    CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Graph> graph, stream.EndCapture());
    CIPHERD_RETURN_IF_ERROR(captured.status());

    constexpr int kReplays = 20;
    constexpr int kRepetitions = 15;
    std::vector<double> micros;
    for (int r = -2; r < kRepetitions; ++r) {
      CIPHERD_RETURN_IF_ERROR(stream.Record(*world_.begin));
      for (int i = 0; i < kReplays; ++i) CIPHERD_RETURN_IF_ERROR(graph->Launch(stream));
      CIPHERD_RETURN_IF_ERROR(stream.Record(*world_.end));
      CIPHERD_RETURN_IF_ERROR(world_.end->Synchronize());
      CIPHERD_ASSIGN_OR_RETURN(const double seconds, world_.end->SecondsSince(*world_.begin));
      // The first runs warm up.
      if (r >= 0) micros.push_back(seconds * 1e6 / kReplays);
    }
    std::sort(micros.begin(), micros.end());

    double error = 0;
    for (int item : {0, batch_ - 1}) {
      CIPHERD_ASSIGN_OR_RETURN(const Slots actual, world_.Decrypt(*captured, item));
      error = std::max(error, world_.RelativeDistance(actual, expected(item)));
    }
    const ckks::ContextParameters& parameters = world_.parameters();
    const double limbs = traffic.item_limbs * batch_ + traffic.shared_limbs;
    const double bytes = limbs * 8 * static_cast<double>(parameters.ring_degree());
    Figure figure = {operation,
                     parameters.log_n,
                     batch_,
                     parameters.q_count(),
                     parameters.p_count(),
                     static_cast<int>(parameters.digits.size()),
                     parameters.log_q(0),
                     parameters.log_qp(),
                     micros[micros.size() / 2],
                     micros.front(),
                     micros.back(),
                     bytes / options_.copy_tb_s * 1e-6,
                     error};
    std::printf(
        "%-30s %2d  %2d+%d /%d  batch %2d  %9.2f us (%.2f-%.2f)  item %8.2f  floor %7.2f  "
        "ratio %5.2f  error 2^%.1f  nodes %zu\n",
        operation.c_str(), figure.log_n, figure.limbs, figure.special_limbs, figure.digits, batch_,
        figure.median_us, figure.least_us, figure.greatest_us, figure.median_us / batch_,
        figure.floor_us, figure.median_us / figure.floor_us, std::log2(error), graph->node_count());
    std::fflush(stdout);
    figures_.push_back(figure);
    if (!(error < 0x1p-12)) return absl::InternalError(absl::StrCat(operation, ": wrong result"));
    return absl::OkStatus();
  }

 private:
  World& world_;
  const Options& options_;
  const int batch_;
  std::vector<Figure>& figures_;
};

absl::Status RunBatch(World& world, const Options& options, int batch,
                      std::vector<Figure>& figures) {
  const ckks::Evaluator& evaluator = *world.evaluator;
  runtime::Stream& stream = *world.stream;
  const ckks::KeyTable& keys = world.table;
  const double q = world.parameters().q_count();
  const double key = 2.0 * static_cast<double>(world.parameters().digits.size()) *
                     (q + world.parameters().p_count());
  Runner runner(world, options, batch, figures);
  CIPHERD_ASSIGN_OR_RETURN(const Ciphertext a, world.Batch(batch, 0));
  CIPHERD_ASSIGN_OR_RETURN(const Ciphertext b, world.Batch(batch, 1));
  const auto x = [&](int item) { return world.SlotsOf(item, 0); };
  const auto y = [&](int item) { return world.SlotsOf(item, 1); };
  const auto product = [&](int item) { return Times(x(item), y(item)); };

  // Components of a ciphertext there and back, half of the time each.
  CIPHERD_RETURN_IF_ERROR(runner.Measure(
      "inverse + forward NTT, 2 polys", {4 * 2 * q, 0},
      [&]() -> absl::StatusOr<Ciphertext> {
        CIPHERD_ASSIGN_OR_RETURN(const Ciphertext c, evaluator.ToCoefficient(a, stream));
        return evaluator.ToNtt(c, stream);
      },
      x));
  CIPHERD_ASSIGN_OR_RETURN(const Ciphertext coefficient, evaluator.ToCoefficient(a, stream));
  CIPHERD_ASSIGN_OR_RETURN(const Ciphertext ntt, evaluator.ToNtt(coefficient, stream));
  CIPHERD_RETURN_IF_ERROR(runner.Measure(
      "forward NTT, 1 poly", {2 * q, 0},
      [&]() -> absl::StatusOr<Ciphertext> {
        CIPHERD_RETURN_IF_ERROR(world.ForwardNttOfFirstComponent(coefficient, ntt));
        return ntt;
      },
      x));
  CIPHERD_ASSIGN_OR_RETURN(Ciphertext squared_scale, evaluator.Multiply(a, b, stream));
  CIPHERD_ASSIGN_OR_RETURN(squared_scale, evaluator.Relinearize(squared_scale, keys, stream));
  CIPHERD_RETURN_IF_ERROR(runner.Measure(
      "rescale", {2 * q + 2 * (q - 1), 0}, [&] { return evaluator.Rescale(squared_scale, stream); },
      product));
  CIPHERD_RETURN_IF_ERROR(runner.Measure(
      "multiply + relinearize", {6 * q, key},
      [&]() -> absl::StatusOr<Ciphertext> {
        CIPHERD_ASSIGN_OR_RETURN(const Ciphertext c, evaluator.Multiply(a, b, stream));
        return evaluator.Relinearize(c, keys, stream);
      },
      product));
  CIPHERD_RETURN_IF_ERROR(runner.Measure(
      "multiply + relinearize + rescale", {6 * q - 2, key},
      [&]() -> absl::StatusOr<Ciphertext> {
        CIPHERD_ASSIGN_OR_RETURN(const Ciphertext c, evaluator.Multiply(a, b, stream));
        return evaluator.RelinearizeAndRescale(c, keys, stream);
      },
      product));
  CIPHERD_RETURN_IF_ERROR(runner.Measure(
      "rotate", {4 * q, key}, [&] { return evaluator.Rotate(a, 1, keys, stream); },
      [&](int item) { return Rotated(x(item), 1); }));
  if (batch > 1 || !options.with_matrix) return absl::OkStatus();

  CIPHERD_RETURN_IF_ERROR(runner.Measure(
      "8 hoisted rotations, summed", {4 * q, 8 * key},
      [&]() -> absl::StatusOr<Ciphertext> {
        constexpr int64_t kSteps[] = {1, 2, 3, 4, 5, 6, 7, 8};
        return SumOfRotations(evaluator, a, kSteps, keys, stream);
      },
      [&](int item) {
        Slots sum = Rotated(x(item), 1);
        for (int64_t step = 2; step <= 8; ++step) sum = Plus(sum, Rotated(x(item), step));
        return sum;
      }));
  for (const int64_t span : {8, 0}) {
    CIPHERD_ASSIGN_OR_RETURN(const World::Matrix matrix, world.RandomMatrix(64, span));
    const int64_t diagonal = matrix.diagonals.at(0).limb_count();
    CIPHERD_RETURN_IF_ERROR(runner.Measure(
        span == 0 ? "64-diagonal matrix-vector" : "64-diagonal matrix-vector, 8 by 8",
        {4 * q + 64 * diagonal, static_cast<int64_t>(matrix.plan.Keys().size()) * key},
        [&] {
          return ApplyLinearTransform(evaluator, matrix.plan, matrix.diagonals, a, keys, stream);
        },
        [&](int item) {
          const Slots in = x(item);
          Slots sum(in.size());
          for (const auto& [offset, slots] : matrix.slots) {
            sum = Plus(sum, Times(slots, Rotated(in, offset)));
          }
          return sum;
        }));
  }
  return absl::OkStatus();
}

absl::Status RunAll(const Options& options, std::vector<Figure>& figures) {
  for (int log_n : options.log_n) {
    CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<World> world,
                             World::Make(options.device, log_n));
    const ckks::ContextParameters& parameters = world->parameters();
    std::printf(
        "%s, kernels %s: log N %d, %d Q + %d P primes, log Q %.1f, log QP %.1f, %zu digits\n",
        world->device->properties().name.c_str(), world->device_context->kernels().name, log_n,
        parameters.q_count(), parameters.p_count(), parameters.log_q(0), parameters.log_qp(),
        parameters.digits.size());
    for (int batch : options.batch) {
      CIPHERD_RETURN_IF_ERROR(RunBatch(*world, options, batch, figures));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteJson(const std::string& path, const std::vector<Figure>& figures) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return absl::InvalidArgumentError(absl::StrCat("cannot write ", path));
  std::fprintf(file, "[\n");
  for (size_t i = 0; i < figures.size(); ++i) {
    const Figure& f = figures[i];
    std::fprintf(file,
                 "  {\"operation\": \"%s\", \"log_n\": %d, \"q_primes\": %d, \"p_primes\": %d, "
                 "\"digits\": %d, \"log_q\": %.2f, \"log_qp\": %.2f, \"batch\": %d, "
                 "\"median_us\": %.3f, \"least_us\": %.3f, \"greatest_us\": %.3f, "
                 "\"floor_us\": %.3f, \"ratio_to_floor\": %.3f, \"relative_error\": %.3e}%s\n",
                 f.operation.c_str(), f.log_n, f.limbs, f.special_limbs, f.digits, f.log_q,
                 f.log_qp, f.batch, f.median_us, f.least_us, f.greatest_us, f.floor_us,
                 f.median_us / f.floor_us, f.error, i + 1 < figures.size() ? "," : "");
  }
  std::fprintf(file, "]\n");
  std::fclose(file);
  return absl::OkStatus();
}

bool ParseList(std::string_view text, std::vector<int>& list) {
  list.clear();
  for (const absl::string_view part : absl::StrSplit(std::string(text), ',')) {
    if (!absl::SimpleAtoi(part, &list.emplace_back())) return false;
  }
  return true;
}

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : argument.substr(equals + 1));
    bool ok = true;
    if (name == "--device") {
      options.device = value;
    } else if (name == "--log_n") {
      ok = ParseList(value, options.log_n);
    } else if (name == "--batch") {
      ok = ParseList(value, options.batch);
    } else if (name == "--json") {
      options.json = value;
    } else if (name == "--copy_tb_s") {
      ok = absl::SimpleAtod(value, &options.copy_tb_s);
    } else if (name == "--no_matrix") {
      options.with_matrix = false;
    } else if (name == "--once") {
      options.once = true;
    } else {
      ok = false;
    }
    if (!ok) {
      std::fprintf(stderr, "unknown or malformed: %s\n", argv[i]);
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace cipherd::bench

int main(int argc, char** argv) {
  cipherd::bench::Options options;
  if (!cipherd::bench::Parse(argc, argv, options)) return 2;
  std::vector<cipherd::bench::Figure> figures;
  absl::Status status = cipherd::bench::RunAll(options, figures);
  if (status.ok() && !options.json.empty()) {
    status = cipherd::bench::WriteJson(options.json, figures);
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
