// What a continued run does differently from the run that its checkpoint was saved by.
#pragma once

#include <string>
#include <vector>

namespace dew {

/// A line for every setting of two resolved descriptions that bears on what is learned (run.steps, model,
/// precision, data, optimizer, schedule, ema) and is not written the same:
///   changed since the checkpoint: optimizer.lr 0.001 (was 0.003)
/// A key that `before` lacks is passed over: an older version did not know it. One line that says so where
/// `before` cannot be read.
std::vector<std::string> settings_changes(const std::string& before, const std::string& now);

}  // namespace dew
