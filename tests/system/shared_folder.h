// A folder that all ranks of a test name alike; rank 0 makes and removes it.
#pragma once

#include <memory>
#include <string>

#include "io/temp_folder.h"
#include "support/mpi_world.h"

namespace dew::testing {

class SharedFolder {
 public:
  SharedFolder() {
    if (world().rank() == 0) mine_ = std::make_unique<TempFolder>();
    path_ = world().broadcast(mine_ ? mine_->path() : "", 0);
  }
  const std::string& path() const { return path_; }
  /// The path of a file of this text.
  std::string write(const std::string& name, const std::string& text) const {
    if (mine_) mine_->write(name, text);
    world().barrier();
    return path_ + '/' + name;
  }

 private:
  std::unique_ptr<TempFolder> mine_;
  std::string path_;
};

}  // namespace dew::testing
