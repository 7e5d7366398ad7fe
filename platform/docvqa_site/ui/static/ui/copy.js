// A "Copy" button beside every element marked data-copy. Without JavaScript the text can still be selected.
"use strict";

for (const source of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break; // only there on https and on this machine
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
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source.textContent.trim());
    button.textContent = status.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
      status.textContent = "";
    }, 2000);
  });
  source.after(button, status);
}
