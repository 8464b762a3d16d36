// A workload on a fake daemon that echoes, for tests of loads.
#pragma once

#include <memory>

#include "client/load/workload.h"
#include "tests/client/fake_service.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {

class LoadTest : public ::testing::Test {
 protected:
  WorkloadOptions Options() const {
    WorkloadOptions options;
    options.tenants = {service_.ClientOptions()};
    options.programs = {{.name = "echo"}};
    options.verify = true;
    return options;
  }
  void Prepare() { ASSERT_OK_AND_ASSIGN(workload_, Workload::Prepare(Options())); }

  FakeService service_;
  std::unique_ptr<Workload> workload_;
};

}  // namespace cipherd::client
