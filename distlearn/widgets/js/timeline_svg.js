// A timeline as SVG: the twin of distlearn/plots/timeline_svg.py, which says what is drawn and why.
// look: {style, attributes, kinds} as Python made them from the palette.

var LEFT = 58, RIGHT = 68, CHAR = 0.6, LANE = 6, COMPUTED = ["F", "B", "I", "W", "R"];
var TRANSFER_NAMES = {
  E: "evict to partner", L: "load from partner", O: "offload to host", P: "prefetch from host"
};

function timelineSvg(timeline, look, options) {
  var memory = options.memory !== false, title = options.title, unit = options.unit || "";
  var frame = frameOf(timeline, look, memory, title, options.width);
  var size = 'width="' + frame.width + '" height="' + frame.height + '"';
  var parts = [
    '<svg xmlns="http://www.w3.org/2000/svg" class="dl-svg" role="img" ' + size +
    ' viewBox="0 0 ' + frame.width + " " + frame.height +
    '" font-family="system-ui, sans-serif" font-size="12">',
    "<title>" + escapeText(title || "Timeline of " + timeline.schedule.name) + "</title>",
    "<desc>" + escapeText(describe(timeline, unit)) + "</desc>",
    "<style>" + look.style + (kindsOf(timeline).indexOf("R") < 0 ? "" : look.recomputation) +
    "</style>",
    "<rect" + look.attributes.bg + " " + size + "/>"
  ];
  if (title) {
    parts.push("<text" + look.attributes.text + ' x="' + LEFT + '" y="20" font-size="14" ' +
      'font-weight="600">' + escapeText(title) + "</text>");
  }
  drawLegend(timeline, look, frame, parts);
  drawRows(timeline, look, frame, parts);
  drawBoxes(timeline, look, frame, unit, options.tooltips !== false, parts);
  drawTransfers(timeline, look, frame, unit, options.tooltips !== false, parts);
  if (memory) { drawMemory(timeline, look, frame, options.limit || 0, parts); }
  drawAxis(look, frame, unit, parts);
  parts.push("</svg>");
  return parts.join("\n");
}

function describe(timeline, unit) {
  var s = timeline.schedule, whole = piecesPerMicrobatch(timeline);
  var peaks = timeline.peakActivations.map(function (peak) { return number(peak / whole); });
  return "Schedule " + s.name + " with p=" + s.p + " ranks, m=" + s.m + " microbatches" +
    (s.slices > 1 ? " in " + s.slices + " slices each" : "") + ", v=" + s.v +
    (s.v === 1 ? " stage" : " stages") + " per rank" +
    (s.copies ? " in each of " + s.copies.length + " copies of the model" : "") + ". " +
    "Makespan " + number(timeline.makespan) + (unit ? " " + unit : "") + ". " +
    "Bubble: " + percent(timeline.bubbleFraction) + " of the makespan, " +
    percent(timeline.bubbleOverIdeal) + " of the ideal time. " + extras(timeline) +
    "Most activations kept, in whole microbatches, from rank 0 on: " + peaks.join(", ") + ".";
}

// A sentence for recomputations, pairs and transfers, each where they occur.
function extras(timeline) {
  var text = "", moved = [];
  kindsOf(timeline).forEach(function (kind) {
    var count = timeline.events.filter(function (e) { return e.kind === kind; }).length;
    if (kind.indexOf("&") > 0) {
      text += "Pairs of " + kind.replace("&", " and ") + " run overlapped: " + count + ". ";
    } else if (kind === "R") {
      text += "Recomputations: " + count + ". ";
    } else if (TRANSFERS.indexOf(kind) >= 0) {
      moved.push(kind + " " + TRANSFER_NAMES[kind] + ": " + count);
    }
  });
  return text + (moved.length ? "Transfers beside the work: " + moved.join(", ") + ". " : "");
}

// How many activations, as the simulation counts them, are a rank's whole microbatch.
function piecesPerMicrobatch(timeline) {
  return timeline.schedule.v * (timeline.schedule.slices || 1);
}

