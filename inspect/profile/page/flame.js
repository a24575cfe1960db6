// The flame graph, with the outermost function on top: a tree of the call stacks, as wide as the value.
const rowHeight = 20;
const colourCount = 7;  // f7 is for what has no file, and for the files beyond

// Files by how much they have of all frames get the colours; the program itself is the first.
const colours = (() => {
  const counts = data.modules.map(() => 0);
  for (const site of data.sites) for (const frame of site.frames) counts[data.frames[frame].module] += site.values[2];
  const order = [...counts.keys()].filter((i) => counts[i] > 0 && i > 0).sort((a, b) => counts[b] - counts[a]);
  const numbers = new Map([[0, 0]]);
  for (const module of order) {
    const same = [...numbers].find(([other]) => data.modules[other].path === data.modules[module].path);
    const next = new Set(numbers.values()).size;
    numbers.set(module, same ? same[1] : Math.min(next, colourCount));
  }
  return numbers;
})();
const colourOf = (frame) => `f${colours.get(frame.module) ?? colourCount}`;

// By the function's name, so that neighbours differ a little.
function opacityOf(name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) % 997;
  return (0.72 + (0.28 * hash) / 997).toFixed(2);
}

// Frames of one function are one node, whichever their lines.
function makeTree(value) {
  const root = { frame: null, parent: null, sum: 0, self: 0, matches: false, children: new Map() };
  for (const site of data.sites) {
    const number = site.values[value];
    if (!(number > 0)) continue;
    let node = root;
    root.sum += number;
    for (const index of site.frames) {
      const frame = data.frames[index];
      const key = `${frame.name}\n${frame.module}`;
      if (!node.children.has(key)) {
        node.children.set(key, { frame, parent: node, sum: 0, self: 0, matches: false, children: new Map() });
      }
      node = node.children.get(key);
      node.sum += number;
      node.matches ||= matching[index];
    }
    node.self += number;
  }
  return root;
}

let tree = null;

// The node at the same place of a tree that was made anew.
function findAgain(node) {
  if (node === null || node.parent === null) return tree;
  const parent = findAgain(node.parent);
  return parent?.children.get(`${node.frame.name}\n${node.frame.module}`);
}

const isOuter = (node, zoomed) => {
  for (let one = zoomed.parent; one; one = one.parent) if (one === node) return true;
  return false;
};

function drawNode(svg, node, x, y, width, zoomed) {
  const name = node.frame ? node.frame.short : `all ${data.values[state.value].title}`;
  const shown = width > 30 ? name.slice(0, Math.floor((width - 8) / 7.3)) : "";
  const dimmed = state.search !== "" && !node.matches;
  const group = make("svg:g", { class: `${isOuter(node, zoomed) ? "outer" : ""}${dimmed ? " other" : ""}` },
    make("svg:rect", { x, y, width, height: rowHeight, rx: 2, class: node.frame ? colourOf(node.frame) : "f7",
                       "fill-opacity": dimmed ? null : opacityOf(name) }));
  if (shown.length > 1) {
    const cut = shown.length < name.length ? `${shown.slice(0, -1)}…` : shown;
    group.append(make("svg:text", { x: x + 4, y: y + 14 }, cut));
  }
  group.node = node;
  svg.append(group);
}

function drawFlame() {
  tree = makeTree(state.value);
  const zoomed = findAgain(state.zoom) ?? tree;
  const place = byId("flame");
  const width = Math.max(place.clientWidth, 200);
  if (tree.sum === 0) {
    place.replaceChildren(make("p", { class: "empty" }, `No sample has any ${data.values[state.value].title}.`));
    return;
  }
  const outer = [];
  for (let node = zoomed.parent; node; node = node.parent) outer.unshift(node);
  const svg = make("svg:svg", { role: "img", "aria-label": "Flame graph" });
  outer.forEach((node, depth) => drawNode(svg, node, 0, depth * rowHeight, width, zoomed));
  let deepest = outer.length;
  const rows = [[zoomed, 0, outer.length]];
  while (rows.length > 0) {
    const [node, x, depth] = rows.pop();
    const wide = (node.sum / zoomed.sum) * width;
    if (wide < 0.6) continue;
    deepest = Math.max(deepest, depth);
    drawNode(svg, node, x, depth * rowHeight, wide, zoomed);
    let left = x;
    for (const child of [...node.children.values()].sort((a, b) => b.sum - a.sum)) {
      rows.push([child, left, depth + 1]);
      left += (child.sum / zoomed.sum) * width;
    }
  }
  svg.setAttribute("height", (deepest + 1) * rowHeight);
  place.replaceChildren(svg);
  byId("reset").disabled = zoomed === tree;
}

function zoom(node) {
  state.zoom = node && node.parent ? node : null;
  hideTip();
  drawFlame();
}

function hideTip() {
  byId("tip").hidden = true;
}

function showTip(node, event) {
  const tip = byId("tip");
  const { frame } = node;
  const lines = [make("b", {}, frame ? frame.name : `all ${data.values[state.value].title}`)];
  if (frame?.file) lines.push(make("span", {}, `${frame.file}:${frame.line}`));
  if (frame && "module" in frame) lines.push(make("span", {}, data.modules[frame.module].path));
  lines.push(make("em", {}, `${valueText(state.value, node.sum)}, ${percentText(partOf(node.sum, tree.sum))} of all` +
    (node.self > 0 && node.children.size > 0 ? `; ${valueText(state.value, node.self)} by itself` : "")));
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
}

function listenToFlame() {
  const nodeAt = (event) => event.target.closest("g")?.node;
  const place = byId("flame");
  place.addEventListener("click", (event) => nodeAt(event) && zoom(nodeAt(event)));
  place.addEventListener("mousemove", (event) => (nodeAt(event) ? showTip(nodeAt(event), event) : hideTip()));
  place.addEventListener("mouseleave", hideTip);
  addEventListener("resize", drawFlame);
  addEventListener("scroll", hideTip, { capture: true });
}

function drawLegend() {
  const shown = new Map();
  for (const [module, number] of colours) shown.set(number, number === colourCount ? "other files" : data.modules[module]?.name);
  byId("modules").replaceChildren(...[...shown].filter(([, name]) => name).map(([number, name]) =>
    make("li", {}, make("i", { class: `f${number}` }), name)));
}
