// The face of CoalescingExplorer.

var SECTOR = 32, LINE = 128;

function coalescingView(setting) {
  var item = setting.item, elements = laneElements(setting);
  function touched(granule) {
    return distinctCount(elements.map(function (e) { return Math.floor(e * item / granule); }));
  }
  var sectors = touched(SECTOR), lines = touched(LINE), useful = distinctCount(elements) * item;
  var moved = sectors * SECTOR, least = Math.ceil(useful / SECTOR), share = percent(useful / moved);
  var element = elements[setting.lane], start = element * item;
  return {
    elements: elements,
    numbers: [
      ["sectors", String(sectors), "of 32 bytes; " + least + " would do"],
      ["lines", String(lines), "of 128 bytes"],
      ["bytes moved", String(moved), useful + " of them wanted, " + 32 * item + " asked for"],
      ["efficiency", share, "wanted over moved bytes"]
    ],
    words: "One request of a warp: 32 lanes, elements of " + counted(item, "byte") +
      ". It moves " + counted(sectors, "sector") + " of " + counted(lines, "line") +
      "; efficiency " + share + ". Lane " + setting.lane + " wants element " + element +
      ": bytes " + start + " to " + (start + item - 1) + ", sector " +
      Math.floor(start / SECTOR) + ", line " + Math.floor(start / LINE) + "."
  };
}

// Rows are lines of 128 bytes: all from the first to the last if they are few, else those touched.
function linesShown(touched) {
  var first = touched[0], last = touched[touched.length - 1], rows = [];
  if (last - first >= 12) { return touched; }
  for (var line = first; line <= Math.max(last, first + 3); line += 1) { rows.push(line); }
  return rows;
}

function coalescingPicture(setting, view, width) {
  var item = setting.item, mine = view.elements[setting.lane], per = LINE / item;
  var wanted = {}, sectors = {}, touched = [];
  view.elements.forEach(function (e, lane) {
    var line = Math.floor(e / per);
    (wanted[e] = wanted[e] || []).push(lane);
    sectors[Math.floor(e * item / SECTOR)] = true;
    if (touched.indexOf(line) < 0) { touched.push(line); }
  });
  touched.sort(function (a, b) { return a - b; });
  var lanes = laneBoxes(width, 16, setting.lane, function (lane) {
    return lane in setting.moved ? "B0" : "F0";
  });
  var parts = [textOf(1, 11, "lanes of the warp", "muted")].concat(lanes.parts);
  var y = lanes.bottom + 20, left = 62, gap = 6, before = null;
  var sector = (width - left - 3 * gap - 3) / 4, cell = sector * item / SECTOR;
  parts.push(textOf(1, y - 6, "byte", "muted"),
    textOf(left, y - 6, "sectors; tinted: moved; full: wanted", "muted"));
  linesShown(touched).forEach(function (line) {
    if (before !== null && line !== before + 1) {
      parts.push(textOf(left, y + 8, "⋯", "muted"));
      y += 14;
    }
    before = line;
    parts.push(textOf(left - 8, y + 15, line * LINE, "text", "end"));
    for (var e = line * per; e < (line + 1) * per; e += 1) {
      var s = Math.floor(e * item / SECTOR), x = left + s % 4 * (sector + gap) +
        (e * item % SECTOR) / SECTOR * sector;
      var look = wanted[e] ? "F0" : sectors[s] ? "F3" : "idle";
      parts.push(boxOf(x, y, cell - (cell > 3 ? 1 : 0.3), 20, look,
        'data-pick="element:' + e + '"'));
      if (wanted[e] && cell >= 18) {
        parts.push('<g pointer-events="none">' + textOf(x + (cell - 1) / 2, y + 14,
          wanted[e].length > 1 ? "×" + wanted[e].length : wanted[e][0], "F0t dl-small",
          "middle") + "</g>");
      }
      if (e === mine) { parts.push(boxOf(x, y, Math.max(cell - 1, 2), 20, "chosen")); }
    }
    y += 25;
  });
  return svgOf(width, y + 2, view.words, parts);
}

function mountCoalescingExplorer(root, data) {
  mountPanel(root, data.setting, {
    view: coalescingView,
    picture: coalescingPicture,
    key: function (setting, key) { return laneKey(setting, key, LINE / setting.item); },
    pick: function (setting, what, number) {
      if (what === "lane") { setting.lane = number; } else { moveLane(setting, number); }
    },
    changed: function (setting) { setting.moved = {}; }
  });
}
