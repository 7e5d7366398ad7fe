import { DOCS } from "./problem.js";

// A coded problem as a card, with the same markup as ui/problem.html.
export function problemCard(problem) {
  const card = element("section", "problem");
  card.setAttribute("aria-label", `Problem ${problem.code}`);
  const code = link(`${DOCS}errors/#row-${problem.code.toLowerCase()}`, element("code", "", problem.code));
  code.className = "small";
  const title = element("p", "problem-title", ...withCode(problem.message), " ", code);
  const facts = element("dl");
  const rows = { where: "Where", expected: "Expected", found: "Found", next_step: "Next" };
  for (const [key, label] of Object.entries(rows)) {
    if (problem[key]) facts.append(element("div", "", element("dt", "", label), element("dd", "", ...(key === "next_step" ? withCode(problem[key]) : [problem[key]]))));
  }
  card.append(title, facts);
  return card;
}

function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

function link(address, content) {
  const node = element("a", "", content);
  node.href = address;
  return node;
}

// What stands between backticks is code, and an address of this site or the name of one of its documents a link, as the
// filter `inline_code` shows them.
function withCode(text) {
  return text.split("`").flatMap((part, at) => (at % 2 ? [element("code", "", part)] : withLinks(part)));
}

function withLinks(text) {
  return text.split(/(https?:\/\/\S*[\w/]|\bdocs\/[a-z/-]+\.md\b)/).map((part) => {
    const name = part.match(/^docs\/([a-z/-]+)\.md$/);
    if (name) return link(`${DOCS}${name[1]}/`, part);
    return part.startsWith(`${location.origin}/`) ? link(part, part) : part;
  });
}