function transfersOf(timeline) {
  return timeline.events.filter(function (e) { return TRANSFERS.indexOf(e.kind) >= 0; });
}

// Whether the boxes hold two numbers, one above the other.
function isTall(timeline) {
  return timeline.schedule.slices > 1 ||
    timeline.events.some(function (e) { return e.parts.length > 1; });
}

// The boxes: {event, part, shade, half, seconds, lines}, as in timeline_parts.py.
function piecesOf(timeline) {
  var s = timeline.schedule, shades = (s.copies || [s.placement]).map(function (placement, copy) {
    return chunksOf(placement).map(function (chunk) { return copy * s.v + chunk; });
  });
  var pieces = [];
  timeline.events.forEach(function (event) {
    if (TRANSFERS.indexOf(event.kind) >= 0) { return; }
    var paired = event.parts.length > 1;
    event.parts.forEach(function (part, half) {
      var lines = [String(part.microbatch)];
      if (part.slice !== null) {
        lines = paired ? [part.microbatch + "." + part.slice] : [lines[0], String(part.slice)];
      }
      pieces.push({ event: event, part: part, half: paired ? half : null, lines: lines,
        shade: shades[s.direction ? s.direction[part.microbatch] : 0][part.stage],
        seconds: paired ? event.end - event.start : timeline.costs[part.kind] });
    });
  });
  return pieces;
}

function frameOf(timeline, look, memory, title, width) {
  var p = timeline.schedule.p;
  var span = timeline.makespan > 0 ? timeline.makespan : 1;
  var small = p > 8, row = small ? 18 : 24, gap = small ? 2 : 3, strip = small ? 14 : 20;
  if (isTall(timeline)) { row += 6; }
  if (transfersOf(timeline).length) { gap = 2 * LANE + 2; }
  var legend = placeLegend(timeline, look, width, title ? 34 : 10);
  var top = legend.below + 8;
  var strips = top + p * (row + gap) + 24;
  var axis = memory ? strips + p * strip + 4 : top + p * (row + gap) + 2;
  var scale = (width - LEFT - RIGHT) / span;
  return {
    width: width, scale: scale, span: span, legend: legend.entries, row: row, gap: gap, top: top,
    strip: strip, strips: strips, axis: axis, height: axis + 38,
    x: function (time) { return LEFT + time * scale; },
    y: function (rank) { return top + rank * (row + gap); }
  };
}

// For each stage, which of its rank's stages it is.
function chunksOf(placement) {
  var seen = {};
  return placement.map(function (rank) {
    seen[rank] = (seen[rank] || 0) + 1;
    return seen[rank] - 1;
  });
}

// Single kinds in the order F, B, I, W, R, then pairs, then transfers.
function kindsOf(timeline) {
  if (timeline.kinds) { return timeline.kinds; }
  var there = {};
  timeline.events.forEach(function (event) { there[event.kind] = true; });
  function present(kind) { return there[kind]; }
  return (timeline.kinds = COMPUTED.filter(present).concat(
    Object.keys(there).filter(function (kind) { return kind.indexOf("&") > 0; }).sort(),
    TRANSFERS.split("").filter(present)));
}

function boxLook(look, kind, chunk, text) {
  return look.attributes[kind + Math.min(chunk, 7) + (text ? "t" : "")];
}

function kindText(timeline, look, kind) {
  if (kind.indexOf("&") < 0) {
    return kind + " " + look.kinds[kind] + ": " + number(timeline.costs[kind]);
  }
  var seconds = timeline.events.filter(function (e) { return e.kind === kind; })
    .map(function (e) { return e.end - e.start; });
  var least = number(Math.min.apply(null, seconds)), most = number(Math.max.apply(null, seconds));
  return kind.replace("&", " and ") + " overlapped: " +
    (least === most ? least : least + " to " + most);
}

