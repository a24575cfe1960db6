// The page: one HTML file that needs nothing else. Its parts are in page/.
#include "profile/page.h"

#include <fmt/format.h>

#include "profile/formats.h"

namespace annex::inspect {
namespace {

struct Filling {
  std::string_view name, text;
};

// The form with a text in the place of each name, in the order in which they are in it.
std::string filled(std::string_view form, std::initializer_list<Filling> fillings) {
  std::string page;
  for (const auto& [name, text] : fillings) {
    const size_t place = form.find(name);
    page.append(form.substr(0, place)).append(text);
    form.remove_prefix(place + name.size());
  }
  return page.append(form);
}

// In a script element "</script" and "<!--" would mean something.
std::string safe_in_script(const std::string& json) {
  std::string safe;
  for (const char letter : json) {
    if (letter == '<') {
      safe += "\\u003c";
    } else {
      safe += letter;
    }
  }
  return safe;
}

std::string safe_in_html(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '&')
      safe += "&amp;";
    else if (letter == '<')
      safe += "&lt;";
    else
      safe += letter;
  }
  return safe;
}

}  // namespace

std::string page(const Profile& profile, Value first) {
  const std::string script = filled(kPageScript, {{"@FIRST@", fmt::format("{}", static_cast<size_t>(first))}});
  const std::string title = safe_in_html(fmt::format("Heap profile of {}[{}]", profile.program, profile.raw.pid));
  const std::string data = safe_in_script(document(profile));
  return filled(kPageHtml, {{"@TITLE@", title}, {"@STYLE@", kPageStyle}, {"@DATA@", data}, {"@SCRIPT@", script}});
}

}  // namespace annex::inspect
