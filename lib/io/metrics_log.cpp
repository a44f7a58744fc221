#include "io/metrics_log.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/check.h"
#include "base/text.h"
#include "io/durable_file.h"

namespace dew {
namespace {

using Json = nlohmann::json;

std::string text_of(const std::string& path) {
  const PosixFile file = PosixFile::open_to_read(path);
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  text.resize(static_cast<std::size_t>(file.read_at(0, text.data(), file.bytes())));
  return text;
}

struct Kept {
  std::string text;
  std::int64_t last_evaluation = -1;
};

/// The whole lines of the file that stay: those without a step, and those up to `last_step`.
Kept kept_lines(const std::string& path, std::int64_t last_step) {
  std::istringstream file(text_of(path));
  Kept kept;
  std::string line;
  for (std::int64_t number = 1; std::getline(file, line); ++number) {
    if (file.eof()) break;  // no end of line: torn, or not known to be whole
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) {
      throw Error(path + ": line " + std::to_string(number) +
                  " is no JSON object; repair the file or move it away to go on");
    }
    const auto step = json.find("step");
    if (step != json.end() && step->is_number() && step->get<double>() > static_cast<double>(last_step))
      continue;
    if (step != json.end() && step->is_number_integer() && json.contains("val_loss"))
      kept.last_evaluation = std::max(kept.last_evaluation, step->get<std::int64_t>());
    kept.text += line;
    kept.text += '\n';
  }
  return kept;
}

std::string json_text(std::string_view text) {
  // Bytes that are not UTF-8 become U+FFFD, so that the line stays JSON.
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const JsonValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return json_text(*text);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  const double real = std::get<double>(value);
  return std::isfinite(real) ? format_exact(real) : "null";
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, std::int64_t last_step) {
  std::error_code ignored;  // whatever else is wrong with the path, opening it says so
  const bool missing = std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found;
  const bool resume = last_step >= 0 && !missing;
  const Kept kept = resume ? kept_lines(path, last_step) : Kept{};
  write_file_durably(path, kept.text);
  last_evaluation_ = kept.last_evaluation;
  file_ = PosixFile::open_to_append(path);
}

void MetricsLog::write(std::span<const JsonField> fields) {
  std::string line = "{";
  for (const auto& [name, value] : fields) {
    if (line.size() > 1) line += ", ";
    line += json_text(name) + ": " + to_text(value);
  }
  line += "}\n";
  file_->append(line.data(), static_cast<std::int64_t>(line.size()));
}

}  // namespace dew
