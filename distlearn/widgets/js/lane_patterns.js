// Which element each lane wants: the twin of distlearn/widgets/lane_patterns.py; lanes by key.

var LANES = 32, MOST_ELEMENTS = 32 * 64;

function laneElements(setting) {
  var state = 1, found = [];
  for (var lane = 0; lane < LANES; lane += 1) {
    state = 16807 * state % 2147483647;
    var number = {
      strided: setting.stride * lane, reversed: setting.stride * (LANES - 1 - lane),
      shuffled: setting.stride * ((11 * lane + 5) % LANES),
      random: state % Math.max(1, LANES * setting.stride)
    }[setting.pattern];
    found.push(lane in setting.moved ? setting.moved[lane] : setting.offset + number);
  }
  return found;
}

function distinctCount(values) { return new Set(values).size; }

function moveLane(setting, element) {
  setting.moved[setting.lane] = Math.max(0, Math.min(MOST_ELEMENTS - 1, element));
}

// Arrow keys: left and right choose a lane, the others move it; `far` elements by page.
function laneKey(setting, key, far) {
  var step = { ArrowUp: -1, ArrowDown: 1, PageUp: -far, PageDown: far }[key];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    setting.lane = walk(setting.lane, key, LANES, LANES);
  } else if (key === "Home" || key === "End") {
    setting.lane = key === "Home" ? 0 : LANES - 1;
  } else if (key === "Delete" || key === "Backspace") {
    delete setting.moved[setting.lane];
  } else if (step) {
    moveLane(setting, laneElements(setting)[setting.lane] + step);
  } else {
    return false;
  }
  return true;
}
