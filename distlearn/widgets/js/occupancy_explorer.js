// The face of OccupancyExplorer.

function occupancyView(sms, setting) {
  var sm = sms[setting.device], best = 0, bestThreads = "none", curve = [];
  for (var threads = 1024; threads > 0; threads -= 32) {
    var each = occupancyOf(sm, threads, setting.registers, setting.shared);
    curve.unshift(each.warps / sm.warps);
    if (each.blocks * threads > best) { best = each.blocks * threads; bestThreads = threads; }
  }
  var held = occupancyOf(sm, setting.threads, setting.registers, setting.shared);
  var share = percent(held.warps / sm.warps);
  var limits = held.limits.map(function (limit) { return limit.join(" "); }).join(", ");
  return {
    curve: curve,
    held: held,
    numbers: [
      ["active blocks", String(held.blocks), "on an SM, at most " + sm.blocks],
      ["active warps", String(held.warps), "on an SM, at most " + sm.warps],
      ["occupancy", share, "active over possible warps"],
      ["limited by", held.limiter, "blocks allowed: " + limits],
      ["a block takes", held.registers + " registers", "of " + sm.registers + "; " +
        held.shared + " of " + sm.shared_bytes + " shared bytes"],
      ["best block", String(bestThreads), "threads, most resident"]
    ],
    words: setting.device + " holds " + counted(held.blocks, "block") + " of " + setting.threads +
      " threads on an SM: " + held.warps + " of " + sm.warps + " warps, " + share +
      " occupancy. Limit: " + held.limiter + "; blocks allowed by " + limits + "."
  };
}

function occupancyPicture(setting, view, width) {
  var left = 46, top = 20, high = 140, cell = (width - left - 2) / 32, parts = [], y;
  parts.push(textOf(1, 12, "occupancy against threads of a block", "muted"));
  [0, 0.5, 1].forEach(function (share) {
    y = top + high * (1 - share);
    parts.push('<path class="dl-grid" d="M' + left + " " + y + "H" + width + '"/>',
      textOf(left - 6, y + 4, percent(share), "muted dl-small", "end"));
  });
  view.curve.forEach(function (share, i) {
    var x = left + i * cell, mine = 32 * (i + 1) === setting.threads;
    parts.push(boxOf(x, top + high * (1 - share), cell - 1.5, high * share, mine ? "F0" : "F3"),
      boxOf(x, top, cell, high, "clear", 'data-pick="threads:' + 32 * (i + 1) + '"'));
    if (i % 8 === 7) {
      parts.push(textOf(x + (i === 31 ? cell : cell / 2), top + high + 14, 32 * (i + 1),
        "muted dl-small", i === 31 ? "end" : "middle"));
    }
  });
  y = top + high + 36;
  parts.push(textOf(1, y, "blocks that each resource allows", "muted"));
  var most = Math.max.apply(null, view.held.limits.map(function (limit) { return limit[1]; }));
  view.held.limits.forEach(function (limit, i) {
    var row = y + 10 + i * 20, least = limit[1] === view.held.blocks, start = 76;
    parts.push(textOf(start - 8, row + 12, limit[0], "text", "end"),
      boxOf(start, row, (width - start - 40) * limit[1] / most, 16, least ? "B0" : "F3"),
      textOf(start + (width - start - 40) * limit[1] / most + 6, row + 13, limit[1], "text"));
  });
  return svgOf(width, y + 16 + 20 * view.held.limits.length, view.words, parts);
}

function mountOccupancyExplorer(root, data) {
  mountPanel(root, data.setting, {
    view: function (setting) { return occupancyView(data.sms, setting); },
    picture: occupancyPicture,
    key: function (setting, key) {
      var move = { ArrowLeft: ["threads", -32, 32, 1024], ArrowRight: ["threads", 32, 32, 1024],
        ArrowUp: ["registers", 1, 0, 255], ArrowDown: ["registers", -1, 0, 255] }[key];
      if (!move) { return false; }
      var name = move[0];
      setting[name] = Math.max(move[2], Math.min(move[3], setting[name] + move[1]));
      return true;
    },
    pick: function (setting, what, number) { setting.threads = number; }
  });
}
