// Reads a raw file: strictly, since half of one would make a profile that looks like a whole one.
#include "profile/raw.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "message.h"
#include "profile/files.h"
#include "profile/words.h"

namespace annex::inspect {
namespace {

class Reader {
 public:
  // One line. False at the last one.
  bool line(std::string_view text) {
    Words words(text);
    const std::string_view kind = words.next();
    in_order(kind);
    if (kind == "end") {
      if (words.more() || profile.rate == 0 || profile.page == 0) throw BadLine();
      return false;
    }
    if (kind == "pid") profile.pid = words.number();
    if (kind == "program") profile.program = words.rest();
    if (kind == "version") profile.version = words.rest();
    if (kind == "began") profile.began_ms = words.number();
    if (kind == "written") profile.written_ms = words.number();
    if (kind == "rate") profile.rate = words.number();
    if (kind == "page") profile.page = words.number();
    if (kind == "stat") stat(words);
    if (kind == "class") size_class(words);
    if (kind == "module") module(words);
    if (kind == "label") label(words);
    if (kind == "site") site(words);
    if (kind == "live") live(words);
    if (words.more()) throw BadLine();
    return true;
  }

  RawProfile profile;

 private:
  // The kinds of lines in their order; those up to kOnce are there once each.
  static constexpr std::string_view kOrder[] = {"pid",  "program", "version", "began", "written", "rate", "page",
                                                "stat", "class",   "module",  "label", "site",    "live", "end"};
  static constexpr size_t kOnce = 6;

  void in_order(std::string_view kind) {
    const size_t place = std::find(std::begin(kOrder), std::end(kOrder), kind) - std::begin(kOrder);
    if (place == std::size(kOrder)) throw BadLine();
    const bool once = place <= kOnce;
    // What is there once comes right after the one before it.
    if (once ? place != next_ : (place < next_ || next_ <= kOnce)) throw BadLine();
    next_ = once ? place + 1 : place;
  }

  void stat(Words& words) {
    const std::string name(words.next());
    profile.stats[name] = words.number();
  }

  void size_class(Words& words) {
    SizeClass one{};
    one.size = words.number();
    one.slabs = words.number();
    one.bytes = words.number();
    one.made = words.number();
    one.used = words.number();
    profile.classes.push_back(one);
  }

  void module(Words& words) {
    const auto number = words.number();
    Module one{};
    one.start = words.number(16);
    one.end = words.number(16);
    one.offset = words.number(16);
    const std::string_view id = words.next();
    if (id != "-") one.build_id = id;
    one.path = unescaped(words.rest());
    if (number == 0 || one.start >= one.end || !modules_.emplace(number, profile.modules.size()).second)
      throw BadLine();
    profile.modules.push_back(std::move(one));
  }

  void label(Words& words) {
    const auto set = words.number();
    std::string key = unescaped(words.next());
    labels_[set].emplace_back(std::move(key), words.more() ? unescaped(words.next()) : "");
  }

  void site(Words& words) {
    const auto number = words.number();
    RawSite one{};
    if (const auto set = words.number(); set != 0) {
      const auto found = labels_.find(set);
      if (found == labels_.end()) throw BadLine();
      one.labels = found->second;
    }
    one.samples = words.number();
    one.objects = words.number<double>();
    one.bytes = words.number<double>();
    one.freed = words.number<double>();
    for (double& lifetime : one.lifetimes) lifetime = words.number<double>();
    while (words.more()) one.frames.push_back(frame(words.next()));
    if (!sites_.emplace(number, profile.sites.size()).second) throw BadLine();
    profile.sites.push_back(std::move(one));
  }

  Frame frame(std::string_view word) const {
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos) throw BadLine();
    const auto number = Words::parse(word.substr(0, colon));
    const auto address = Words::parse(word.substr(colon + 1), 16);
    if (number == 0) return {kNoModule, address};
    const auto found = modules_.find(number);
    if (found == modules_.end()) throw BadLine();
    return {found->second, address};
  }

  void live(Words& words) {
    LiveBlock one{};
    const auto site = sites_.find(words.number());
    if (site == sites_.end()) throw BadLine();
    one.site = site->second;
    one.address = words.number(16);
    one.asked = words.number();
    one.size = words.number();
    one.weight = words.number<double>();
    one.age_ms = words.number();
    one.thread = words.number();
    one.resident = words.number();
    std::string_view shares = words.next();
    while (shares != "-") {
      const size_t comma = shares.find(',');
      const auto blocks = Words::parse(shares.substr(0, comma));
      if (blocks == 0) throw BadLine();
      one.shares.push_back(blocks);
      if (comma == std::string_view::npos) break;
      shares.remove_prefix(comma + 1);
    }
    profile.live.push_back(std::move(one));
  }

  size_t next_ = 0;  // the place in kOrder that may come
  std::unordered_map<uint64_t, size_t> modules_, sites_;
  std::unordered_map<uint64_t, Labels> labels_;
};

constexpr std::string_view kMagic = "annex-profile ";

// Takes the line off the text's front. None where it has no end.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

uint64_t RawProfile::stat(const std::string& name) const {
  const auto found = stats.find(name);
  return found == stats.end() ? 0 : found->second;
}

RawProfile parse_raw(std::string_view text, const std::string& name) {
  if (text.empty()) {
    throw Failure(kFailed, name + ": is empty: the process ended before it wrote its profile; profile again");
  }
  if (!text.starts_with(kMagic)) {
    throw Failure(kFailed, name + ": is no raw heap profile; give a .raw file that annex profile wrote");
  }
  const Failure truncated(kFailed, name +
                                       ": ends in the middle: the process was killed, or the disk full, as it was "
                                       "written; profile again");
  const auto first = take_line(text);
  if (!first) throw truncated;
  if (const auto format = first->substr(kMagic.size()); format != "1") {
    throw Failure(kFailed, fmt::format("{}: is of format {}, and this annex knows format 1; use the one that wrote it",
                                       name, format));
  }
  Reader reader;
  int number = 1;
  try {
    for (bool more = true; more;) {
      const auto line = take_line(text);
      if (!line) throw truncated;
      ++number;
      more = reader.line(*line);
    }
  } catch (const BadLine&) {
    throw Failure(kFailed, fmt::format("{}: line {} is not what a raw profile has there; was it edited, or written by "
                                       "another version? Profile again",
                                       name, number));
  }
  if (!text.empty()) throw Failure(kFailed, name + ": goes on after its end; was it edited? Profile again");
  return std::move(reader.profile);
}

RawProfile read_raw(const std::string& path) { return parse_raw(read_file(path), path); }

}  // namespace annex::inspect
