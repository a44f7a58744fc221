// A model: a chain of blocks that ends in the loss.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/block.h"

namespace dew {

struct Model {
  std::string family;
  std::string summary;  ///< for the head: "decoder, 4 layers x 128, 4 heads, vocab 256, tied"
  std::vector<std::unique_ptr<Block>> chain;  ///< embed, body, head with loss
  std::vector<std::string> remat_sites;       ///< names that `recompute` may list

  /// Every parameter once, in the order of the chain. Throws Error when one name has two shapes.
  std::vector<ParamSpec> params() const;
  std::int64_t parameter_count() const;
};

}  // namespace dew
