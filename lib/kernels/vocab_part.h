// Which rows of the vocabulary a rank's table or head holds.
#pragma once

#include <cstdint>

namespace dew::kernels {

/// The rows [first, first + rows of the tensor at hand) of a vocabulary of `size`.
struct VocabPart {
  std::int64_t first = 0, size = 0;
};

}  // namespace dew::kernels
