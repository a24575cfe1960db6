// A click on a column's heading (or Enter on it) sorts each section of the table by it; another turns the order round;
// a third brings back the order that the page came with. What has no number stays at the end.
for (const table of document.querySelectorAll("table.heat")) {
  const heads = [...table.tHead.rows[0].cells];
  const original = new Map([...table.tBodies].map((body) => [body, [...body.rows]]));
  const key = (row, column) => {
    const cell = row.cells[column];
    if (column === 0) return cell.textContent.trim();
    return cell.dataset.v === undefined ? Infinity : Number(cell.dataset.v);
  };
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  const sort = (column) => {
    const next = { none: "ascending", ascending: "descending", descending: "none" }[heads[column].ariaSort];
    for (const head of heads) head.ariaSort = "none";
    heads[column].ariaSort = next;
    for (const [body, rows] of original) {
      const first = rows.filter((row) => row.cells.length === 1);
      const rest = rows.filter((row) => row.cells.length > 1);
      if (next !== "none") {
        const way = next === "ascending" ? 1 : -1;
        rest.sort((a, b) => {
          const [x, y] = [key(a, column), key(b, column)];
          if (x === Infinity || y === Infinity) return x === y ? 0 : x === Infinity ? 1 : -1;
          return way * compare(x, y);
        });
      }
      body.append(...first, ...rest);
    }
  };
  heads.forEach((head, column) => {
    head.ariaSort = "none";
    head.tabIndex = 0;
    head.title = "sort by this column";
    head.addEventListener("click", () => sort(column));
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sort(column);
    });
  });
}
