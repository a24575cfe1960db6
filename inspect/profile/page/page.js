// The page: its numbers, what is chosen, and who draws what. Data: docs/profiling-formats.md.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// An element, or one of SVG where the name says so.
function make(name, properties = {}, ...children) {
  const [tag, svg] = name.split(":").reverse();
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1023.95 && unit + 1 < units.length; ++unit) bytes /= 1024;
  return `${bytes.toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`;
}
const countText = (count) => Math.round(count).toLocaleString("en-US");
const percentText = (part) => `${(100 * part).toFixed(1)} %`;
const partOf = (some, all) => (all > 0 ? some / all : 0);
const valueText = (value, number) => (data.values[value].unit === "bytes" ? bytesText(number) : countText(number));

const durationText = (ms) => (ms < 120e3 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60e3).toFixed(1)} min`);

const state = { value: @FIRST@, search: "", zoom: null };

function frameMatches(frame) {
  const module = "module" in frame ? data.modules[frame.module].name : "";
  return `${frame.name}\n${frame.file ?? ""}\n${module}`.toLowerCase().includes(state.search);
}
// For each frame, whether it is searched for.
let matching = [];

function drawHead() {
  byId("program").textContent = `Heap profile of ${data.program}`;
  const samples = data.sites.reduce((sum, site) => sum + site.samples, 0);
  const when = new Date(data.began_ms).toISOString().replace("T", " ").slice(0, 19);
  byId("facts").textContent =
    `process ${data.pid} · Annex ${data.version} · ${when} UTC, ${durationText(data.written_ms - data.began_ms)}` +
    ` · ${countText(samples)} samples, one each ${bytesText(data.rate)}`;
  const sums = data.values.map((value) => value.sum);
  const tiles = [
    [bytesText(sums[0]), "live bytes"],
    [countText(sums[1]), "live blocks"],
    [bytesText(sums[2]), "allocated in all"],
    [bytesText(data.heap.resident), "heap, resident"],
    [percentText(data.heap.fragmentation), "fragmentation"],
    [bytesText(data.stats.peak_resident ?? 0), "process, at most"],
  ];
  byId("tiles").append(...tiles.map(([text, title]) => make("div", { class: "tile" }, make("b", {}, text), make("span", {}, title))));
}

function drawMemory() {
  const heap = data.heap;
  const parts = [
    ["asked for by live blocks", heap.live],
    ["rounding up to block sizes", heap.rounding],
    ["free blocks in slabs", heap.free_in_slabs],
    ["free, not yet given back", heap.dirty],
    ["metadata", heap.metadata],
  ];
  const all = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
  const bar = make("div", { class: "stack", role: "img", "aria-label": "Parts of the heap" });
  const legend = make("ul", { class: "legend" });
  parts.forEach(([title, bytes], i) => {
    if (bytes > 0) bar.append(make("i", { class: `p${i}`, style: `flex: ${bytes} 0 0`, title: `${title}: ${bytesText(bytes)}` }));
    legend.append(make("li", {}, make("i", { class: `p${i}` }), `${title} `, make("b", {}, bytesText(bytes)), ` ${percentText(partOf(bytes, all))}`));
  });
  byId("memory").append(bar, legend);
}

function drawValues() {
  byId("values").replaceChildren(
    ...data.values.map((value, i) =>
      make("button", { type: "button", "data-value": value.name, "aria-pressed": String(i === state.value), onclick: () => choose(i) }, value.title)));
}

function choose(value) {
  state.value = value;
  state.zoom = null;
  draw();
}

function search(text) {
  state.search = text.trim().toLowerCase();
  matching = data.frames.map((frame) => state.search !== "" && frameMatches(frame));
  draw();
}

function drawMatched() {
  let text = "";
  if (state.search !== "") {
    const found = data.sites.filter((site) => site.frames.some((frame) => matching[frame]));
    const sum = found.reduce((all, site) => all + site.values[state.value], 0);
    const { title, sum: all } = data.values[state.value];
    text = `“${state.search}” is in ${countText(found.length)} of ${countText(data.sites.length)} call sites: ` +
      `${valueText(state.value, sum)} of ${title}, ${percentText(partOf(sum, all))}`;
  }
  byId("matched").textContent = text;
}

function draw() {
  drawValues();
  drawMatched();
  drawFlame();
  drawSites();
}

function onKey(event) {
  if (event.key === "/" && event.target.tagName !== "INPUT") {
    event.preventDefault();
    byId("search").focus();
  } else if (event.key === "Escape") {
    if (state.zoom) return zoom(null);
    byId("search").value = "";
    byId("search").blur();
    search("");
  }
}
