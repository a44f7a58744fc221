#include "io/checksum.h"

#include <bit>

#include "base/philox.h"
#include "io/box_runs.h"
#include "io/checkpoint.h"

namespace dew {
namespace {

// 2^64 / golden ratio, odd: the keys of all indices differ.
constexpr std::uint64_t kKeyStep = 0x9E3779B97F4A7C15ull;

// mix64 is a bijection, so that for one index different bits never have equal hashes.
template <class Bits, class T>
std::uint64_t hash_elements(std::uint64_t first, std::span<const T> elements) {
  std::uint64_t sum = 0, key = (first + 1) * kKeyStep;
  for (const T& element : elements) {
    sum += mix64(key + std::bit_cast<Bits>(element));
    key += kKeyStep;
  }
  return sum;
}

}  // namespace

std::uint64_t element_hash(std::uint64_t global_index, std::uint64_t bits) {
  return mix64((global_index + 1) * kKeyStep + bits);
}

std::uint64_t hash_run(std::uint64_t first, std::span<const float> elements) {
  return hash_elements<std::uint32_t>(first, elements);
}

std::uint64_t hash_run(std::uint64_t first, std::span<const double> elements) {
  return hash_elements<std::uint64_t>(first, elements);
}

template <class T>
std::uint64_t hash_box(const Slab& box, const T* elements) {
  std::uint64_t sum = 0;
  const BoxRuns runs(box);
  runs.for_each([&](std::int64_t begin) {
    sum += hash_run(static_cast<std::uint64_t>(begin),
                    std::span<const T>(elements, static_cast<std::size_t>(runs.length())));
    elements += runs.length();
  });
  return sum;
}

template std::uint64_t hash_box(const Slab&, const float*);
template std::uint64_t hash_box(const Slab&, const double*);

}  // namespace dew
