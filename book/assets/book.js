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
