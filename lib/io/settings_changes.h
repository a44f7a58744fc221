// What a continued run does differently from the run that its checkpoint was saved by.
#pragma once

#include <string>
#include <vector>

namespace dew {

/// "optimizer.lr 0.001 (was 0.003)" for every setting of two resolved descriptions that bears on what is
/// learned (run.steps, model, precision, data, optimizer, schedule) and is not the same, in the order of
/// `now`. A key that `before` lacks is passed over: an older version did not know it. Throws ConfigError,
/// which calls `before` by `name`, where it is no YAML.
std::vector<std::string> settings_changes(const std::string& before, const std::string& name,
                                          const std::string& now);

}  // namespace dew
