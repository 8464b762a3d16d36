// Uploads of key sets whose streams broke, kept for streams that go on with them.
//
//   CIPHERD_ASSIGN_OR_RETURN(std::optional<ReceivedKeys> kept,
//                            uploads.Begin(key, resume_bytes, [&] { context.TryCancel(); }));
//   ... the stream breaks ...
//   uploads.Park(key, std::move(received));
//   ... or ends ...
//   uploads.End(key, key_set_id);
//
// An upload is its tenant's, named by an id that the client chose. At any time one stream has it,
// or it is parked here with its memory and charges, until it is gone on with, begun anew, or its
// time is over. Of an upload that was stored the key set's id is kept as long, for a client who did
// not hear of it. Thread-safe; nothing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "proto/codec/key_set_reader.h"
#include "server/engine/key_store.h"
#include "server/engine/task_thread.h"

namespace cipherd::server {

// A key set on its way in: what has come, and the memory that all of it will take.
struct ReceivedKeys {
  codec::KeySetReader reader;
  engine::KeyUpload memory;

  uint64_t received_bytes() const { return reader.total_bytes() - reader.remaining_bytes(); }
};

class UploadTable {
 public:
  struct Key {
    std::string tenant;
    std::string upload_id;

    auto operator<=>(const Key&) const = default;
  };

  // Uploads are kept for `keep`. `clock` outlives the table.
  UploadTable(absl::Duration keep, const base::Clock& clock);
  UploadTable(const UploadTable&) = delete;
  UploadTable& operator=(const UploadTable&) = delete;

  // A stream has the upload from now on; `cancel` asks it to let go, until it has. With
  // `resume_bytes`, gives what was parked; without, what was parked is given up. Errors: NotFound
  // (unknown upload) where there is nothing to go on with; FailedPrecondition where what came is
  // not `resume_bytes`; Unavailable where another stream has it, which is told to let go;
  // ResourceExhausted where streams have all that the tenant may have; else the oldest that none
  // has makes room.
  absl::StatusOr<std::optional<ReceivedKeys>> Begin(const Key& key, uint64_t resume_bytes,
                                                    std::function<void()> cancel)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The stream broke.
  void Park(const Key& key, ReceivedKeys received) ABSL_LOCKS_EXCLUDED(mu_);
  // The upload has ended: with the id of the stored set, or, empty, without.
  void End(const Key& key, const std::string& key_set_id) ABSL_LOCKS_EXCLUDED(mu_);

  struct Progress {
    uint64_t received_bytes = 0;
    uint32_t described_keys = 0;
    // 64 digits once it is stored.
    std::string key_set_id;
  };
  // NotFound, or Unavailable where a stream has it, which is told to let go.
  absl::StatusOr<Progress> Find(const Key& key) ABSL_LOCKS_EXCLUDED(mu_);

  // Gives up what was kept long enough. Its thread does so by itself; tests call it after they
  // moved the clock.
  void Expire() ABSL_LOCKS_EXCLUDED(mu_);

  size_t parked_count() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    // Set while a stream has it.
    std::function<void()> cancel;
    // Set while it is parked.
    std::optional<ReceivedKeys> parked;
    std::string key_set_id;
    absl::Time expires_at = absl::InfiniteFuture();
  };

  using Entries = std::map<Key, Entry>;

  struct OfTenant {
    size_t count = 0;
    // The one that no stream has and that would expire first; end() where there is none.
    Entries::iterator oldest_kept;
  };
  OfTenant UploadsOf(const std::string& tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration keep_;
  const base::Clock& clock_;
  mutable absl::Mutex mu_;
  Entries entries_ ABSL_GUARDED_BY(mu_);
  // Last, so that it ends first.
  engine::TaskThread thread_;
};

}  // namespace cipherd::server
