// The face of ThreadIndexExplorer.

function sizesOf(setting, name) {
  return ["x", "y", "z"].map(function (axis) { return setting[name + "." + axis]; });
}

function extentOf(setting) {
  var grid = sizesOf(setting, "gridDim");
  return sizesOf(setting, "blockDim").map(function (b, i) { return b * grid[i]; });
}

function product(three) { return three[0] * three[1] * three[2]; }

function numberInBlock(place, block) {
  var i = place.map(function (p, axis) { return p % block[axis]; });
  return (i[2] * block[1] + i[1]) * block[0] + i[0];
}

function threadIndexView(setting) {
  var block = sizesOf(setting, "blockDim"), grid = sizesOf(setting, "gridDim");
  var array = sizesOf(setting, "array"), most = extentOf(setting), place = setting.thread;
  var axes = 1 + Math.max.apply(null, [0, 1, 2].filter(function (i) {
    return i === 0 || Math.max(most[i], array[i]) > 1;
  }));
  var used = [0, 1, 2].slice(0, axes);
  var outer = place.map(function (p, i) { return Math.floor(p / block[i]); });
  var inner = place.map(function (p, i) { return p % block[i]; });
  function triple(three) { return "(" + three.slice(0, axes).join(", ") + ")"; }
  var sums = used.map(function (i) {
    return "xyz"[i] + " = " + outer[i] + " · " + block[i] + " + " + inner[i] + " = " + place[i];
  }).join("; ");
  var threads = product(block), number = numberInBlock(place, block);
  var linear = [String(inner[0]), inner[1] + " · " + block[0] + " + " + inner[0],
    "(" + inner[2] + " · " + block[1] + " + " + inner[1] + ") · " + block[0] + " + " + inner[0]
  ][axes - 1];
  var warps = Math.ceil(threads / 32), warp = Math.floor(number / 32), lane = number % 32;
  var held = product(most.map(function (m, i) { return Math.min(m, array[i]); }));
  var elements = product(array), all = threads * product(grid);
  var out = used.filter(function (i) { return place[i] >= array[i]; }).map(function (i) {
    return "xyz"[i] + " = " + place[i] + " is not below " + array[i];
  });
  var name = "A[" + place.slice(0, axes).reverse().join(", ") + "]";
  var flat = (place[2] * array[1] + place[1]) * array[0] + place[0];
  return {
    numbers: [
      ["threadIdx", triple(inner), "blockDim " + triple(block)],
      ["blockIdx", triple(outer), "gridDim " + triple(grid)],
      ["global index", triple(place), sums],
      ["in its block", String(number), linear + "; of " + counted(threads, "thread")],
      ["warp, lane", warp + ", " + lane, number + " div 32, mod 32; " + counted(warps, "warp") +
        " a block, " + (warps * 32 - threads) + " lanes empty"],
      ["guard", out.length ? "false" : "true", "if " + used.map(function (i) {
        return "xyz"[i] + " < " + array[i];
      }).join(" and ")],
      ["element", out.length ? "none" : name, "of " + elements + ", in rows along x"],
      ["threads", String(all), (all - held) + " without an element, " + (elements - held) +
        " elements without a thread"]
    ],
    words: "Thread " + triple(inner) + " of block " + triple(outer) + ": " + sums +
      ". It is number " + number + " of its block: warp " + warp + ", lane " + lane + ". " +
      (out.length ? "The guard keeps it out: " + out.join(" and ") + "."
        : "It takes " + name + ", element " + flat + " of " + elements + ".")
  };
}

function threadIndexPicture(setting, view, width) {
  var block = sizesOf(setting, "blockDim"), array = sizesOf(setting, "array");
  var most = extentOf(setting), place = setting.thread, z = place[2], gap = 4, top = 20;
  var cell = Math.max(9, Math.min(26, Math.floor((width - 8) / most[0] - gap / block[0])));
  var warp = Math.floor(numberInBlock(place, block) / 32), parts = [];
  function at(i, axis) { return i * cell + Math.floor(i / block[axis]) * gap; }
  function inMine(x, y) {
    return [x, y, z].every(function (p, i) {
      return Math.floor(p / block[i]) === Math.floor(place[i] / block[i]);
    });
  }
  parts.push(textOf(1, 12, most[2] > 1 || array[2] > 1
    ? "threads with z = " + z + " of " + most[2] + "; the number is the lane"
    : "x to the right, y down; the number is the lane", "muted"));
  for (var y = 0; y < most[1]; y += 1) {
    for (var x = 0; x < most[0]; x += 1) {
      var number = numberInBlock([x, y, z], block), mine = inMine(x, y);
      var over = x >= array[0] || y >= array[1] || z >= array[2];
      var dark = mine && Math.floor(number / 32) === warp;
      var look = over ? (dark ? "over dl-mine" : "over") : dark ? "F0" : mine ? "F2" : "idle";
      parts.push(boxOf(2 + at(x, 0), top + at(y, 1), cell - 1, cell - 1, look,
        'data-pick="thread:' + (y * most[0] + x) + '"'));
      if (cell >= 17) {
        parts.push('<g pointer-events="none">' + textOf(2 + at(x, 0) + (cell - 1) / 2,
          top + at(y, 1) + cell / 2 + 3.5, number % 32,
          (look === "F0" || look === "F2" ? look + "t" : "text") + " dl-small", "middle") + "</g>");
      }
    }
  }
  parts.push(boxOf(2 + at(place[0], 0), top + at(place[1], 1), cell - 1, cell - 1, "chosen"));
  return svgOf(at(most[0] - 1, 0) + cell + 6, top + at(most[1] - 1, 1) + cell + 4, view.words,
    parts);
}

function mountThreadIndexExplorer(root, data) {
  mountPanel(root, data.setting, {
    view: threadIndexView,
    picture: threadIndexPicture,
    key: function (setting, key) {
      var most = extentOf(setting);
      var move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, -1], ArrowDown: [1, 1],
        PageUp: [2, -1], PageDown: [2, 1], Home: [0, -most[0]], End: [0, most[0]] }[key];
      if (!move) { return false; }
      var axis = move[0], next = setting.thread[axis] + move[1];
      setting.thread[axis] = Math.max(0, Math.min(most[axis] - 1, next));
      return true;
    },
    pick: function (setting, what, number) {
      var across = extentOf(setting)[0];
      setting.thread = [number % across, Math.floor(number / across), setting.thread[2]];
    },
    changed: function (setting) {  // the chosen thread stays within the grid
      var most = extentOf(setting);
      setting.thread = setting.thread.map(function (p, i) { return Math.min(p, most[i] - 1); });
    }
  });
}
