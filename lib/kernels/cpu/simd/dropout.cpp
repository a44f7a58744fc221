#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_philox.h"

namespace dew::kernels::cpu::DEW_ISA {

namespace {

constexpr std::uint64_t kGroup = 32;  ///< draws of eight Philox blocks, four each
constexpr std::int64_t kRoom = 16;    ///< behind them, so that whole vectors may be read

/// A word below 2^32 as a double, exactly.
[[gnu::always_inline]] inline VecD as_number(Words word) {
  return as_doubles(word | broadcast_word(0x4330000000000000)) - broadcast(0x1p52);
}

/// Factors of the elements [32 group, 32 group + 32) of a line: 0 where dropped, else `scale`.
[[gnu::always_inline]] inline void factors(const DropoutDraw& draw, std::int64_t line, std::int64_t group,
                                           double* out) {
  const std::uint64_t counter =
      (static_cast<std::uint64_t>(line) << 32) | (static_cast<std::uint64_t>(group) * 8);
  const PhiloxWords words = philox(draw.key, counter, static_cast<std::uint64_t>(draw.row));
  const VecD bound = broadcast(draw.bound), scale = broadcast(draw.scale);
  const Words all[4] = {words.c0, words.c1, words.c2, words.c3};
  for (int w = 0; w < 4; ++w)
    store(out + w * VecD::kLanes, select(as_number(all[w]) < bound, zero<double>(), scale));
}

template <class T>
[[gnu::always_inline]] inline void times(const T* x, const double* f, T* y, bool accumulate, std::int64_t n) {
  for_vectors<T>(n, [=](std::int64_t i, auto part) {
    const LanePair pair = load_pair(f + i, AllLanes{});
    const VecF product = load(x + i, part) * narrow(pair.low, pair.high);
    store(y + i, accumulate ? load(y + i, part) + product : product, part);
  });
}
[[gnu::always_inline]] inline void times(const double* x, const double* f, double* y, bool accumulate,
                                         std::int64_t n) {
  for_vectors<double>(n, [=](std::int64_t i, auto part) {
    const VecD product = load(x + i, part) * load(f + i);
    store(y + i, accumulate ? load(y + i, part) + product : product, part);
  });
}

}  // namespace

template <class T>
void dropout_line(const DropoutDraw& draw, std::int64_t line, std::int64_t begin, const T* x, T* y,
                  bool accumulate, std::int64_t n) {
  double buffer[kGroup + kRoom] = {};
  for (std::int64_t done = 0; done < n;) {
    const std::uint64_t at = static_cast<std::uint64_t>(begin + done);
    const std::int64_t inside = static_cast<std::int64_t>(at % kGroup),
                       group = static_cast<std::int64_t>(at / kGroup);
    const std::int64_t room = static_cast<std::int64_t>(kGroup) - inside;
    const std::int64_t count = n - done < room ? n - done : room;
    factors(draw, line, group, buffer);
    times(x + done, buffer + inside, y + done, accumulate, count);
    done += count;
  }
}

template void dropout_line(const DropoutDraw&, std::int64_t, std::int64_t, const float*, float*, bool,
                           std::int64_t);
template void dropout_line(const DropoutDraw&, std::int64_t, std::int64_t, const double*, double*, bool,
                           std::int64_t);

template void dropout_line(const DropoutDraw&, std::int64_t, std::int64_t, const bf16*, bf16*, bool,
                           std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
