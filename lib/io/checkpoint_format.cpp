#include "io/checkpoint_format.h"

#include <cstring>

#include "base/check.h"
#include "io/box_runs.h"
#include "io/checksum.h"

namespace dew {

void write_run_state(Hdf5File& file, const RunState& state) {
  file.make_group("/run");
  file.write_attribute("/run", "format", kCheckpointFormat);
  file.write_attribute("/run", "step", state.step);
  file.write_attribute("/run", "tokens", state.tokens);
  file.write_attribute("/run", "seed", state.seed);
  file.write_attribute("/run", "version", std::string_view(state.version));
  file.write_attribute("/run", "config", std::string_view(state.resolved_yaml));
  file.make_group("/data");
  file.write_attribute("/data", "epoch", state.epoch);
  file.write_attribute("/data", "row", state.row);
  file.write_attribute("/data", "windows", state.windows);
  file.write_attribute("/data", "eos", state.eos);
}

RunState read_run_state(const Hdf5File& file) {
  RunState state;
  state.step = file.read_signed("/run", "step");
  state.tokens = file.read_signed("/run", "tokens");
  state.seed = file.read_unsigned("/run", "seed");
  state.version = file.read_text("/run", "version");
  state.resolved_yaml = file.read_text("/run", "config");
  state.epoch = file.read_signed("/data", "epoch");
  state.row = file.read_signed("/data", "row");
  // Older files lack it.
  if (file.has_attribute("/data", "windows")) state.windows = file.read_signed("/data", "windows");
  if (file.has_attribute("/data", "eos")) state.eos = file.read_signed("/data", "eos");
  return state;
}

std::int64_t read_format(const Hdf5File& file) {
  return file.read_signed("/run", "format");
}

std::int64_t elements_of(const NamedShard& shard) {
  std::int64_t elements = 0;
  for (const Slab& box : shard.boxes) elements += box.extent.numel();
  return elements;
}

void check_shard(const NamedShard& shard) {
  DEW_CHECK(shard.name.starts_with("/"), shard.name);
  for (const Slab& box : shard.boxes) {
    check_box(box);
    DEW_CHECK(box.global == shard.global, shard.name, box.global, shard.global);
  }
  const std::int64_t elements = elements_of(shard);
  if (elements == 0) return;
  DEW_CHECK(shard.local.defined() && shard.local.numel() == elements, shard.name, shard.local.numel(),
            elements);
  DEW_CHECK(shard.local.device().kind == Device::Kind::kCpu, shard.name);
  DEW_CHECK(shard.local.dtype() == DType::kF32 || shard.local.dtype() == DType::kF64, shard.name,
            name_of(shard.local.dtype()));
}

std::uint64_t hash_shard(const NamedShard& shard) {
  if (elements_of(shard) == 0) return 0;
  return visit_float(shard.local.dtype(), [&](auto zero) {
    const auto* at = shard.local.data<decltype(zero)>();
    std::uint64_t sum = 0;
    for (const Slab& box : shard.boxes) {
      sum += hash_box(box, at);
      at += box.extent.numel();
    }
    return sum;
  });
}

std::string pack_numbers(std::span<const std::int64_t> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

std::vector<std::int64_t> unpack_numbers(const std::string& bytes) {
  std::vector<std::int64_t> numbers(bytes.size() / sizeof(std::int64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(std::int64_t));
  return numbers;
}

}  // namespace dew
