// Copy an element's text; where the page may not, select it for the reader to copy.
function copyText(element, then) {
  function select() {
    window.getSelection().selectAllChildren(element);
    then(document.execCommand && document.execCommand("copy"));
  }
  if (navigator.clipboard && window.isSecureContext) {
    navigator.clipboard.writeText(element.textContent).then(function () { then(true); }, select);
  } else {
    select();
  }
}
