// Menus close on Escape, which returns to what opened them, and when something outside is clicked or focused.
"use strict";

const menus = document.querySelectorAll("details.menu");

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus) {
    if (!menu.open) continue;
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

for (const type of ["pointerdown", "focusin"]) {
  document.addEventListener(type, (event) => {
    for (const menu of menus) {
      if (menu.open && !menu.contains(event.target)) menu.open = false;
    }
  });
}
