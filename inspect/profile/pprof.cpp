// pprof's format: profile.proto, gzipped. The numbers of the fields are those of
// github.com/google/pprof/proto/profile.proto.
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "profile/files.h"
#include "profile/formats.h"
#include "profile/protobuf.h"

namespace annex::inspect {
namespace {

namespace profile_field {
enum {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kFunction,
  kStringTable,
  kTimeNanos = 9,
  kDurationNanos,
  kPeriodType,
  kPeriod,
  kComment,
  kDefaultSampleType
};
}
namespace value_type_field {
enum { kType = 1, kUnit };
}
namespace sample_field {
enum { kLocationId = 1, kValue, kLabel };
}
namespace label_field {
enum { kKey = 1, kText };
}
namespace mapping_field {
enum {
  kId = 1,
  kStart,
  kLimit,
  kOffset,
  kFilename,
  kBuildId,
  kHasFunctions,
  kHasFilenames,
  kHasLineNumbers,
  kHasInlineFrames
};
}
namespace location_field {
enum { kId = 1, kMappingId, kAddress, kLine };
}
namespace line_field {
enum { kFunctionId = 1, kLine };
}
namespace function_field {
enum { kId = 1, kName, kSystemName, kFilename, kStartLine };
}

// What pprof calls the values, in its order.
constexpr struct {
  Value value;
  const char* type;
  const char* unit;
} kTypes[] = {{kTotalBlocks, "alloc_objects", "count"},
              {kTotalBytes, "alloc_space", "bytes"},
              {kLiveBlocks, "inuse_objects", "count"},
              {kLiveBytes, "inuse_space", "bytes"},
              {kPinnedBytes, "pinned_space", "bytes"}};

class Writer {
 public:
  explicit Writer(const Profile& profile) : profile_(profile) { text(""); }

  std::string write() {
    for (const auto& type : kTypes) out_.message(profile_field::kSampleType, value_type(type.type, type.unit));
    for (const Site& site : profile_.sites) add_sample(site);
    for (size_t i = 0; i < profile_.raw.modules.size(); ++i) add_mapping(i);
    for (size_t i = 0; i < profile_.places.size(); ++i) add_location(i);
    add_rest();
    for (const std::string& text : table_) out_.text(profile_field::kStringTable, text);
    return gzipped(out_.bytes());
  }

 private:
  // The place in the table of texts.
  uint64_t text(const std::string& value) {
    const auto [place, first] = texts_.try_emplace(value, texts_.size());
    if (first) table_.push_back(value);
    return place->second;
  }

  Message value_type(const char* type, const char* unit) {
    Message one;
    one.number(value_type_field::kType, text(type));
    one.number(value_type_field::kUnit, text(unit));
    return one;
  }

  void add_sample(const Site& site) {
    Message one;
    std::vector<uint64_t> ids, values;
    for (const size_t place : site.places) ids.push_back(place + 1);
    for (const auto& type : kTypes) values.push_back(static_cast<uint64_t>(std::llround(site.values[type.value])));
    one.packed(sample_field::kLocationId, ids);
    one.packed(sample_field::kValue, values);
    for (const auto& [key, value] : site.labels) {
      Message label;
      label.number(label_field::kKey, text(key));
      label.number(label_field::kText, text(value));
      one.message(sample_field::kLabel, label);
    }
    out_.message(profile_field::kSample, one);
  }

  void add_mapping(size_t index) {
    const Module& module = profile_.raw.modules[index];
    Message one;
    one.number(mapping_field::kId, index + 1);
    one.number(mapping_field::kStart, module.start);
    one.number(mapping_field::kLimit, module.end);
    one.number(mapping_field::kOffset, module.offset);
    one.number(mapping_field::kFilename, text(module.path));
    one.number(mapping_field::kBuildId, text(module.build_id));
    // What could be known is known: without these pprof would look the names up itself, and often find fewer.
    for (const int known : {mapping_field::kHasFunctions, mapping_field::kHasFilenames, mapping_field::kHasLineNumbers,
                            mapping_field::kHasInlineFrames}) {
      one.number(known, 1);
    }
    out_.message(profile_field::kMapping, one);
  }

  void add_location(size_t index) {
    const Place& place = profile_.places[index];
    const bool in_module = place.frame.module != kNoModule;
    Message one;
    one.number(location_field::kId, index + 1);
    if (in_module) one.number(location_field::kMappingId, place.frame.module + 1);
    one.number(location_field::kAddress, place.frame.return_address - 1);
    for (const CodeLine& line : place.lines) {
      Message part;
      part.number(line_field::kFunctionId, function(line));
      part.number(line_field::kLine, line.line);
      one.message(location_field::kLine, part);
    }
    out_.message(profile_field::kLocation, one);
  }

  // The function's number, from 1 on.
  uint64_t function(const CodeLine& line) {
    const auto [place, first] =
        functions_.try_emplace({line.function, line.file, line.first_line}, functions_.size() + 1);
    if (first) {
      Message one;
      one.number(function_field::kId, place->second);
      one.number(function_field::kName, text(line.function));
      // Where both names are the same pprof takes the name for a mangled one, and what is in brackets off it.
      if (line.symbol != line.function) one.number(function_field::kSystemName, text(line.symbol));
      one.number(function_field::kFilename, text(line.file));
      one.number(function_field::kStartLine, line.first_line);
      out_.message(profile_field::kFunction, one);
    }
    return place->second;
  }

  void add_rest() {
    constexpr uint64_t kNanosInMs = 1'000'000;
    const RawProfile& raw = profile_.raw;
    out_.number(profile_field::kTimeNanos, raw.began_ms * kNanosInMs);
    if (raw.written_ms > raw.began_ms) {
      out_.number(profile_field::kDurationNanos, (raw.written_ms - raw.began_ms) * kNanosInMs);
    }
    out_.message(profile_field::kPeriodType, value_type("space", "bytes"));
    out_.number(profile_field::kPeriod, raw.rate);
    out_.number(profile_field::kDefaultSampleType, text("inuse_space"));
  }

  const Profile& profile_;
  Message out_;
  std::unordered_map<std::string, uint64_t> texts_;
  std::vector<std::string> table_;
  std::map<std::tuple<std::string, std::string, uint64_t>, uint64_t> functions_;
};

}  // namespace

std::string pprof(const Profile& profile) { return Writer(profile).write(); }

}  // namespace annex::inspect
