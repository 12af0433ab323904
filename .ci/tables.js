// On a phone, a table that is too wide becomes one card a row: every cell after the title of its column.
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (wrap.scrollWidth <= wrap.clientWidth + 1) continue;
    const titles = [...wrap.querySelectorAll("thead th")].map((each) => each.textContent);
    for (const row of wrap.querySelectorAll("tbody tr")) [...row.cells].forEach((cell, i) => { cell.dataset.title = titles[i] ?? ""; });
    wrap.classList.add("stacked");
  }
});
