// The tables: call sites by a value, who keeps the pages, size classes.
const rowsAtFirst = 30;
let rowsShown = rowsAtFirst;

const table = (heads, rows) =>
  make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
const head = (text, properties = {}) => make("th", { scope: "col", ...properties }, text);
const cell = (...children) => make("td", {}, ...children);
const empty = (text) => make("p", { class: "empty" }, text);

const ofLibrary = /^(std::|__gnu_cxx::|operator new|boost::container::|core::|alloc::)/;
const ofStart = /^(_start|__libc_start_\w+|start_thread|clone|clone3|__clone3)$/;

// The innermost functions but for the standard library's and what calls main; the whole stack when it is opened.
function where(site) {
  const frames = site.frames.map((index) => data.frames[index]).reverse();
  const ours = frames.filter((frame) => !ofLibrary.test(frame.short) && !ofStart.test(frame.short));
  const shown = (ours.length > 0 ? ours : frames).slice(0, 4);
  const file = shown[0].file ? ` ${shown[0].file.split("/").pop()}:${shown[0].line}` : "";
  const callers = shown.slice(1).map((frame) => ` ← ${frame.short}`).join("");
  const stack = frames.map((frame) =>
    make("li", {}, `${frame.name} `, make("span", {}, frame.file ? `${frame.file}:${frame.line}` : "module" in frame ? data.modules[frame.module].name : "")));
  const tags = site.labels.map(([key, value]) => make("span", { class: "tag" }, `${key}=${value}`));
  return make("td", { class: "where" },
    make("details", {}, make("summary", {}, ...tags, shown[0].short, make("small", {}, `${file}${callers}`)), make("ol", {}, ...stack)));
}

function lifetimes(site) {
  const names = ["1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1000 s"];
  const most = Math.max(...site.lifetimes);
  if (!(most > 0)) return "";
  const told = site.lifetimes.map((count, i) => `${i < 7 ? `below ${names[i]}` : "more"}: ${countText(count)}`).join(", ");
  return make("svg:svg", { class: "lifetimes", width: 56, height: 16, role: "img", "aria-label": told },
    make("svg:title", {}, told),
    ...site.lifetimes.map((count, i) => {
      const height = count > 0 ? Math.max(1, (15 * count) / most) : 0;
      return make("svg:rect", { x: i * 7, y: 16 - height, width: 6, height });
    }));
}

function drawSites() {
  const sites = data.sites
    .filter((site) => site.values[state.value] > 0 && (state.search === "" || site.frames.some((frame) => matching[frame])))
    .sort((a, b) => b.values[state.value] - a.values[state.value]);
  const heads = data.values.map((value, i) =>
    make("th", { scope: "col", "aria-sort": i === state.value ? "descending" : null },
      make("button", { type: "button", onclick: () => choose(i) }, value.title)));
  const all = data.values[state.value].sum;
  const rows = sites.slice(0, rowsShown).map((site) =>
    make("tr", {}, cell(percentText(partOf(site.values[state.value], all))),
      ...site.values.map((number, i) => cell(valueText(i, number))), cell(lifetimes(site)), where(site)));
  const place = byId("sites");
  if (rows.length === 0) return place.replaceChildren(empty("None."));
  place.replaceChildren(table([head("of all"), ...heads, head("lifetimes"), head("call site", { class: "where" })], rows));
  if (sites.length > rowsShown) {
    place.append(make("p", {}, make("button", { type: "button", onclick: () => { rowsShown *= 4; drawSites(); } },
      `${countText(sites.length - rowsShown)} more`)));
  }
}

function drawPins() {
  const sites = data.sites.filter((site) => site.values[4] > 0).sort((a, b) => b.values[4] - a.values[4]).slice(0, rowsAtFirst);
  if (sites.length === 0) return byId("pins").append(empty("No sampled block keeps a page."));
  const rows = sites.map((site) =>
    make("tr", {}, cell(bytesText(site.values[4])), cell(percentText(partOf(site.values[4], data.values[4].sum))),
      cell(bytesText(site.freed_without)), cell(bytesText(site.values[0])), where(site)));
  byId("pins").append(table([head("keeps"), head("of all"), head("goes back without it"), head("live bytes"),
    head("call site", { class: "where" })], rows));
}

function meter(part) {
  return make("span", { class: "meter" }, make("i", { style: `width: ${(100 * part).toFixed(1)}%` }));
}

function drawClasses() {
  if (data.classes.length === 0) return byId("classes").append(empty("None in use."));
  const rows = data.classes.map((one) =>
    make("tr", {}, cell(countText(one.size)), cell(countText(one.slabs)), cell(bytesText(one.bytes)), cell(countText(one.made)),
      cell(countText(one.used)), cell(bytesText(one.asked)), cell(bytesText(one.rounding)),
      cell(meter(one.fragmentation), percentText(one.fragmentation))));
  byId("classes").append(table(["block, bytes", "slabs", "slab bytes", "blocks made", "in use", "asked for", "rounding", "fragmentation"]
    .map((text) => head(text)), rows));
}

function drawProblems() {
  byId("problems-section").hidden = data.problems.length === 0;
  byId("problems").append(...data.problems.map((text) => make("li", {}, text)));
}
