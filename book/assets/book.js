// Two corrections for keyboard and screen-reader users that the theme and MathJax leave open.
document.addEventListener("DOMContentLoaded", () => {
  // Names that contradict the text on the control: let the text be the name.
  for (const control of document.querySelectorAll(
    "button.search-button-field[aria-label], summary[aria-label='Toggle hidden content']")) {
    control.removeAttribute("aria-label");
  }
  // Long formulas scroll sideways on narrow screens: let the keyboard reach them.
  window.MathJax?.startup?.promise?.then(() => {
    for (const formula of document.querySelectorAll("mjx-container[display='true']")) {
      if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
    }
  });
});

// Tables whose cell is tagged "sortable": a button in every heading sorts by its column.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".tag_sortable table")) sortable(table);
});

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const shown = (row, k) => row.cells[k].textContent.trim();
  heads.forEach((head, k) => {
    const numbers = [...body.rows].every((row) => !Number.isNaN(parseFloat(shown(row, k))));
    const compare = numbers
      ? (a, b) => parseFloat(shown(a, k)) - parseFloat(shown(b, k))
      : (a, b) => shown(a, k).localeCompare(shown(b, k), "en", { numeric: true });
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.scope = "col";
    button.addEventListener("click", () => {
      const down = head.ariaSort === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      rows.forEach((row, place) => {
        row.classList.toggle("row-even", place % 2 === 0);
        row.classList.toggle("row-odd", place % 2 === 1);
      });
      body.append(...rows);
    });
  });
}
