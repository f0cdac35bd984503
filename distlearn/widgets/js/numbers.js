// How numbers are written: the twin of distlearn/plots/numbers.py, to the letter.

function powerOfTen(e) { return parseFloat("1e" + e); }

function exponent(x) {
  var e = 0;
  while (x >= powerOfTen(e + 1)) { e += 1; }
  while (x < powerOfTen(e)) { e -= 1; }
  return e;
}

function fixed(x, decimals) {
  var scale = powerOfTen(decimals);
  var k = Math.floor(x * scale + 0.5 + 1e-7);
  var whole = Math.floor(k / scale);
  var part = k - whole * scale;
  if (part === 0) { return String(whole); }
  return (whole + "." + String(part).padStart(decimals, "0")).replace(/0+$/, "");
}

function number(x, digits) {
  digits = digits || 4;
  if (x < 0) { return "-" + number(-x, digits); }
  if (x === 0) { return "0"; }
  var e = exponent(x);
  if (e < -4 || e >= 9) { return fixed(x / powerOfTen(e), digits - 1) + "e" + e; }
  return fixed(x, Math.max(0, digits - 1 - e));
}

function percent(x) { return fixed(100 * x, 1) + " %"; }

// A number as Python's repr writes a float, for error texts that quote one.
function pythonFloat(x) {
  if (Number.isInteger(x) && Math.abs(x) < 1e16) { return x + ".0"; }
  if (x !== 0 && Math.abs(x) < 1e-4) {
    var parts = x.toExponential().split("e-");
    return parts[0] + "e-" + parts[1].padStart(2, "0");
  }
  return String(x);
}

function ticks(span, most) {
  var wanted = span / most;
  var base = powerOfTen(exponent(wanted));
  var step = [1, 2, 5, 10].map(function (factor) { return factor * base; })
    .find(function (size) { return size >= wanted; });
  var times = [];
  for (var k = 0; k <= Math.floor(span / step + 1e-7); k += 1) { times.push(k * step); }
  return times;
}

function escapeText(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
