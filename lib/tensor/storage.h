// A reference-counted block of bytes from a stream's pool.
#pragma once

#include <cstddef>

#include "tensor/allocator.h"

namespace dew {

class Storage {
 public:
  Storage(Allocator& allocator, std::size_t bytes, Owner owner)
      : allocator_(allocator), block_(allocator.allocate(bytes, owner)), bytes_(bytes), owner_(owner) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() { allocator_.free(block_, bytes_, owner_); }

  void* block() const { return block_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return allocator_.device(); }

 private:
  Allocator& allocator_;
  void* block_;
  std::size_t bytes_;
  Owner owner_;
};

}  // namespace dew
