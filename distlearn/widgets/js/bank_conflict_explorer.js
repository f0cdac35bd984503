// The face of BankConflictExplorer.

var BANKS = 32, COLUMNS = 32;

function placeOf(setting, element) {
  var row = Math.floor(element / COLUMNS), column = element % COLUMNS;
  if (setting.swizzle) { column ^= row % COLUMNS; }
  return row * (COLUMNS + setting.padding) + column;
}

// Per turn (8 bytes are served to half a warp at a time, 16 to a quarter) and bank: its words, each
// with the lanes that want it.
function turnsOf(setting, elements) {
  var each = setting.item / 4, turns = [];
  for (var t = 0; t < each; t += 1) {
    var banks = [];
    for (var b = 0; b < BANKS; b += 1) { banks.push([]); }
    turns.push(banks);
  }
  elements.forEach(function (element, lane) {
    for (var n = 0; n < each; n += 1) {
      var word = placeOf(setting, element) * each + n;
      var bank = turns[Math.floor(lane * each / LANES)][word % BANKS];
      var known = bank.find(function (entry) { return entry.word === word; });
      if (known) { known.lanes.push(lane); } else { bank.push({ word: word, lanes: [lane] }); }
    }
  });
  return turns;
}

function heightOf(banks) {
  return Math.max.apply(null, banks.map(function (bank) { return bank.length; }));
}

function bankConflictView(setting) {
  var elements = laneElements(setting), turns = turnsOf(setting, elements), words = {}, full = {};
  var each = setting.item / 4, wavefronts = 0, mine = elements[setting.lane];
  turns.forEach(function (banks) {
    wavefronts += heightOf(banks);
    banks.forEach(function (bank, b) {
      bank.forEach(function (entry) { words[entry.word] = full[b] = true; });
    });
  });
  var sharing = LANES - distinctCount(elements.map(function (e) { return placeOf(setting, e); }));
  var first = placeOf(setting, mine) * each, bank = first % BANKS;
  return {
    elements: elements,
    turns: turns,
    numbers: [
      ["wavefronts", String(wavefronts), "at least " + each],
      ["bank conflicts", String(wavefronts - each), "wavefronts beyond that"],
      ["words", String(Object.keys(words).length), "of 4 bytes, in " +
        Object.keys(full).length + " of 32 banks"],
      ["broadcast", String(sharing), "lanes that share another's word"]
    ],
    words: "One request of a warp to shared memory, " + setting.item + " bytes a lane: " +
      counted(wavefronts, "wavefront") + ", " + each + " at least. Lane " + setting.lane +
      " wants element " + mine + ", row " + Math.floor(mine / COLUMNS) + ", column " +
      mine % COLUMNS + ": word " + first + ", " + (each === 1 ? "bank " + bank
        : "banks " + bank + " to " + (bank + each - 1)) + "."
  };
}

function bankConflictPicture(setting, view, width) {
  var lanes = laneBoxes(width, 16, setting.lane, function (lane) {
    return lane in setting.moved ? "B0" : "F0";
  });
  var parts = [textOf(1, 11, "lanes of the warp", "muted")].concat(lanes.parts);
  var y = lanes.bottom + 18, cell = (width - 2) / BANKS;
  parts.push(textOf(1, y - 4, "banks: a column each; a row is a wavefront", "muted"));
  for (var b = 0; b < BANKS; b += 1) {
    if (cell > 18 || b % 4 === 0) {
      parts.push(textOf(1 + b * cell + (cell - 1) / 2, y + 12, b, "muted dl-small", "middle"));
    }
  }
  y += 17;
  view.turns.forEach(function (banks) {
    var height = heightOf(banks);
    banks.forEach(function (bank, b) {
      for (var row = 0; row < height; row += 1) {
        var entry = bank[row], x = 1 + b * cell, look = !entry ? "idle" : row ? "B0" : "F0";
        parts.push(boxOf(x, y + row * 18, cell - 1, 17, look, 'data-pick="bank:' + b + '"'));
        if (!entry) { continue; }
        if (cell >= 18) {
          parts.push('<g pointer-events="none">' + textOf(x + (cell - 1) / 2, y + row * 18 + 12,
            entry.lanes.length > 1 ? "×" + entry.lanes.length : entry.lanes[0],
            look + "t dl-small", "middle") + "</g>");
        }
        if (entry.lanes.indexOf(setting.lane) >= 0) {
          parts.push(boxOf(x, y + row * 18, cell - 1, 17, "chosen"));
        }
      }
    });
    y += height * 18 + 6;
  });
  return svgOf(width, y, view.words, parts);
}

function mountBankConflictExplorer(root, data) {
  mountPanel(root, data.setting, {
    view: bankConflictView,
    picture: bankConflictPicture,
    key: function (setting, key) { return laneKey(setting, key, COLUMNS); },
    pick: function (setting, what, number) {
      if (what === "lane") { setting.lane = number; return; }
      // the element nearest after the lane's own that is kept in this bank
      var from = laneElements(setting)[setting.lane], each = setting.item / 4;
      for (var e = from; e < from + 40 * COLUMNS; e += 1) {
        var element = e % MOST_ELEMENTS, bank = placeOf(setting, element) * each % BANKS;
        if (number >= bank && number < bank + each) { moveLane(setting, element); return; }
      }
    },
    changed: function (setting, name) {  // a new pattern takes all lanes along
      if (["pattern", "stride", "offset"].indexOf(name) >= 0) { setting.moved = {}; }
    }
  });
}
