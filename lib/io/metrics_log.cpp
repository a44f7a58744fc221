#include "io/metrics_log.h"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/check.h"
#include "base/text.h"
#include "io/durable_file.h"
#include "io/posix_file.h"

namespace dew {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& path, const char* what) {
  throw Error(path + ": " + what + ": " + system_reason(errno));
}

/// The whole lines of the file that stay: those without a step, and those up to `last_step`.
std::string kept_lines(const std::string& path, std::int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be read");
  std::string kept, line;
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
    kept += line;
    kept += '\n';
  }
  if (file.bad()) refuse(path, "cannot be read");
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

MetricsLog::MetricsLog(const std::string& path, std::int64_t last_step) : path_(path) {
  std::error_code ignored;  // whatever else is wrong with the path, opening it says so
  const bool missing = std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found;
  const bool resume = last_step >= 0 && !missing;
  write_file_durably(path, resume ? kept_lines(path, last_step) : std::string());
  file_.reset(std::fopen(path.c_str(), "ab"));
  if (file_ == nullptr) refuse(path_, "cannot be opened");
}

void MetricsLog::write(std::span<const JsonField> fields) {
  std::string line = "{";
  for (const auto& [name, value] : fields) {
    if (line.size() > 1) line += ", ";
    line += json_text(name) + ": " + to_text(value);
  }
  line += "}\n";
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
  if (!written || std::fflush(file_.get()) != 0) refuse(path_, "cannot be written");
}

void MetricsLog::Closer::operator()(std::FILE* file) const {
  std::fclose(file);
}

}  // namespace dew
