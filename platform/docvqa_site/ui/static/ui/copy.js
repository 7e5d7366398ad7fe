// A "Copy" button beside every element marked data-copy, also in what htmx brings later. Without JavaScript the text can
// still be selected.
"use strict";

function addCopyButton(source) {
  source.dataset.copy = "added";
  const part = source.closest("section, article, main");
  const name = source.ariaLabel || part?.querySelector("h1, h2, h3, h4")?.textContent.trim();
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button button-small copy";
  button.textContent = "Copy";
  if (name) button.ariaLabel = `Copy: ${name}`;
  const status = document.createElement("span");
  status.className = "visually-hidden";
  status.role = "status";
  const say = (text, seconds) => {
    button.textContent = status.textContent = text;
    setTimeout(() => {
      button.textContent = "Copy";
      status.textContent = "";
    }, 1000 * seconds);
  };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      say("Copied", 2);
    } catch {
      // The browser doesn't let the page copy, but whoever reads it can.
      getSelection().selectAllChildren(source);
      say("Not copied, but selected", 5);
    }
  });
  source.after(button, status);
}

function addCopyButtons() {
  document.querySelectorAll('[data-copy]:not([data-copy="added"])').forEach(addCopyButton);
}

// The clipboard is only there on https and on this machine.
if (navigator.clipboard) {
  addCopyButtons();
  document.addEventListener("htmx:afterSwap", addCopyButtons);
}
