// Every recompute site of the decoder, alone and nested: the same bits from less memory.
#include <gtest/gtest.h>

#include "support/tiny_models.h"

namespace dew::test {
namespace {

using Sites = std::set<std::string, std::less<>>;

constexpr std::int64_t kLength = 33, kVocab = 17;

struct Result {
  double loss = 0;
  ChainRun::ByName gradients;
  std::int64_t kept = 0, peak = 0;
};

Result run(Workbench& bench, const Model& model, const Sites& sites, DType dtype) {
  ChainRun chain(bench, model, dtype);
  const double loss =
      chain.differentiate(microbatch_of(bench, 2, kLength, kVocab), RematPolicy{false, sites});
  return {loss, chain.gradients, chain.kept, chain.peak};
}

Model model_of_three_layers() {
  return decoder_of(
      "layers: 3, width: 24, heads: 6, kv_heads: 2, mlp: 65, vocab: 17, window: [0, 5], tied: true");
}

void expect_same_bits(const Result& a, const Result& b) {
  EXPECT_EQ(a.loss, b.loss);
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (const auto& [name, gradient] : a.gradients)
    EXPECT_TRUE(same_bits(gradient, b.gradients.at(name))) << name;
}

TEST(DecoderRemat, GivesTheSameBitsFromLessMemoryAtEachSite) {
  const Model model = model_of_three_layers();
  for (DType dtype : {DType::kF64, DType::kF32}) {
    Workbench bench;
    const Result whole = run(bench, model, {}, dtype);
    for (const std::string& site : model.remat_sites) {
      SCOPED_TRACE(site);
      const Result again = run(bench, model, {site}, dtype);
      expect_same_bits(again, whole);
      EXPECT_LT(again.kept, whole.kept) << "no site of that name";
      EXPECT_LT(again.peak, whole.peak);
    }
  }
}

TEST(DecoderRemat, GivesTheSameBitsAtNestedSites) {
  const Model model = model_of_three_layers();
  Workbench bench;
  const Result whole = run(bench, model, {}, DType::kF64);
  for (const Sites& sites : {Sites{"attention", "qkv"},
                             {"mlp", "mlp_hidden"},
                             {"attention", "mlp_hidden"},
                             {"attention", "qkv", "mlp", "mlp_hidden"}}) {
    const Result again = run(bench, model, sites, DType::kF64);
    expect_same_bits(again, whole);
    EXPECT_LT(again.peak, whole.peak);
  }
}

TEST(DecoderRemat, KeepsTheInputsOfBothHalvesAndNoMore) {
  const Model model = model_of_three_layers();
  Workbench bench;

  const std::int64_t kept = run(bench, model, {"attention", "mlp"}, DType::kF64).kept;

  // Three layers, two inputs [T, D] each; the head keeps its input, its norm's inverse and dL/dx; sizes are
  // rounded up by at most an eighth.
  const std::int64_t stream = 2 * kLength * 24 * 8;
  EXPECT_LE(kept, (3 * 2 + 2) * stream * 9 / 8 + 2 * kLength * 8 + 128);
}

TEST(DecoderRemat, LeavesWorkThatIsNotNamedAsItIs) {
  const Model model = model_of_three_layers();
  Workbench bench;
  const auto products = [&](const Sites& sites) {
    bench.stream.profile().clear();
    run(bench, model, sites, DType::kF64);
    return bench.stream.profile()[KernelKind::kGemm].calls;
  };

  const std::int64_t whole = products({});

  EXPECT_EQ(products({"qkv"}), whole + 3 * 3);
  EXPECT_EQ(products({"attention"}), whole + 3 * 4);
  EXPECT_EQ(products({"mlp_hidden"}), whole + 3 * 2);
  EXPECT_EQ(products({"mlp"}), whole + 3 * 3);
  EXPECT_EQ(products({"none of them"}), whole);
}

}  // namespace
}  // namespace dew::test
