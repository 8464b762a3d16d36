// One program and one secret key at a daemon.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "client/python/bindings/client.h"
#include "client/session.h"

namespace cipherd::python {

// Shared with evaluations under way.
struct OpenSession {
  ConnectionPtr connection;
  std::unique_ptr<client::Session> session;
};

struct SessionObject {
  std::shared_ptr<CallOwner> owner;
  // Null once closed: the key is wiped.
  std::shared_ptr<OpenSession> open;
  // With the interpreter's lock; the session's own belongs to the upload.
  std::string key_set_id;
  bool keys_are_changing = false;
};

void BindSession(nanobind::module_& module);

}  // namespace cipherd::python