function shadeText(s) {
  var copies = s.copies ? s.copies.length : 0;
  if (copies > 1 && s.v > 1) {
    return "shades: v x copy of the model (0 to " + (copies - 1) + ") + chunk (0 to " + (s.v - 1) +
      ")";
  }
  if (copies > 1) { return "shades: copies 0 to " + (copies - 1) + " of the model"; }
  return s.v > 1 ? "shades: chunks 0 to " + (s.v - 1) + " of a rank" : "";
}

function placeLegend(timeline, look, width, y) {
  var s = timeline.schedule, shades = s.v * Math.max(s.copies ? s.copies.length : 0, 1);
  var entries = kindsOf(timeline).map(function (kind) {
    return { name: kind, text: kindText(timeline, look, kind),
      swatches: COMPUTED.indexOf(kind) >= 0 ? shades : 1 };
  });
  entries.push({ name: "idle", text: "bubble (idle)", swatches: 1 });
  [shadeText(s), s.slices > 1 ? "numbers: microbatch, below it the slice" : "",
    transfersOf(timeline).length ? "marks below a row: transfers beside the work" : ""
  ].forEach(function (note) {
    if (note) { entries.push({ name: "note", text: note, swatches: 0 }); }
  });
  var x = LEFT;
  entries.forEach(function (entry) {
    var size = entry.swatches * 17 + 7 * entry.text.length + 16;
    if (x > LEFT && x + size > width) { x = LEFT; y += 20; }
    entry.x = x;
    entry.y = y;
    x += size;
  });
  return { entries: entries, below: y + 16 };
}

function drawLegend(timeline, look, frame, parts) {
  frame.legend.forEach(function (entry) {
    for (var chunk = 0; chunk < entry.swatches; chunk += 1) {
      var x = entry.x + 17 * chunk;
      var place = 'x="' + x + '" y="' + entry.y + '" width="15" height="14"';
      if (entry.name === "idle") {
        parts.push("<rect" + look.attributes.idle + " " + place + "/>");
        continue;
      }
      if (TRANSFERS.indexOf(entry.name) >= 0) {
        parts.push("<path" + look.attributes.muted + ' d="' +
          markOf(entry.name, x + 7, entry.y + 5) + '"/>');
        continue;
      }
      if (entry.name.indexOf("&") > 0) {
        entry.name.split("&").forEach(function (kind, half) {
          parts.push("<g" + boxLook(look, kind, 0) + '><rect x="' + x + '" y="' +
            (entry.y + 7 * half) + '" width="15" height="7"/></g>');
        });
        continue;
      }
      parts.push("<g" + boxLook(look, entry.name, chunk) + "><rect " + place + "/>");
      if (entry.swatches > 1) {
        parts.push("<text" + boxLook(look, entry.name, chunk, true) + ' font-size="10" ' +
          'text-anchor="middle" x="' + (x + 7.5) + '" y="' + (entry.y + 11) + '">' + chunk +
          "</text>");
      }
      parts.push("</g>");
    }
    var start = entry.x + entry.swatches * 17 + (entry.swatches ? 4 : 0);
    parts.push("<text" + look.attributes.text + ' x="' + start + '" y="' + (entry.y + 11) + '">' +
      entry.text + "</text>");
  });
}

function drawRows(timeline, look, frame, parts) {
  var right = frame.width - RIGHT;
  for (var rank = 0; rank < timeline.schedule.p; rank += 1) {
    var y = frame.y(rank), middle = fixed(y + frame.row / 2 + 4, 1);
    parts.push("<rect" + look.attributes.idle + ' x="' + LEFT + '" y="' + y + '" width="' +
      (right - LEFT) + '" height="' + frame.row + '"/>');
    parts.push("<text" + look.attributes.text + ' x="' + (LEFT - 8) + '" y="' + middle +
      '" text-anchor="end">rank ' + rank + "</text>");
    parts.push("<text" + look.attributes.muted + ' x="' + (right + 8) + '" y="' + middle +
      '">idle ' + number(Math.max(timeline.makespan - timeline.busy[rank], 0)) + "</text>");
  }
}

