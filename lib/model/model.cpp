#include "model/model.h"

#include <map>

#include "base/check.h"

namespace dew {

std::vector<ParamSpec> Model::params() const {
  std::vector<ParamSpec> all;
  std::map<std::string, Shape> seen;
  for (const auto& block : chain) {
    for (const ParamSpec& spec : block->params()) {
      const auto [at, is_new] = seen.emplace(spec.name, spec.shape);
      DEW_CHECK(at->second == spec.shape, spec.name, at->second, spec.shape);
      if (is_new) all.push_back(spec);
    }
  }
  return all;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const ParamSpec& spec : params()) count += spec.shape.numel();
  return count;
}

}  // namespace dew
