// Losses that must not move: a change of the numbers of a run is a change of the product, and is made on
// purpose.
#include <gtest/gtest.h>

#include "base/text.h"
#include "system/run_folder.h"

namespace dew::testing {
namespace {

// f64 sums depend on the machine's vector width and its libraries by some 1e-16 a term; twenty steps of a
// small model amplify that to far below this bound, while a changed rule (data order, initial weights,
// update) moves the third digit.
constexpr double kF64Distance = 1e-9;
// The same training in f32: roundings of 6e-8 a value, amplified by the optimizer's division over twenty
// steps.
constexpr double kF32Distance = 1e-4;

struct Golden {
  Words assignments;
  std::vector<double> losses;
};

const Golden kPlain{
    {"run.steps=20", "optimizer.lr=0.003"},
    {5.549149809840849, 5.512599237640297, 5.46744264854866,  5.391134492399599, 5.352692437606406,
     5.283116972200681, 5.228469266251592, 5.136101764701317, 5.062418052832157, 5.0044261777586145,
     4.94033038397067,  4.864034386285396, 4.788267643717855, 4.739261750677148, 4.684699250597854,
     4.588126605486355, 4.528236982511299, 4.453686577451609, 4.375518858195736, 4.310628864929264}};

const Golden kFeatures{
    {"run.steps=20", "optimizer.lr=0.003", "optimizer.betas=[0.9, 0.95]", "optimizer.clip=0.5",
     "optimizer.weight_decay=0.1", "schedule.kind=cosine", "schedule.warmup=5", "schedule.final=0.1",
     "model.layers=2", "model.heads=4", "model.kv_heads=2", "model.tied=true", "model.window=[5, 0]",
     "data.seq_len=33", "accumulate=3", "run.seed=3"},
    {5.5390082258631175, 5.523756341739224, 5.506879322717773, 5.472869535160861, 5.412978993995304,
     5.322978034038998,  5.244707381886507, 5.174362853003871, 5.111265059188994, 5.052081370853545,
     4.999603975766031,  4.954241261465414, 4.908162118542659, 4.881084757984197, 4.844282873606966,
     4.813399858583293,  4.803443113420256, 4.78084876080805,  4.776799427024612, 4.769891588614474}};

std::string listed(const std::vector<double>& values) {
  std::string text;
  for (double value : values) text += format_exact(value) + ", ";
  return text;
}

void expect_golden(const Golden& golden) {
  const RunFolder exact, rounded;
  ASSERT_EQ(exact.train(0, f64_with(golden.assignments)).status, 0);
  ASSERT_EQ(rounded.train(0, golden.assignments).status, 0);
  EXPECT_LE(relative_distance(exact.losses(), golden.losses), kF64Distance) << listed(exact.losses());
  EXPECT_LE(relative_distance(rounded.losses(), golden.losses), kF32Distance) << listed(rounded.losses());
}

TEST(Golden, PlainDecoder) {
  expect_golden(kPlain);
}

TEST(Golden, DecoderWithTiedHeadWindowsGroupedHeadsClippingAndAccumulation) {
  expect_golden(kFeatures);
}

}  // namespace
}  // namespace dew::testing
