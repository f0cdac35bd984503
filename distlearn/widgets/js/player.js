// The play button: steps go by themselves until the last, or until the reader does something.

// forward() goes one step and says whether there was one; again() goes back to the start.
function stepPlayer(root, button, forward, again) {
  var playing = 0;

  function label(text, words) {
    button.textContent = text;
    button.setAttribute("aria-label", words);
  }

  function stop() {
    if (!playing) { return; }
    clearInterval(playing);
    playing = 0;
    label("play", "play the steps");
  }

  function play() {
    if (playing) { stop(); return; }
    if (!forward()) { again(); }
    playing = setInterval(function () {
      if (!document.contains(root) || !forward()) { stop(); }
    }, 1500);
    label("pause", "pause");
  }

  return { play: play, stop: stop };
}
