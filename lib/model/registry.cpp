#include "model/registry.h"

#include <array>
#include <vector>

#include "model/families/families.h"

namespace dew {

std::span<const ModelFamily> model_families() {
  static constexpr std::array<ModelFamily, 1> kFamilies{{{"decoder", kEveryAxis, build_decoder}}};
  return kFamilies;
}

Model build_model(ConfigSection root, const ModelContext& context) {
  ConfigSection section = root.section({"model", "", "the model; its keys depend on the family"});
  std::vector<std::string_view> names;
  for (const ModelFamily& family : model_families()) names.push_back(family.name);
  const std::string name = section.choice({"family", "", "the model family"}, names.front(), names);
  for (const ModelFamily& family : model_families())
    if (family.name == name) return family.build(section, context);
  return {};
}

}  // namespace dew
