// Machines as files: see machine_file.h.
#include "machine/machine_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace annex::sim {

namespace {

// A group's names go through this to wherever their values are.
class Reader {
 public:
  Reader(const toml::table* table, std::string where, std::vector<std::string>& problems)
      : table_(table), where_(std::move(where)), problems_(problems) {}
  ~Reader() {
    if (table_ == nullptr) return;
    unknown(*table_, "");
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  template <class Number>
  void operator()(const std::string& name, Number& value, double least, double most, std::string_view unit,
                  std::string_view, std::string_view) {
    const auto node = find(name);
    if (!node) return;
    const auto number = node.template value<double>();
    if (!number || node.is_boolean() || (!std::is_floating_point_v<Number> && !node.is_integer())) {
      return say(name, fmt::format("must be {} in {}", std::is_floating_point_v<Number> ? "a number" : "a whole number",
                                   unit));
    }
    if (*number < least || *number > most) {
      return say(name, fmt::format("{} is outside {} to {} {}", *number, least, most, unit));
    }
    value = static_cast<Number>(*number);
  }
  void operator()(const std::string& name, std::string& value, Choices choices, std::string_view, std::string_view) {
    const auto node = find(name);
    if (!node) return;
    const auto text = node.template value<std::string>();
    if (!text || std::find(choices.begin(), choices.end(), *text) == choices.end()) {
      return say(name, fmt::format("must be one of: {}", fmt::join(choices, ", ")));
    }
    value = *text;
  }
  // Besides the names that are asked for: tables, which others read.
  void allow(const std::string& name) { known_.insert(name); }

 private:
  toml::node_view<const toml::node> find(const std::string& name) {
    known_.insert(name);
    if (table_ == nullptr) return {};
    return table_->at_path(name);
  }
  void say(const std::string& name, const std::string& what) {
    problems_.push_back(fmt::format("{}{}: {}", where_, name, what));
  }
  void unknown(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name = fmt::format("{}{}", prefix, key.str());
      if (known_.contains(name)) continue;
      const bool group = std::any_of(known_.begin(), known_.end(),
                                     [&](const std::string& known) { return known.starts_with(name + "."); });
      if (group && node.is_table()) {
        unknown(*node.as_table(), name + ".");
      } else {
        say(name, fmt::format("no such parameter (line {})", key.source().begin.line));
      }
    }
  }

  const toml::table* table_;
  std::string where_;
  std::vector<std::string>& problems_;
  std::set<std::string> known_;
};

// Cores of other kinds: what a table doesn't say is the main cores', so far as the file has been read.
void read_kinds(const toml::array* kinds, const std::string& where, Machine& machine,
                std::vector<std::string>& problems) {
  std::erase_if(machine.others, [](const OtherCores& kind) { return kind.name != kSupportCore; });
  if (kinds == nullptr || !kinds->is_homogeneous(toml::node_type::table)) {
    problems.push_back(fmt::format("{}kind: must be tables: [[kind]]", where));
    return;
  }
  for (const toml::node& node : *kinds) {
    const toml::table& table = *node.as_table();
    OtherCores kind;
    static_cast<CoreKind&>(kind) = machine;
    kind.name = table["name"].value_or(fmt::format("{}", machine.others.size() + 1));
    const std::string here = fmt::format("{}kind {}: ", where, kind.name);
    Reader own(&table, here, problems);
    own.allow("name");
    OtherCores::each(kind, own);
    CoreKind::each_group(kind, [&](const std::string& name, auto& group, std::string_view) {
      own.allow(name);
      const toml::node_view found = table[name];
      if (found && !found.is_table()) problems.push_back(fmt::format("{}{}: must be a table", here, name));
      Reader reader(found.as_table(), fmt::format("{}{}.", here, name), problems);
      std::remove_reference_t<decltype(group)>::each(group, reader);
    });
    machine.others.push_back(std::move(kind));
  }
  std::stable_partition(machine.others.begin(), machine.others.end(),
                        [](const OtherCores& kind) { return kind.run_threads(); });
}

// The files that it is based on: one, or several, of which later ones add to what earlier ones say.
std::vector<std::string> bases_of(const toml::table& table, const std::string& path,
                                  std::vector<std::string>& problems) {
  std::vector<std::string> bases;
  const auto add = [&](const toml::node& node) {
    if (const auto name = node.value<std::string>()) {
      bases.push_back(*name);
    } else {
      problems.push_back(fmt::format("{}: base: must be a name, or names in brackets", path));
    }
  };
  const toml::node* base = table.get("base");
  if (base == nullptr) return bases;
  if (const toml::array* several = base->as_array()) {
    for (const toml::node& one : *several) add(one);
  } else {
    add(*base);
  }
  return bases;
}

// The kind of the support core, in the table of its other parameters: what that doesn't say is as it was, or the main
// cores'.
void read_support_core(const toml::table* table, const std::string& where, Machine& machine,
                       std::vector<std::string>& problems) {
  auto kind = std::find_if(machine.others.begin(), machine.others.end(),
                           [](const OtherCores& other) { return other.name == kSupportCore; });
  if (machine.support_core.cores == 0) {
    if (kind != machine.others.end()) machine.others.erase(kind);
    return;
  }
  if (kind == machine.others.end()) {
    kind = machine.others.insert(kind, OtherCores{});
    static_cast<CoreKind&>(*kind) = machine;
    kind->name = kSupportCore;
    kind->threads = "no";
  }
  kind->cores = machine.support_core.cores;
  CoreKind::each_group(*kind, [&](const std::string& name, auto& group, std::string_view) {
    const toml::table* own = table == nullptr ? nullptr : (*table)[name].as_table();
    Reader reader(own, fmt::format("{}{}.{}.", where, kSupportCore, name), problems);
    std::remove_reference_t<decltype(group)>::each(group, reader);
  });
}

void read(const std::string& path, const std::string& presets, Machine& machine, std::vector<std::string>& problems,
          int depth) {
  if (!std::filesystem::is_regular_file(path)) {
    problems.push_back(fmt::format("{}: no such file", path));
    return;
  }
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    const auto& error = parsed.error();
    problems.push_back(fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
    return;
  }
  const toml::table& table = parsed.table();
  for (const std::string& base : bases_of(table, path, problems)) {
    const auto beside = std::filesystem::path(path).parent_path() / (base + ".toml");
    const auto preset = std::filesystem::path(presets) / (base + ".toml");
    if (depth > 8) {
      problems.push_back(fmt::format("{}: base: more than 8 files deep", path));
      return;
    }
    read(std::filesystem::is_regular_file(beside) ? beside.string() : preset.string(), presets, machine, problems,
         depth + 1);
  }
  machine.name = table["name"].value_or(std::filesystem::path(path).stem().string());
  machine.description = table["description"].value_or(machine.description);
  const std::string where = path + ": ";
  Reader own(&table, where, problems);
  for (const char* text : {"base", "name", "description"}) own.allow(text);
  Machine::each(machine, own);
  Machine::each_group(machine, [&](const std::string& name, auto& group, std::string_view) {
    own.allow(name);
    const toml::node_view node = table[name];
    if (node && !node.is_table()) problems.push_back(fmt::format("{}{}: must be a table", where, name));
    Reader reader(node.as_table(), fmt::format("{}{}.", where, name), problems);
    if (name == kSupportCore) {
      CoreKind::each_group(machine, [&](const std::string& part, auto&, std::string_view) { reader.allow(part); });
    }
    std::remove_reference_t<decltype(group)>::each(group, reader);
  });
  own.allow("kind");
  if (table.contains("kind")) read_kinds(table["kind"].as_array(), where, machine, problems);
  read_support_core(table[kSupportCore].as_table(), where, machine, problems);
}

}  // namespace