function drawBoxes(timeline, look, frame, unit, tooltips, parts) {
  var groups = {}, shortest = Infinity, pieces = piecesOf(timeline);
  pieces.forEach(function (piece) {
    var key = piece.part.kind + String(piece.shade).padStart(4, "0") + (piece.half === null ? 0 : 1);
    (groups[key] = groups[key] || []).push(piece);
  });
  timeline.events.forEach(function (event) {
    if (event.end > event.start) { shortest = Math.min(shortest, event.end - event.start); }
  });
  var labels = [0, 1].map(function (halved) {
    return labelSize(pieces.filter(function (piece) {
      return (piece.half === null ? 0 : 1) === halved;
    }), timeline, frame, Boolean(halved));
  });
  var edge = (shortest === Infinity ? 1 : shortest) * frame.scale > 4 ? "0.8" : "0.3";
  var after = unit ? " " + unit : "";
  Object.keys(groups).sort().forEach(function (key) {
    var kind = key[0], chunk = Number(key.slice(1, 5)), halved = Number(key[5]);
    var boxes = "", texts = "", label = labels[halved];
    var high = halved ? Math.floor(frame.row / 2) : frame.row;
    groups[key].forEach(function (piece) {
      var event = piece.event, y = frame.y(event.rank) + (piece.half || 0) * high;
      var left = fixed(frame.x(event.start), 2);
      var wide = fixed((event.end - event.start) * frame.scale, 2);
      boxes += tooltips ? '<rect x="' + left + '" y="' + y + '" width="' + wide + '" height="' +
        high + '">' + tooltipOf(event, after) + "</rect>"
        : "M" + left + " " + y + "h" + wide + "v" + high + "h-" + wide + "z";
      if (piece.seconds >= label.least) {
        var middle = fixed(frame.x((event.start + event.end) / 2), 2);
        var first = y + high / 2 + 0.35 * label.size - (piece.lines.length - 1) * 0.5 * label.size;
        texts += '<text x="' + middle + '" y="' + fixed(first, 1) + '">' + piece.lines[0] +
          piece.lines.slice(1).map(function (line) {
            return '<tspan x="' + middle + '" dy="' + label.size + '">' + line + "</tspan>";
          }).join("") + "</text>";
      }
    });
    if (!tooltips) { boxes = '<path d="' + boxes + '"/>'; }
    parts.push("<g" + boxLook(look, kind, chunk) + ' stroke-width="' + edge + '">' + boxes + "</g>");
    if (texts) {
      parts.push("<g" + boxLook(look, kind, chunk, true) + ' font-size="' + label.size +
        '" text-anchor="middle" pointer-events="none">' + texts + "</g>");
    }
  });
}

function tooltipOf(event, after) {
  return "<title>" + escapeText(event.name) + " on rank " + event.rank + ": " +
    number(event.start) + " to " + number(event.end) + escapeText(after) + "</title>";
}

// One font size for the numbers, and the duration from which on boxes have room for it.
function labelSize(pieces, timeline, frame, half) {
  var slices = timeline.schedule.slices || 1, chars = String(timeline.schedule.m - 1).length;
  if (slices > 1) {
    var part = String(slices - 1).length;
    chars = half ? chars + 1 + part : Math.max(chars, part);
  }
  var high = half || slices > 1 ? Math.floor(frame.row / 2) - 3 : frame.row;
  var size = Math.min(frame.row > 20 ? 12 : 11, high), least = Infinity;
  pieces.forEach(function (piece) {
    var fits = Math.trunc((piece.seconds * frame.scale - 1.5 + 1e-7) / (CHAR * chars));
    if (fits >= 7) {
      least = Math.min(least, piece.seconds);
      size = Math.min(size, fits);
    }
  });
  return { size: size, least: least };
}

