// The contents of a document are open beside its text, and folded above it, where they would fill a phone.
"use strict";

const contents = document.getElementById("on-this-page");

if (contents) {
  const isBeside = matchMedia("(min-width: 62rem)");
  const fit = () => (contents.open = isBeside.matches);
  fit();
  isBeside.addEventListener("change", fit);
  // The link below the text leads to an open list.
  document.querySelector(".to-contents a").addEventListener("click", () => (contents.open = true));
}
