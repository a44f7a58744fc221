#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_math.h"
#include "kernels/cpu/simd/vec_philox.h"

namespace dew::kernels::cpu::DEW_ISA {

namespace {

constexpr std::int64_t kGroup = 16;  ///< elements of eight Philox blocks, two each

/// The 52 high bits of a word as a number in [1, 2).
[[gnu::always_inline]] inline VecD from_one_to_two(Words high, Words low) {
  const Words bits = shift_right<12>(shift_left<32>(high) | low);
  return as_doubles(bits | broadcast_word(0x3FF0000000000000));
}

/// Normals of the elements [16 group, 16 group + 16): base/philox.h's generator on eight counters, then
/// Box-Muller.
[[gnu::always_inline]] inline LanePair normals(std::uint64_t key, std::int64_t group) {
  const PhiloxWords words = philox(key, static_cast<std::uint64_t>(group) * (kGroup / 2), 0);
  const VecD distance = broadcast(2.0) - from_one_to_two(words.c0, words.c1);  // in (0, 1]
  const VecD turns = from_one_to_two(words.c2, words.c3) - broadcast(1.0);     // in [0, 1)
  const VecD radius = sqrt(abs(log(distance) * broadcast(-2.0)));
  const SinCos direction = sin_cos_turns(turns);
  const VecD first = radius * direction.cosine, second = radius * direction.sine;
  return {interleave_low(first, second), interleave_high(first, second)};
}

[[gnu::always_inline]] inline void put(float* x, LanePair z) {
  store(x, narrow(z.low, z.high));
}
[[gnu::always_inline]] inline void put(double* x, LanePair z) {
  store_pair(x, z, AllLanes{});
}

}  // namespace

template <class T>
void fill_normal(std::uint64_t key, std::int64_t begin, double stddev, T* x, std::int64_t n) {
  const VecD factor = broadcast(stddev);
  const std::int64_t end = begin + n;
  for (std::int64_t group = begin / kGroup; group * kGroup < end; ++group) {
    const LanePair z = normals(key, group);
    const LanePair scaled{z.low * factor, z.high * factor};
    const std::int64_t first = group * kGroup;
    if (first >= begin && first + kGroup <= end) {
      put(x + (first - begin), scaled);
      continue;
    }
    T whole[kGroup];
    put(whole, scaled);
    for (std::int64_t i = 0; i < kGroup; ++i)
      if (first + i >= begin && first + i < end) x[first + i - begin] = whole[i];
  }
}

template void fill_normal(std::uint64_t, std::int64_t, double, float*, std::int64_t);
template void fill_normal(std::uint64_t, std::int64_t, double, double*, std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
