// A "Copy" button beside every element marked data-copy. Without JavaScript the text can still be selected.
"use strict";

for (const source of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break; // only there on https and on this machine
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button button-small copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source.textContent.trim());
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  source.after(button);
}
