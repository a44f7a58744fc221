// An ordered queue of work on one device. On a CPU and on a meta device work runs inline, so a stream is the
// place where the device, its pool, its profile and the progress hook of communication meet.
#pragma once

#include <functional>

#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/profile.h"

namespace dew {

class Stream {
 public:
  /// `allocator` must outlive the stream and every tensor made on it.
  explicit Stream(Allocator& allocator) : allocator_(allocator) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device device() const { return allocator_.device(); }
  Allocator& allocator() { return allocator_; }
  Profile& profile() { return profile_; }

  /// Blocks the host until all work queued so far is done.
  void synchronize() {}

  /// A cheap call that lets communication advance; large kernels make it before they start. MPI needs it,
  /// having no progress of its own.
  void set_progress(std::function<void()> poll) { poll_ = std::move(poll); }
  void progress() {
    if (poll_) poll_();
  }

 private:
  Allocator& allocator_;
  Profile profile_;
  std::function<void()> poll_;
};

/// A point in a stream's queue that another stream can wait for.
class Event {
 public:
  void record(Stream&) {}
  void wait(Stream&) const {}
};

/// Accounts one kernel call to the stream's profile for the length of its scope.
class KernelScope {
 public:
  KernelScope(Stream& stream, KernelKind kind, double flops, double bytes);
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;
  ~KernelScope();

 private:
  Profile& profile_;
  KernelKind kind_;
  double start_ = 0;
};

}  // namespace dew
