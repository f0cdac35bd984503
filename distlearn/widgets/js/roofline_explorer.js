// The face of RooflineExplorer.

function rooflineView(data, setting) {
  var device = data.devices[setting.device], M = setting.M, N = setting.N, K = setting.K;
  var dtype = setting.dtype, peak = device.peak[dtype], unit = data.units[dtype];
  var flops = 2 * M * N * K, bytes = (M * K + K * N + M * N) * data.sizes[dtype];
  var compute = flops / peak, memory = bytes / device.memory, seconds = Math.max(compute, memory);
  var bound = compute >= memory ? "compute" : "memory", reach = flops / seconds;
  var points = data.rungs[dtype].map(function (rung) {
    return predictRung(rung, dtype, device, data.model, M, N, K);
  });
  var names = data.rungs[dtype].map(function (rung) { return rung.name; });
  var told = points[names.indexOf(setting.rung)], traffic = "";
  var reached = "no rate", note = setting.device + " has no vector rate for " + dtype;
  if (told) {
    reached = number(told.gflops, 5) + " GFLOP/s";
    note = "predicted; bound by " + told.bound + "; " + percent(told.gflops * 1e9 / peak) +
      " of peak";
    traffic = " at " + number(told.intensity) + " FLOP per byte asked for";
  }
  return {
    points: points, names: names, intensity: flops / bytes, reach: reach / 1e9,
    peak: peak / 1e9, memory: device.memory / 1e9,
    l2: device.cores * data.model.l2 * device.clock / 1e9,
    numbers: [
      ["peak", number(peak / 1e9, 5) + " GFLOP/s", dtype + ", " + unit + " units"],
      ["ridge", number(peak / device.memory), "FLOP per byte; memory " +
        number(device.memory / 1e9) + " GB/s"],
      ["this product", number(flops / bytes), "FLOP per byte; at least " +
        number(seconds * 1e3) + " ms, bound by " + bound],
      [setting.rung, reached, note]
    ],
    words: setting.device + ", " + dtype + ", " + M + " x " + N + " x " + K +
      ": the roof allows " + number(reach / 1e9, 5) + " GFLOP/s, bound by " + bound + ". " +
      setting.rung + ": " + reached + traffic + "."
  };
}

function rooflinePicture(setting, view, width) {
  var left = 58, top = 12, high = 290, bottom = top + high, parts = [], right = width - 8;
  var shown = view.points.filter(Boolean);
  var x0 = 0.05, x1 = Math.max(8000, view.intensity * 2), y1 = view.peak * 2;
  var y0 = Math.min.apply(null, shown.map(function (p) { return p.gflops / 2; })
    .concat([view.reach / 2, 50]));
  function x(value) { return left + (right - left) * Math.log(value / x0) / Math.log(x1 / x0); }
  function y(value) { return bottom - high * Math.log(value / y0) / Math.log(y1 / y0); }
  function decades(low, most, draw) {
    for (var e = Math.ceil(Math.log10(low)); Math.pow(10, e) <= most; e += 1) {
      draw(powerOfTen(e));
    }
  }
  decades(x0, x1, function (value) {
    parts.push('<path class="dl-grid" d="M' + fixed(x(value), 1) + " " + top + "V" + bottom + '"/>',
      textOf(x(value), bottom + 14, number(value), "muted dl-small", "middle"));
  });
  decades(y0, y1, function (value) {
    parts.push('<path class="dl-grid" d="M' + left + " " + fixed(y(value), 1) + "H" + right + '"/>',
      textOf(left - 6, y(value) + 4, number(value), "muted dl-small", "end"));
  });
  parts.push(textOf(right, bottom + 28, "FLOP per byte", "muted", "end"),
    textOf(left, top - 2, "GFLOP/s", "muted dl-small", "end"));
  [[view.l2, ' stroke-dasharray="6 3"'], [view.memory, ""]].forEach(function (roof) {
    var ridge = view.peak / roof[0], from = Math.max(x0, y0 / roof[0]);
    parts.push('<path class="dl-roof" d="M' + fixed(x(from), 1) + " " +
      fixed(y(from * roof[0]), 1) + "L" + fixed(x(ridge), 1) + " " + fixed(y(view.peak), 1) + "H" +
      right + '"' + roof[1] + "/>");
  });
  parts.push('<circle class="dl-ring" r="7" cx="' + fixed(x(view.intensity), 1) + '" cy="' +
    fixed(y(view.reach), 1) + '"/>');
  view.points.forEach(function (point, i) {
    if (!point) { return; }
    var mine = view.names[i] === setting.rung;
    var cx = fixed(x(point.intensity), 1), cy = fixed(y(point.gflops), 1);
    parts.push('<circle class="' + (mine ? "dl-B0" : "dl-F0") + '" r="10" cx="' + cx + '" cy="' +
      cy + '" data-pick="rung:' + i + '"/><g pointer-events="none">' + textOf(Number(cx),
      Number(cy) + 4, i + 1, (mine ? "B0t" : "F0t") + " dl-small", "middle") + "</g>");
  });
  var line = bottom + 46, at = 1, each = width < 560 ? 170 : 220;
  view.names.forEach(function (name, i) {
    if (at + each > width) { at = 1; line += 17; }
    parts.push(textOf(at, line, i + 1 + " " + name + (view.points[i]
      ? ": " + number(Math.round(view.points[i].gflops), 5) : ": no rate"), "text"));
    at += each;
  });
  return svgOf(width, line + 8, view.words, parts);
}

function mountRooflineExplorer(root, data) {
  var rungs = root.querySelector("[name=rung]"), listed = "";
  function names(setting) {
    return data.rungs[setting.dtype].map(function (rung) { return rung.name; });
  }
  function list(setting) {
    if (listed === setting.dtype) { return; }
    listed = setting.dtype;
    rungs.innerHTML = names(setting).map(function (name) {
      return '<option value="' + name + '">' + name + "</option>";
    }).join("");
  }
  mountPanel(root, data.setting, {
    view: function (setting) {
      list(setting);
      return rooflineView(data, setting);
    },
    picture: rooflinePicture,
    key: function (setting, key) {
      var known = names(setting), scale = { ArrowUp: 2, ArrowDown: 0.5 }[key];
      if (key === "ArrowLeft" || key === "ArrowRight") {
        setting.rung = known[walk(known.indexOf(setting.rung), key, known.length, known.length)];
        return true;
      }
      if (!scale) { return false; }
      var sizes = ["M", "N", "K"].map(function (name) { return setting[name] * scale; });
      if (sizes.every(function (n) { return n % 128 === 0 && n >= 128 && n <= 16384; })) {
        ["M", "N", "K"].forEach(function (name, i) { setting[name] = sizes[i]; });
      }
      return true;
    },
    pick: function (setting, what, number) { setting.rung = names(setting)[number]; },
    changed: function (setting, name) {
      var known = names(setting);
      if (name === "dtype" && known.indexOf(setting.rung) < 0) {
        setting.rung = known[known.length - 1];
      }
    }
  });
}
