// Kernels on elements one by one: arithmetic, sums, casts, optimizer, random numbers, boxes.
#include "base/text.h"
#include "kernels.h"
#include "kernels/adamw.h"
#include "kernels/pointwise.h"
#include "kernels/random.h"
#include "kernels/reduce.h"
#include "kernels/rope.h"
#include "kernels/strided.h"
#include "tensor/copy.h"

namespace dew::bench {
namespace {

using namespace kernels;

constexpr std::int64_t kMany = 1 << 22;  // elements: more than caches hold

/// Of weights and their state, which only have formats that sums can take.
void state_kernels(KernelBench& bench, DType dtype, const Tensor& x, const Tensor& y) {
  Stream& stream = bench.stream();
  const std::string shape = std::to_string(kMany);
  const Tensor moment = bench.tensor({kMany}, dtype), square = bench.tensor({kMany}, dtype);
  fill(stream, square, 1);
  bench.row(dtype, "scale", shape, [&] { scale(stream, moment, -1); });
  bench.row(dtype, "sum_of_squares", shape, [&] { sum_of_squares(stream, x); });
  bench.row(dtype, "adamw", shape, [&] { adamw(stream, {.lr = 1e-3}, y, x, moment, square); });
  bench.row(dtype, "lerp", shape, [&] { lerp(stream, x, y, 0.999); });
  const std::array<Tensor, 2> terms{x, y};
  bench.row(dtype, "sum_in_order", shape + " of 2", [&] { sum_in_order(stream, terms, moment, false); });
  const Measured normal = bench.measure(dtype, {[&] { fill_normal(stream, 1, 0, 1, moment); }}).front();
  bench.print("fill_normal", shape, normal,
              format("%.2f ns an element", normal.seconds / static_cast<double>(kMany) * 1e9));
  constexpr std::int64_t kPositions = 2048, kHeadWidth = 64;
  const Tensor table = bench.tensor({kPositions, kHeadWidth}, dtype);
  bench.row(dtype, "rope_table", "2048 x 64", [&] { rope_table(stream, 0, kPositions, {}, table); });
}

void boxes(KernelBench& bench, DType dtype) {
  Stream& stream = bench.stream();
  constexpr std::int64_t kRows = 2048, kHeads = 8, kHeadWidth = 64, kPart = kHeads / 2;
  const Tensor whole = bench.tensor({kRows, kHeads, kHeadWidth}, dtype),
               part = bench.tensor({kRows, kPart, kHeadWidth}, dtype);
  const StridedView from{whole, 0, {0, kHeads * kHeadWidth, kHeadWidth, 1}};
  const StridedView to{part, 0, {0, kPart * kHeadWidth, kHeadWidth, 1}};
  const std::array<std::int64_t, 4> extents{1, kRows, kPart, kHeadWidth};
  bench.row(dtype, "copy_strided", "2048 x 4 of 8 x 64",
            [&] { copy_strided(stream, extents, from, to, false); });
  const Shape rows{1, kRows, kHeads, kHeadWidth}, sums{1, kHeads, kRows};
  const Tensor o = bench.tensor(rows, dtype), o_part = bench.tensor(rows, dtype);
  const Tensor log_sum = bench.tensor(sums, sums_of(dtype)),
               log_sum_part = bench.tensor(sums, sums_of(dtype));
  bench.row(dtype, "merge_attention", "1 x 2048 x 8 x 64",
            [&] { merge_attention(stream, o_part, log_sum_part, o, log_sum); });
}

}  // namespace

void element_kernels(KernelBench& bench, DType dtype) {
  bench.heading(dtype, "kernels on elements");
  Stream& stream = bench.stream();
  const std::string shape = std::to_string(kMany);
  const Tensor x = bench.tensor({kMany}, dtype), y = bench.tensor({kMany}, dtype),
               z = bench.tensor({kMany}, dtype);
  bench.row(dtype, "add", shape, [&] { add(stream, x, y, z); });
  bench.row(dtype, "fill", shape, [&] { fill(stream, z, 1); });
  const DType other = dtype == DType::kF32 ? DType::kF64 : DType::kF32;
  const Tensor cast = bench.tensor({kMany}, other);
  const std::string pair = std::string(name_of(dtype)) + " to " + std::string(name_of(other));
  bench.row(dtype, "copy", shape, [&] { copy(stream, x, z); });
  bench.row(dtype, "cast " + pair, shape, [&] { kernels::cast(stream, x, cast); });
  bench.row(dtype, "cast back", shape, [&] { kernels::cast(stream, cast, z); });
  if (is_master(dtype)) state_kernels(bench, dtype, x, y);
  boxes(bench, dtype);
}

}  // namespace dew::bench
