// Last, when all is there.
drawHead();
drawMemory();
drawPins();
drawClasses();
drawProblems();
drawLegend();
listenToFlame();
byId("search").addEventListener("input", (event) => search(event.target.value));
byId("reset").addEventListener("click", () => zoom(null));
addEventListener("keydown", onKey);
search("");
