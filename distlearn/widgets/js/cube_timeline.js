// The face of CubeTimeline: shows recorded timelines.

function recordOf(data, setting) {
  return data.records[[setting.tile, setting.step, Number(setting.l1), Number(setting.l0),
    setting.forget].join("|")];
}

function eventsOf(data, setting) {
  var found = [], one = recordOf(data, setting);
  Object.keys(data.pipes).forEach(function (pipe, number) {
    var at = 0, row = one.rows[pipe];
    for (var i = 0; i < row.length; i += 2) {
      found.push([at + row[i], number, at + row[i] + row[i + 1]]);
      at += row[i] + row[i + 1];
    }
  });
  return found.sort(function (a, b) { return a[0] - b[0] || a[1] - b[1] || a[2] - b[2]; });
}

function grouped(n) { return String(n).replace(/\B(?=(\d{3})+$)/g, ","); }

function cubeView(data, setting) {
  var one = recordOf(data, setting), events = eventsOf(data, setting), most = null, busy = {};
  var span = Math.max.apply(null, [0].concat(events.map(function (e) { return e[2]; })));
  var names = Object.keys(data.pipes), kib = 0;
  names.forEach(function (pipe) {
    busy[pipe] = one.rows[pipe].reduce(function (sum, n, i) { return sum + i % 2 * n; }, 0);
    if (most === null || busy[pipe] > busy[most]) { most = pipe; }
  });
  var share = span ? percent(busy.M / span) : "none", chosen = "nothing runs.";
  var fill = Object.keys(one.fill).map(function (name) {
    kib += one.fill[name];
    return name + " " + Math.floor(one.fill[name] / 1024) + " of " +
      Math.floor(data.capacity[name] / 1024);
  }).join(", ");
  if (events.length) {
    var event = events[setting.event], pipe = names[event[1]];
    chosen = "instruction " + (setting.event + 1) + " of " + events.length + ", " +
      data.pipes[pipe] + " on " + pipe + ", clocks " + grouped(event[0]) + " to " +
      grouped(event[2]) + ".";
  }
  return {
    names: names,
    events: events,
    span: span,
    numbers: [
      ["clocks", grouped(span), "two tiles, k = " + data.depth + ", " + data.chunk +
        " of it in L1 at a time"],
      ["cube busy", share, grouped(busy.M) + " clocks on M"],
      ["busiest pipe", span ? most : "none", grouped(busy[most]) + " clocks"],
      ["KiB in use", String(Math.floor(kib / 1024)), fill]
    ],
    words: "Tiles of " + setting.tile + " in steps of " + setting.step + ": " + grouped(span) +
      " clocks, cube busy " + share + ". Chosen: " + chosen,
    message: one.message
  };
}

function cubePicture(setting, view, width) {
  var left = 50, high = 26, top = 6, parts = [], span = view.span || 1;
  var scale = (width - left - 4) / span, looks = ["W0", "I0", "F0", "B0"];
  var bottom = top + view.names.length * (high + 6);
  view.names.forEach(function (pipe, row) {
    var y = top + row * (high + 6);
    parts.push(textOf(left - 8, y + 17, pipe, "text", "end"),
      boxOf(left, y, width - left - 4, high, "idle"));
  });
  view.events.forEach(function (e, i) {
    var y = top + e[1] * (high + 6), x = left + e[0] * scale;
    parts.push(boxOf(x, y, Math.max(1, (e[2] - e[0]) * scale), high, looks[e[1]],
      'stroke-width=".6" data-pick="event:' + i + '"'));
  });
  if (view.events.length) {
    var mine = view.events[setting.event];
    parts.push(boxOf(left + mine[0] * scale, top + mine[1] * (high + 6),
      Math.max(2, (mine[2] - mine[0]) * scale), high, "chosen"));
  }
  ticks(span, width < 560 ? 4 : 9).forEach(function (t) {
    parts.push(textOf(left + t * scale, bottom + 12, grouped(t), "muted dl-small",
      t === 0 ? "start" : t > 0.95 * span ? "end" : "middle"));
  });
  return svgOf(width, bottom + 20, view.words, parts);
}

function mountCubeTimeline(root, data) {
  mountPanel(root, data.setting, {
    view: function (setting) { return cubeView(data, setting); },
    picture: cubePicture,
    key: function (setting, key) {
      var step = { step: setting.event };
      if (!stepKey(step, key, Math.max(0, eventsOf(data, setting).length - 1))) { return false; }
      setting.event = step.step;
      return true;
    },
    pick: function (setting, what, number) { setting.event = number; },
    changed: function (setting) { setting.event = 0; }
  });
}