// Below each row: what leaves the rank, from a mark on; below that, what comes back.
function drawTransfers(timeline, look, frame, unit, tooltips, parts) {
  var shapes = {}, after = unit ? " " + unit : "";
  transfersOf(timeline).forEach(function (event) {
    var leaving = event.kind === "E" || event.kind === "O";
    var y = frame.y(event.rank) + frame.row + (leaving ? 1 : 1 + LANE);
    var wide = fixed((event.end - event.start) * frame.scale, 2);
    var path = "M" + fixed(frame.x(event.start), 2) + " " + (y + 2) + "h" + wide + "v1h-" + wide +
      "z" + markOf(event.kind, frame.x(leaving ? event.start : event.end), y);
    shapes[event.kind] = (shapes[event.kind] || "") +
      (tooltips ? '<path d="' + path + '">' + tooltipOf(event, after) + "</path>" : path);
  });
  Object.keys(shapes).forEach(function (kind) {
    parts.push("<g" + look.attributes.muted + ">" +
      (tooltips ? shapes[kind] : '<path d="' + shapes[kind] + '"/>') + "</g>");
  });
}

// A triangle: down for what leaves the rank, up for what comes back.
function markOf(kind, x, y) {
  var left = fixed(x - 3, 2);
  return kind === "E" || kind === "O" ? "M" + left + " " + y + "h6l-3 5z"
    : "M" + left + " " + (y + 5) + "h6l-3 -5z";
}

function drawMemory(timeline, look, frame, limit, parts) {
  var v = piecesPerMicrobatch(timeline), right = frame.width - RIGHT;
  var most = Math.max(Math.max.apply(null, timeline.peakActivations), 1);
  limit = limit * v <= 2 * most ? limit * v : 0;
  most = Math.max(most, limit);
  var start = frame.width >= 480 ? LEFT : 8;
  parts.push("<text" + look.attributes.text + ' x="' + start + '" y="' + (frame.strips - 6) +
    '">activations kept, in whole microbatches' + (v === 1 ? "" : " of " + v + " pieces") +
    (limit && start === LEFT ? "; dashed: limit of " + number(limit / v) : "") + "</text>");
  for (var rank = 0; rank < timeline.schedule.p; rank += 1) {
    var base = frame.strips + (rank + 1) * frame.strip, step = (frame.strip - 3) / most;
    var path = "M" + LEFT + " " + base;
    memoryCurve(timeline, rank).forEach(function (point) {
      path += "H" + fixed(frame.x(point[0]), 2) + "V" + fixed(base - point[1] * step, 2);
    });
    path += "H" + fixed(frame.x(timeline.makespan), 2) + "V" + base + "Z";
    parts.push("<path" + look.attributes.memory + ' d="' + path + '"/>');
    parts.push("<path" + look.attributes.grid + ' d="M' + LEFT + " " + base + "H" + right + '"/>');
    if (limit) {
      parts.push("<path" + look.attributes.limit + ' d="M' + LEFT + " " +
        fixed(base - limit * step, 2) + "H" + right + '"/>');
    }
    parts.push("<text" + look.attributes.text + ' x="' + (LEFT - 8) + '" y="' + (base - 3) +
      '" text-anchor="end">rank ' + rank + "</text>");
    parts.push("<text" + look.attributes.muted + ' x="' + (right + 8) + '" y="' + (base - 3) +
      '">peak ' + number(timeline.peakActivations[rank] / v) + "</text>");
  }
}

function drawAxis(look, frame, unit, parts) {
  var right = frame.width - RIGHT, y = frame.axis;
  var marks = "M" + LEFT + " " + y + "H" + right, labels = "";
  ticks(frame.span, (right - LEFT) / 60).forEach(function (time) {
    var x = fixed(frame.x(time), 2);
    marks += "M" + x + " " + y + "V" + (y + 4);
    labels += '<text x="' + x + '" y="' + (y + 16) + '">' + number(time) + "</text>";
  });
  parts.push("<path" + look.attributes.grid + ' d="' + marks + '"/>');
  parts.push("<g" + look.attributes.muted + ' text-anchor="middle">' + labels + '<text x="' +
    fixed((LEFT + right) / 2, 1) + '" y="' + (y + 32) + '">' +
    (unit ? "time in " + escapeText(unit) : "time, in the unit of the costs") + "</text></g>");
}
