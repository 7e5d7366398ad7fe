// A button below every plot that saves it as an SVG file with its title and its key, for slides and papers. In the file,
// colors and fonts are attributes, since the styles of the page aren't there.
"use strict";

const STYLES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "paint-order",
  "font-family",
  "font-size",
  "font-weight",
];
const TITLE_HEIGHT = 34;
const KEY_HEIGHT = 22;

// Returns a copy of a drawing that looks the same without the page's styles, and without its links.
function copyOf(drawing) {
  const copy = drawing.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")];
  [drawing, ...drawing.querySelectorAll("*")].forEach((original, index) => {
    const style = getComputedStyle(original);
    STYLES.forEach((name) => copies[index].setAttribute(name, style.getPropertyValue(name)));
    if (original.tagName === "circle") copies[index].setAttribute("r", style.r);
    copies[index].removeAttribute("class");
  });
  copy.querySelectorAll("a").forEach((link) => {
    if (link.getAttribute("aria-label")) link.remove();
    else link.replaceWith(...link.childNodes);
  });
  copy.querySelectorAll("title, desc").forEach((text) => text.remove());
  return copy;
}

function added(parent, tag, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.textContent = text;
  parent.append(element);
  return element;
}

function fileOf(figure) {
  const drawing = figure.querySelector(".plot-wide");
  const { width, height } = drawing.viewBox.baseVal;
  const style = getComputedStyle(figure);
  const keys = [...figure.querySelectorAll(".plot-keys > li")];
  const whole = height + TITLE_HEIGHT + keys.length * KEY_HEIGHT + 10;
  const file = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const texts = { "font-family": style.fontFamily, fill: style.color };
  Object.entries({ viewBox: `0 0 ${width} ${whole}`, width, height: whole }).forEach(([name, value]) =>
    file.setAttribute(name, value),
  );
  added(file, "rect", { width, height: whole, fill: style.backgroundColor });
  const title = figure.querySelector("h3").textContent;
  added(file, "title", {}, title);
  added(file, "text", { x: 10, y: 22, "font-size": 16, "font-weight": 600, ...texts }, title);
  added(file, "g", { transform: `translate(0 ${TITLE_HEIGHT})` }).append(...copyOf(drawing).childNodes);
  keys.forEach((key, index) => {
    const place = `translate(58 ${height + TITLE_HEIGHT + index * KEY_HEIGHT})`;
    const row = added(file, "g", { transform: place });
    row.append(...copyOf(key.querySelector("svg")).childNodes);
    added(row, "text", { x: 36, y: 9.5, "font-size": 13, ...texts }, key.textContent.trim());
  });
  return new XMLSerializer().serializeToString(file);
}

function addPlotButton(figure) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button button-small plot-file";
  button.textContent = "Save as SVG";
  button.ariaLabel = `Save as SVG: ${figure.querySelector("h3").textContent}`;
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([fileOf(figure)], { type: "image/svg+xml" }));
    const name = figure.querySelector(".table-wrap").id.replace(/-numbers$/, "");
    link.download = `${[figure.closest("[data-files]")?.dataset.files, name].filter(Boolean).join("-")}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  figure.append(button);
}

function addPlotButtons() {
  document.querySelectorAll("figure.plot:not(:has(> .plot-file))").forEach(addPlotButton);
}

addPlotButtons();
document.addEventListener("htmx:afterSwap", addPlotButtons);
