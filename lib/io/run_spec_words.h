// What the files that read a RunSpec share. Private to this folder.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config.h"
#include "io/run_spec.h"

namespace dew {

/// Notes that a key's value is known but "not available in this version; accepted: ...".
void refuse(ConfigSection section, std::string_view key, std::string_view accepted);

/// The mesh axes that words name, each once; notes an error at `key` for others.
std::vector<Axis> axes_of(ConfigSection section, const std::string& key,
                          const std::vector<std::string>& words);

/// The product of values of 0 or more; false when it does not fit 64 bits.
bool checked_product(std::initializer_list<std::int64_t> values, std::int64_t& product);

MeshSection read_mesh(ConfigSection root);
/// device.peak; the device itself and the transport are the CPU and MPI in this version.
std::optional<double> read_device(ConfigSection root);
PipelineSection read_pipeline(ConfigSection root);
std::string read_sequence_exchange(ConfigSection root);
/// Sections whose keys are known, but of which only the defaults are available.
void read_reproducible(ConfigSection root);
/// failure.check_calls.
bool read_failure(ConfigSection root);

}  // namespace dew
