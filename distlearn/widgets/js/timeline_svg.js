// A timeline as SVG: the twin of distlearn/plots/timeline_svg.py, which says what is drawn and why.
// look: {style, attributes, kinds} as Python made them from the palette.

var LEFT = 58, RIGHT = 68, CHAR = 0.6;

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
    "<style>" + look.style + "</style>",
    "<rect" + look.attributes.bg + " " + size + "/>"
  ];
  if (title) {
    parts.push("<text" + look.attributes.text + ' x="' + LEFT + '" y="20" font-size="14" ' +
      'font-weight="600">' + escapeText(title) + "</text>");
  }
  drawLegend(timeline, look, frame, parts);
  drawRows(timeline, look, frame, parts);
  drawBoxes(timeline, look, frame, unit, options.tooltips !== false, parts);
  if (memory) { drawMemory(timeline, look, frame, parts); }
  drawAxis(look, frame, unit, parts);
  parts.push("</svg>");
  return parts.join("\n");
}

function describe(timeline, unit) {
  var s = timeline.schedule;
  var peaks = timeline.peakActivations.map(function (peak) { return number(peak / s.v); });
  return "Schedule " + s.name + " with p=" + s.p + " ranks, m=" + s.m + " microbatches, v=" + s.v +
    (s.v === 1 ? " stage" : " stages") + " per rank. " +
    "Makespan " + number(timeline.makespan) + (unit ? " " + unit : "") + ". " +
    "Bubble: " + percent(timeline.bubbleFraction) + " of the makespan, " +
    percent(timeline.bubbleOverIdeal) + " of the ideal time. " +
    "Most activations kept, in whole microbatches, from rank 0 on: " + peaks.join(", ") + ".";
}

function frameOf(timeline, look, memory, title, width) {
  var p = timeline.schedule.p;
  var span = timeline.makespan > 0 ? timeline.makespan : 1;
  var small = p > 8, row = small ? 18 : 24, gap = small ? 2 : 3, strip = small ? 14 : 20;
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
function chunksOf(schedule) {
  var seen = {};
  return schedule.placement.map(function (rank) {
    seen[rank] = (seen[rank] || 0) + 1;
    return seen[rank] - 1;
  });
}

function kindsOf(timeline) {
  return ["F", "B", "I", "W"].filter(function (kind) {
    return timeline.events.some(function (event) { return event.kind === kind; });
  });
}

function boxLook(look, kind, chunk, text) {
  return look.attributes[kind + Math.min(chunk, 7) + (text ? "t" : "")];
}

function placeLegend(timeline, look, width, y) {
  var v = timeline.schedule.v;
  var entries = kindsOf(timeline).map(function (kind) {
    var text = kind + " " + look.kinds[kind] + ": " + number(timeline.costs[kind]);
    return { name: kind, text: text, swatches: v };
  });
  entries.push({ name: "idle", text: "bubble (idle)", swatches: 1 });
  if (v > 1) { entries.push({ name: "note", text: "shades: chunks 0 to " + (v - 1) + " of a rank", swatches: 0 }); }
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
  var chunks = chunksOf(timeline.schedule), groups = {}, shortest = Infinity;
  timeline.events.forEach(function (event) {
    var key = event.kind + String(chunks[event.stage]).padStart(4, "0");
    (groups[key] = groups[key] || []).push(event);
    if (event.end > event.start) { shortest = Math.min(shortest, event.end - event.start); }
  });
  var label = labelSize(timeline, frame);
  var edge = (shortest === Infinity ? 1 : shortest) * frame.scale > 4 ? "0.8" : "0.3";
  var after = unit ? " " + escapeText(unit) : "";
  Object.keys(groups).sort().forEach(function (key) {
    var kind = key[0], chunk = Number(key.slice(1)), boxes = "", labels = "";
    groups[key].forEach(function (event) {
      var y = frame.y(event.rank);
      var left = fixed(frame.x(event.start), 2);
      var wide = fixed((event.end - event.start) * frame.scale, 2);
      boxes += tooltips ? '<rect x="' + left + '" y="' + y + '" width="' + wide + '" height="' +
        frame.row + '"><title>' + kind + event.stage + "." + event.microbatch + " on rank " +
        event.rank + ": " + number(event.start) + " to " + number(event.end) + after +
        "</title></rect>" : "M" + left + " " + y + "h" + wide + "v" + frame.row + "h-" + wide + "z";
      if (label.kinds[kind]) {
        labels += '<text x="' + fixed(frame.x((event.start + event.end) / 2), 2) + '" y="' +
          fixed(y + frame.row / 2 + 0.35 * label.size, 1) + '">' + event.microbatch + "</text>";
      }
    });
    if (!tooltips) { boxes = '<path d="' + boxes + '"/>'; }
    parts.push("<g" + boxLook(look, kind, chunk) + ' stroke-width="' + edge + '">' + boxes + "</g>");
    if (labels) {
      parts.push("<g" + boxLook(look, kind, chunk, true) + ' font-size="' + label.size +
        '" text-anchor="middle" pointer-events="none">' + labels + "</g>");
    }
  });
}

function labelSize(timeline, frame) {
  var digits = String(timeline.schedule.m - 1).length;
  var size = frame.row > 20 ? 12 : 11, kinds = {};
  kindsOf(timeline).forEach(function (kind) {
    var room = timeline.costs[kind] * frame.scale - 1.5 + 1e-7;
    var fits = Math.trunc(room / (CHAR * digits));
    if (fits >= 7) {
      kinds[kind] = true;
      size = Math.min(size, fits);
    }
  });
  return { size: size, kinds: kinds };
}

function drawMemory(timeline, look, frame, parts) {
  var v = timeline.schedule.v, right = frame.width - RIGHT;
  var most = Math.max(Math.max.apply(null, timeline.peakActivations), 1);
  var start = frame.width >= 480 ? LEFT : 8;
  parts.push("<text" + look.attributes.text + ' x="' + start + '" y="' + (frame.strips - 6) +
    '">activations kept, in whole microbatches' + (v === 1 ? "" : " of " + v + " pieces") +
    "</text>");
  for (var rank = 0; rank < timeline.schedule.p; rank += 1) {
    var base = frame.strips + (rank + 1) * frame.strip, step = (frame.strip - 3) / most;
    var path = "M" + LEFT + " " + base;
    memoryCurve(timeline, rank).forEach(function (point) {
      path += "H" + fixed(frame.x(point[0]), 2) + "V" + fixed(base - point[1] * step, 2);
    });
    path += "H" + fixed(frame.x(timeline.makespan), 2) + "V" + base + "Z";
    parts.push("<path" + look.attributes.memory + ' d="' + path + '"/>');
    parts.push("<path" + look.attributes.grid + ' d="M' + LEFT + " " + base + "H" + right + '"/>');
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
