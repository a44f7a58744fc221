// Every kernel on this machine: its shape, bytes, FLOP and time beside its bound, the longer of
//   FLOP / the rate of the best 768 x 768 x 768 product at hand (ours or the library's), and
//   the time of a plain copy that reads and writes as many bytes in all with as many threads,
// both measured in the same turns, and the share of the bound reached (100 %: as fast as the bound). Kernels
// that compute much on each byte and are no products (exp, random numbers) stay far from it by their nature;
// those that write where they read may pass it, since a copy's target lies elsewhere.
//   OMP_NUM_THREADS=N bench_kernels [gemm|attention|rest]... [--type f32|f64] [--rounds N]
#include "kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/philox.h"
#include "base/text.h"
#include "base/timer.h"
#include "kernels/gemm.h"
#include "tensor/copy.h"

namespace dew::bench {

Measured operator+(const Measured& a, const Measured& b) {
  return {a.flops + b.flops, a.bytes + b.bytes, a.seconds + b.seconds, a.matrix_seconds + b.matrix_seconds,
          a.copy_seconds + b.copy_seconds};
}

Tensor KernelBench::tensor(const Shape& shape, DType dtype) {
  constexpr std::int64_t kPeriod = 65537;  // prime, so that no row of a matrix repeats the one before
  Tensor wide = Tensor::empty(shape, sums_of(dtype), stream_, Owner::kActivations);
  std::vector<double> values(kPeriod);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = philox(7, i, 0)[0] * 0x1p-31 - 1;
  visit_float(wide.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < wide.numel(); ++i)
      wide.data<T>()[i] = static_cast<T>(values[static_cast<std::size_t>(i % kPeriod)]);
  });
  if (is_master(dtype)) return wide;
  Tensor narrow = Tensor::empty(shape, dtype, stream_, Owner::kActivations);
  copy(stream_, wide, narrow);
  return narrow;
}

Tensor KernelBench::ids(std::int64_t count, std::int64_t vocab) {
  Tensor made = Tensor::empty({count}, DType::kI32, stream_, Owner::kBuffers);
  for (std::int64_t i = 0; i < count; ++i)
    made.data<std::int32_t>()[i] =
        static_cast<std::int32_t>(philox(11, static_cast<std::uint64_t>(i), 0)[0] % vocab);
  return made;
}

std::vector<double> KernelBench::best_seconds(const std::vector<Work>& works) const {
  constexpr double kBudget = 0.3;  // seconds for each work
  constexpr int kFewest = 5;
  std::vector<double> best(works.size(), 1e30);
  const double start = steady_seconds(), budget = kBudget * static_cast<double>(works.size());
  for (int round = 0; rounds_ > 0 ? round < rounds_ : round < kFewest || steady_seconds() - start < budget;
       ++round)
    for (std::size_t i = 0; i < works.size(); ++i) {
      const double begin = steady_seconds();
      works[i]();
      best[i] = std::min(best[i], steady_seconds() - begin);
    }
  return best;
}

Measured KernelBench::cost_of(const Work& work) {
  stream_.profile().clear();
  work();
  Measured cost;
  for (const KernelTotals& totals : stream_.profile().kinds) {
    cost.flops += totals.flops;
    cost.bytes += totals.bytes;
  }
  return cost;
}

Work KernelBench::plain_copy(double bytes) {
  const std::int64_t half = std::max<std::int64_t>(static_cast<std::int64_t>(bytes / 2), 1);
  const Tensor from = Tensor::zeros({half}, DType::kU8, stream_, Owner::kBuffers);
  const Tensor to = Tensor::zeros({half}, DType::kU8, stream_, Owner::kBuffers);
  return [half, from, to] {
    constexpr std::int64_t kPart = 1 << 16;
    const std::uint8_t* in = from.data<std::uint8_t>();
    std::uint8_t* out = to.data<std::uint8_t>();
#pragma omp parallel for schedule(static) if (half > kPart)
    for (std::int64_t begin = 0; begin < half; begin += kPart)
      std::memcpy(out + begin, in + begin, static_cast<std::size_t>(std::min(kPart, half - begin)));
  };
}

std::array<Work, 2> KernelBench::reference_products(DType dtype) {
  const Tensor a = tensor({kReferenceSide, kReferenceSide}, dtype),
               c = tensor({kReferenceSide, kReferenceSide}, dtype);
  const Work ours = [this, a, c] {
    kernels::gemm(stream_, a, kernels::Transpose::kNo, a, kernels::Transpose::kNo, {c});
  };
  return {ours, library_product({kReferenceSide, kReferenceSide, kReferenceSide}, {}, a, a, c)};
}

std::vector<Measured> KernelBench::measure(DType dtype, const std::vector<Work>& works) {
  constexpr double kReferenceFlops = 2.0 * kReferenceSide * kReferenceSide * kReferenceSide;
  std::vector<Measured> measured;
  std::vector<Work> turns;
  for (const Work& work : works) {  // this call also warms it up
    measured.push_back(cost_of(work));
    turns.push_back(work);
    turns.push_back(plain_copy(measured.back().bytes));
    turns.back()();
  }
  for (const Work& product : reference_products(dtype)) {
    product();
    turns.push_back(product);
  }
  const std::vector<double> best = best_seconds(turns);
  const double product_seconds = std::min(best[best.size() - 1], best[best.size() - 2]);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    measured[i].seconds = best[2 * i];
    measured[i].copy_seconds = best[2 * i + 1];
    measured[i].matrix_seconds = product_seconds * measured[i].flops / kReferenceFlops;
  }
  return measured;
}

void KernelBench::heading(DType dtype, const char* title) const {
  std::printf("\n%s %s\n%-22s %-34s %10s %11s %11s %11s %14s\n", std::string(name_of(dtype)).c_str(), title,
              "kernel", "shape", "MB", "MFLOP", "us", "bound us", "share of bound");
}

void KernelBench::print(const std::string& name, const std::string& shape, const Measured& m,
                        const std::string& more) {
  const bool computes = m.matrix_seconds >= m.copy_seconds;
  std::printf("%-22s %-34s %10.3f %11.2f %11.1f %11.1f %5.1f %% %-6s %s\n", name.c_str(), shape.c_str(),
              m.bytes * 1e-6, m.flops * 1e-6, m.seconds * 1e6, m.bound() * 1e6, 100 * m.bound() / m.seconds,
              computes ? "matrix" : "copy", more.c_str());
  std::fflush(stdout);
}

Measured KernelBench::row(DType dtype, const std::string& name, const std::string& shape, const Work& work) {
  const Measured measured = measure(dtype, {work}).front();
  print(name, shape, measured);
  return measured;
}

}  // namespace dew::bench

int main(int argc, char** argv) {
  std::vector<std::string> parts, types;
  int rounds = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--type" && i + 1 < argc)
      types.emplace_back(argv[++i]);
    else if (argument == "--rounds" && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else
      parts.push_back(argument);
  }
  const auto holds = [](const std::vector<std::string>& wanted, std::string_view name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  dew::bench::KernelBench bench(rounds);
  for (const dew::DType dtype : dew::bench::kMeasuredTypes) {
    if (!holds(types, name_of(dtype))) continue;
    if (holds(parts, "gemm")) dew::bench::gemm_rows(bench, dtype);
    if (holds(parts, "attention")) dew::bench::attention_rows(bench, dtype);
    if (!holds(parts, "rest")) continue;
    dew::bench::row_kernels(bench, dtype);
    dew::bench::element_kernels(bench, dtype);
  }
}
