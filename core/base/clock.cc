#include "core/base/clock.h"

namespace cipherd::base {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

}  // namespace

const Clock& Clock::Real() {
  static const RealClock* clock = new RealClock;
  return *clock;
}

}  // namespace cipherd::base