std::vector<std::string> read_machine(const std::string& path, const std::string& presets, Machine& machine) {
  std::vector<std::string> problems;
  read(path, presets, machine, problems, 0);
  if (!problems.empty()) return problems;
  for (const std::string& problem : problems_of(machine)) problems.push_back(fmt::format("{}: {}", path, problem));
  return problems;
}

nlohmann::json to_json(const Machine& machine) {
  nlohmann::json out = {{"name", machine.name}, {"description", machine.description}};
  const auto into = [](nlohmann::json& at) {
    return [&at](const std::string& name, const auto& value, auto&&...) {
      // latency.alu and the like: a table in the table.
      const size_t dot = name.find('.');
      if (dot == std::string::npos) {
        at[name] = value;
      } else {
        at[name.substr(0, dot)][name.substr(dot + 1)] = value;
      }
    };
  };
  const auto group_into = [&](nlohmann::json& to) {
    return [&](const std::string& name, const auto& group, std::string_view) {
      std::remove_cvref_t<decltype(group)>::each(group, into(to[name]));
    };
  };
  Machine::each(machine, into(out));
  Machine::each_group(machine, group_into(out));
  out["thread_cores"] = machine.thread_cores();
  for (const OtherCores& kind : machine.others) {
    nlohmann::json one = {{"name", kind.name}};
    OtherCores::each(kind, into(one));
    CoreKind::each_group(kind, group_into(one));
    out["kind"].push_back(std::move(one));
  }
  return out;
}

namespace {

struct Describer {
  std::string& out;
  const std::string group;

  void operator()(const std::string& name, const auto& value, double least, double most, std::string_view unit,
                  std::string_view meaning, std::string_view source) const {
    out += fmt::format("| `{}{}` | {} | {} | {:g} to {:g} | {} | {} |\n", group, name, value, unit, least, most,
                       meaning, source);
  }
  void operator()(const std::string& name, const std::string& value, Choices choices, std::string_view meaning,
                  std::string_view source) const {
    out += fmt::format("| `{}{}` | {} | | {} | {} | {} |\n", group, name, value, fmt::join(choices, ", "), meaning,
                       source);
  }
};

}  // namespace

std::string describe_parameters() {
  const Machine machine;
  std::string out =
      "| parameter | default | unit | values | what it is | source of the default |\n|---|---|---|---|---|---|\n";
  Machine::each(machine, Describer{out, ""});
  Machine::each_group(machine, [&](const std::string& name, const auto& group, std::string_view what) {
    out += fmt::format("| **{}** | | | | {} | |\n", name, what);
    std::remove_cvref_t<decltype(group)>::each(group, Describer{out, name + "."});
  });
  out += "| **[[kind]]** | | | | cores of another kind, with a name; beside these, any group of the main cores | |\n";
  const OtherCores other;
  OtherCores::each(other, Describer{out, "kind."});
  return out;
}

}  // namespace annex::sim
